"""Programs written in Python print as text of the language. Needs no library."""

import doctest
import inspect
import unittest

import coconet
from coconet import _elementwise
from coconet import program as program_module
from coconet import words


class ProgramTest(unittest.TestCase):

    def test_documentation_prints_what_it_says(self):
        self.assertEqual(doctest.testmod(program_module).failed, 0)

    def test_operators_become_operations(self):
        p = coconet.Program("operators")
        x = p.input("x", "float32", ["N", 8], "local")
        y = p.input("y", "f32", ["N", 8], "local")
        select = coconet.select((x < y) & ~(y >= 2) | (x == 0), -x ** 2, abs(1 - y / x))
        p.output("z", select[0:4, -2:])
        self.assertEqual(str(p).splitlines()[4:], [
            "%2 = lt(x, y)", "%3 = ge(y, 2)", "%4 = not %3", "%5 = (%2 and %4)", "%6 = eq(x, 0)",
            "%7 = (%5 or %6)", "%8 = pow(x, 2)", "%9 = neg(%8)", "%10 = div(y, x)",
            "%11 = sub(1, %10)", "%12 = abs(%11)", "%13 = select(%7, %9, %12)",
            "%14 = %13[0:4, -2:]", "output z = %14"])

    def test_attributes_are_words_and_shapes(self):
        p = coconet.Program()
        x = p.input("x", "f32", ["N"], "local")
        coconet.reduce_scatter("sum", x, "owned(by L)")
        coconet.call("expand", x, ["B", "N"])
        coconet.matmul(x, x, transpose_b=True)
        coconet.round_stochastic(x, x)
        coconet.all_to_all(x, 1, counts=x)
        coconet.matmul(x, x, x, x, transpose_a=True)
        self.assertEqual(str(p).splitlines()[3:], [
            "%1 = reduce_scatter(sum, x, owned(by L))", "%2 = expand(x, [B, N])",
            "%3 = matmul(x, x, transpose_b)", "%4 = round_stochastic(x, x)",
            "%5 = all_to_all(x, x, 1)", "%6 = matmul(x, x, x, x, transpose_a)"])

    def test_mistakes_are_errors_in_words(self):
        p, q = coconet.Program("p"), coconet.Program("q")
        x, y = p.scalar("x"), q.scalar("y")
        for words_of_error, mistake in [
                ("two programs", lambda: x + y),
                ("while the program is written", lambda: bool(x < 1)),
                ("of this name", lambda: p.input("x", "f32")),
                ("want one of f32", lambda: p.input("z", "complex64")),
                ("want a list of extents", lambda: p.input("z", "f32", "N")),
                ("finite", lambda: x * float("nan")),
                ("want a name", lambda: p.input("a b", "f32")),
                ("coconet.Value", lambda: coconet.sqrt(object())),
                ("want ranges", lambda: x[3]),
                ("of another program", lambda: p.output("z", y))]:
            with self.assertRaisesRegex((TypeError, ValueError), words_of_error):
                mistake()

    def test_every_word_is_documented_and_exported(self):
        for module in (words, _elementwise):
            defined = {name: function
                       for name, function in inspect.getmembers(module, inspect.isfunction)
                       if function.__module__ == module.__name__ and not name.startswith("_")}
            self.assertLessEqual(set(defined), set(words.__all__))
            for name, function in defined.items():
                self.assertTrue(function.__doc__, name)
                self.assertIs(getattr(coconet, name), function, name)
        hints = coconet.all_reduce.__annotations__
        self.assertEqual(hints["return"], "Value")


if __name__ == "__main__":
    unittest.main()
