"""Sessions, programs, bindings and arrays of one process: against NumPy, and by DLPack."""

import decimal
import fractions
import gc
import gzip
import inspect
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np

import coconet
from meeting import run_threads

FAST = {"cache_file": ":none:", "effort": "fast", "budget": 1}
MOMENTUM = """coconet 1
program momentum
input g : f32[N] local
state p : f32[N] replicated
state m : f32[N]
input lr : f32[]
m1 = update(m, 0.5 * m + all_reduce(sum, g) / world)
update(p, p - lr * m1)
"""


def momentum(session, n):
    """The program, bound to memory of the session."""
    tuned = session.compile(MOMENTUM, N=n)
    g, p = session.allocate("f32", n), session.allocate("f32", n)
    return tuned.bind(g=g, p=p), g.numpy(), p.numpy()


class SessionTest(unittest.TestCase):

    def test_a_world_of_one_trains(self):
        with coconet.Session(**FAST) as session:
            self.assertEqual((session.rank, session.ranks, session.stage, session.stages),
                             (0, 1, 0, 1))
            bound, g, p = momentum(session, 100)
            g[:] = np.arange(100)
            bound["lr"] = 0.25
            bound.run()
            np.testing.assert_array_equal(p, -0.25 * g)
            bound.set(lr=0.5)
            bound.run_steps(2)
            np.testing.assert_array_equal(bound["m"], 1.75 * g)
            np.testing.assert_array_equal(bound.read("p"), p)

    def test_numerics_are_part_of_the_key(self):
        with coconet.Session(**FAST) as session:
            self.assertIsNone(session.stream)
            momentum(session, 33)
        with coconet.Session(**{**FAST, "policy": "cache_only"}, sum_rounding="each",
                             nans="none") as session:
            with self.assertRaisesRegex(LookupError, "sum rounding|no record"):
                session.compile(MOMENTUM, N=33)

    def test_each_policy_is_taken(self):
        for policy in ("tune", "cache_only", "baseline_on_miss", "improve", "online"):
            lines, warned = [], []
            with coconet.Session(cache_file=":none:", effort="fast", policy=policy, budget=5,
                                 progress=lines.append, warn=warned.append) as session:
                if policy == "cache_only":
                    with self.assertRaises(coconet.NotFound):
                        session.compile(MOMENTUM, N=34)
                else:
                    bound, g, p = momentum(session, 34)
                    g[:] = 1
                    bound.set(lr=1)
                    bound.run_steps(300)
                    np.testing.assert_array_equal(bound.read("m")[:3], bound.read("m")[0])
            with self.subTest(policy=policy):
                self.assertEqual(bool(lines), policy in ("tune", "improve", "online"))
                if policy != "online":  # which says what it cannot explore
                    self.assertEqual(bool(warned), policy == "baseline_on_miss")

    def test_how_to_tune_is_in_the_signature(self):
        arguments = inspect.signature(coconet.Session).parameters
        for name in ("policy", "budget", "progress"):
            self.assertEqual(arguments[name].kind, inspect.Parameter.KEYWORD_ONLY)
            self.assertIn(f"    {name} ", coconet.Session.__doc__)

    def test_threads_are_ranks(self):
        def body(group):
            with coconet.Session(group, **FAST) as session:
                bound, g, p = momentum(session, 1000)
                g[:] = group.rank + np.arange(1000)
                bound.set(lr=1)
                bound.run()
                bound.run()
                return p.copy(), bound.read("m"), session.ranks

        for p, m, ranks in run_threads(2, body):
            self.assertEqual(ranks, 2)
            np.testing.assert_array_equal(m, 1.5 * (np.arange(1000) + 0.5))
            np.testing.assert_array_equal(p, -2.5 * (np.arange(1000) + 0.5))

    def test_a_program_written_in_python_runs(self):
        p = coconet.Program("scaled")
        x = p.input("x", "f32", ["N"], "local")
        p.output("y", coconet.all_reduce("max", x) * p.scalar("by"))
        x, y = np.arange(10, dtype=np.float32), np.zeros(10, np.float32)
        with coconet.Session(**FAST) as session, session.compile(p, N=10).bind(x=x, y=y) as bound:
            bound["by"] = 3
            bound.run()
        np.testing.assert_array_equal(y, 3 * x)

    def test_lists_of_tensors_bind_lists_of_arrays(self):
        arrays = [np.zeros(n, np.float32) for n in (3, 5)]
        gradients = [np.full(n, n, np.float32) for n in (3, 5)]
        with coconet.Session(**FAST) as session:
            tuned = session.compile(MOMENTUM, N=[3, 5])
            self.assertEqual(tuned.tensor("p.1").shape, (5,))
            with tuned.bind({"p.0": arrays[0]}, **{"p.1": arrays[1]}, g=gradients) as bound:
                bound.set(lr=1)
                bound.run()
        for array, gradient in zip(arrays, gradients):
            np.testing.assert_array_equal(array, -gradient)

    def test_lists_of_one_tensor_bind_lists_of_one_array(self):
        array = np.zeros(3, np.float32)
        with coconet.Session(**FAST) as session:
            with session.compile(MOMENTUM, N=[3]).bind(p=[array], g=[np.ones(3, np.float32)]) as b:
                b.set(lr=1)
                b.run()
        np.testing.assert_array_equal(array, -1)

    def test_casts_to_sixteen_bits_round_once(self):
        text = """coconet 1
program narrowed
input x : f64[6] replicated
input n : i64[2] replicated
output half = cast(f16, x)
output used = cast(f64, cast(f16, x))
output brain = bit_cast(u16, cast(bf16, x))
output of_integers = bit_cast(u16, cast(bf16, n))
"""
        x = np.array([65520 - 1e-7, 65520, 1 + 2**-11 + 2**-40, 2049 + 2**-20, 257 + 2**-30, -257])
        n = np.array([2**62 + 2**54 + 1, 2**62 + 2**54])
        half, used, brain = np.zeros(6, np.float16), np.zeros(6), np.zeros(6, np.uint16)
        of_integers = np.zeros(2, np.uint16)
        with coconet.Session(**FAST) as session, session.compile(text).bind(
                x=x, n=n, half=half, used=used, brain=brain, of_integers=of_integers) as bound:
            bound.run()
        with np.errstate(over="ignore"):
            want = x.astype(np.float16)
        np.testing.assert_array_equal(half, want)
        np.testing.assert_array_equal(used, want)
        np.testing.assert_array_equal(
            (brain.astype(np.uint32) << 16).view(np.float32), [65536, 65536, 1, 2048, 258, -256])
        np.testing.assert_array_equal(
            (of_integers.astype(np.uint32) << 16).view(np.float32), [2**62 + 2**55, 2**62])

    def test_states_are_saved_and_loaded(self):
        with tempfile.TemporaryDirectory() as folder, coconet.Session(**FAST) as session:
            bound, g, p = momentum(session, 64)
            g[:] = 1
            bound.set(lr=1)
            bound.run()
            bound.save(pathlib.Path(folder) / "states")
            again, _, q = momentum(session, 64)
            again.load(os.path.join(folder, "states"))
            np.testing.assert_array_equal(again.read("m"), np.ones(64))
            np.testing.assert_array_equal(q, p)
            bound.write("m", np.full(64, 7, np.float32))
            self.assertEqual(bound["m"][5], 7)

    def test_files_and_descriptions(self):
        with tempfile.TemporaryDirectory() as folder, coconet.Session(**FAST) as session:
            path = pathlib.Path(folder) / "momentum.coco"
            path.write_text(MOMENTUM)
            tuned = session.compile(path, N=8)
            self.assertFalse(tuned.from_cache)
            self.assertEqual(tuned.tensors["g"][:5], ("g", "input", "local", "f32", (8,)))
            self.assertEqual(tuned.tensors["lr"].shape, ())
            self.assertIn("m", tuned.tensors)
            self.assertTrue(coconet.explain(tuned))
            bound, _, _ = momentum(session, 8)
            bound.set(lr=1)
            bound.trace()
            session.write_trace(os.path.join(folder, "trace.json"))
            compressed = pathlib.Path(folder) / "momentum.coco.gz"
            compressed.write_bytes(gzip.compress(MOMENTUM.encode()))
            self.assertEqual(session.compile(str(compressed), N=8).text, tuned.text)
            self.assertIn("traceEvents", (pathlib.Path(folder) / "trace.json").read_text())


class ArrayTest(unittest.TestCase):

    def setUp(self):
        self.session = coconet.Session(**FAST)

    def tearDown(self):
        self.session.close()

    def test_arrays_of_every_dtype_are_numpy_arrays(self):
        for dtype in ("f32", "f16", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64",
                      "bool"):
            array = self.session.allocate(dtype, [2, 3])
            self.assertEqual((array.dtype, array.shape, len(array)), (dtype, (2, 3), 2))
            numbers = array.numpy()
            self.assertFalse(numbers.any())
            numbers[1, 2] = 1
            self.assertEqual(np.asarray(array)[1, 2], 1)
            self.assertEqual(array.nbytes, numbers.nbytes)

    def test_dlpack_shares_the_memory_and_keeps_it(self):
        array = self.session.allocate("f32", 5)
        other = np.from_dlpack(array)
        array.numpy()[3] = 4
        self.assertEqual(array.__dlpack_device__(), (1, 0))
        array.__dlpack__()  # nobody takes it
        del array
        gc.collect()
        self.assertEqual(other[3], 4)
        del other
        gc.collect()

    def test_views_outlive_array_and_session(self):
        numbers = self.session.allocate("f32", 1000).numpy()
        self.session.close()
        gc.collect()
        numbers[:] = 3
        self.assertEqual(numbers.sum(), 3000)

    def test_objects_are_freed_in_any_order(self):
        bound, g, p = momentum(self.session, 10)
        program = bound.program
        self.session.close()
        del program
        gc.collect()
        with self.assertRaises(coconet.Error):
            bound.run()
        bound.close()
        bound.close()
        del g, p
        gc.collect()

    def test_arrays_with_gaps_are_copied_with_a_warning(self):
        tuned = self.session.compile(MOMENTUM, N=6)
        table = np.full((6, 3), 7, np.float32)
        with self.assertWarnsRegex(RuntimeWarning, r"^coconet: p: .*copied.*\(not row-major\)"):
            bound = tuned.bind(g=np.ones(6, np.float32), p=table[::-1, 1])
        with bound:
            bound.set(lr=2)
            bound.run()
            bound.run()
        np.testing.assert_array_equal(table, [[7, 2, 7]] * 6)

    def test_scalars_are_numbers(self):
        with self.session.compile(MOMENTUM, N=6).bind() as bound:
            with self.assertRaisesRegex(TypeError, "want a number, have '3'"):
                bound.set(lr="3")
            with self.assertRaisesRegex(coconet.InvalidArgument, "which f32 holds"):
                bound.set(lr=10**60)
            bound.set(lr=10**30)
            self.assertEqual(bound["lr"], np.float32(1e30))
            bound.set(lr=np.float32(-0.0))
            self.assertEqual(math.copysign(1, bound["lr"]), -1)
        text = "coconet 1\nprogram p\ninput s : i64[]\noutput y = expand(s, [1])\n"
        with self.session.compile(text).bind() as bound:
            odd = 2**53 + 1
            for number in odd, np.int64(odd), decimal.Decimal(odd), fractions.Fraction(odd):
                bound.set(s=number)
                self.assertEqual(bound["s"], odd)
            for number in decimal.Decimal("0.5"), fractions.Fraction(1, 3), float("nan"):
                with self.assertRaisesRegex(coconet.InvalidArgument, "which i64 holds"):
                    bound.set(s=number)

    def test_bad_arrays_are_errors_in_words(self):
        tuned = self.session.compile(MOMENTUM, N=6)
        good = np.zeros(6, np.float32)
        for words, array in [
                ("f32", np.zeros(6)), ("5|6", np.zeros(5, np.float32)),
                ("want an array", "text"), ("other order", np.zeros(6, ">f4")),
                ("complex", np.zeros(6, np.complex64))]:
            with self.assertRaisesRegex((coconet.InvalidArgument, TypeError), words):
                tuned.bind(g=array, p=good)
        with self.assertRaisesRegex(coconet.Error, "nothing"):
            tuned.bind(nothing=good)
        fixed = np.zeros(6, np.float32)
        fixed.setflags(write=False)
        with tuned.bind(g=fixed) as bound:
            for call in (lambda: tuned.bind(p=fixed), lambda: bound.read("p", fixed)):
                with self.assertRaisesRegex((TypeError, ValueError), "read-only.*numpy.ndarray"):
                    call()
        same = np.lib.stride_tricks.as_strided(good, strides=(0,))
        with self.assertRaisesRegex(coconet.InvalidArgument, r"two elements at one .*have \[0\]"):
            tuned.bind(p=same)
        with self.assertRaisesRegex(coconet.InvalidArgument, "row-major"):
            with tuned.bind() as bound:
                bound.read("p", np.zeros(12, np.float32)[::2])

    def test_bad_calls_are_errors_in_words(self):
        with self.assertRaisesRegex(ValueError, "line 3"):
            self.session.compile("coconet 1\nprogram p\ninput x : f33[N]\n", N=3)
        with self.assertRaisesRegex(TypeError, "want an integer"):
            self.session.compile(MOMENTUM, N="16")
        with self.assertRaisesRegex(FileNotFoundError, "none.coco"):
            self.session.compile("none.coco", N=3)
        with self.assertRaisesRegex(FileNotFoundError, "a folder/none"):
            self.session.compile("a folder/none", N=3)
        with self.assertRaisesRegex(ValueError, "expected 'coconet 1' as the first line"):
            self.session.compile("adam", N=3)
        with self.assertRaisesRegex(ValueError, "have XLA's HLO; sweep imports it"):
            self.session.compile("HloModule m\nENTRY e {}\n")
        with tempfile.NamedTemporaryFile(suffix=".pb") as file:
            file.write(b"\xff\xfe")
            file.flush()
            with self.assertRaisesRegex(ValueError, "in UTF-8; have a binary file"):
                self.session.compile(file.name)
        with self.assertRaisesRegex(ValueError, r"did you mean 'N'\?"):
            self.session.compile(MOMENTUM, n=4)
        with self.assertRaisesRegex(ValueError, r"did you mean 'cuda'\?"):
            coconet.Session(backend="cudaa")
        with self.assertRaisesRegex(ValueError, r"did you mean 'f32'\?"):
            self.session.allocate("f31", 4)
        with self.assertRaisesRegex(ValueError, "policy='never': want one of 'tune', 'cache_only', "
                                    "'baseline_on_miss', 'improve', 'online'"):
            coconet.Session(policy="never")
        with self.assertRaisesRegex(ValueError, r"did you mean 'online'\?"):
            coconet.Session(policy="onlin")
        with self.assertRaisesRegex(ValueError, "budget"):
            coconet.Session(budget=-1)
        with self.assertRaisesRegex(ValueError, "sum_rounding='twice': want one of 'once', 'each'"):
            coconet.Session(sum_rounding="twice")
        with self.assertRaisesRegex(ValueError, "nans='some': want one of 'possible', 'none'"):
            coconet.Session(nans="some")
        with self.assertRaisesRegex(TypeError, "all_gather_bytes"):
            coconet.Session(3)
        bound, _, _ = momentum(self.session, 6)
        with self.assertRaisesRegex(coconet.Error, "rate"):
            bound.set(rate=1)
        with self.assertRaisesRegex(coconet.NotFound, "nothing"):
            bound.read("nothing")
        with coconet.Session(cache_file=":none:", policy="cache_only") as session:
            with self.assertRaises(LookupError):
                session.compile(MOMENTUM, N=12)
        with self.assertRaisesRegex(coconet.FailedPrecondition, "closed"):
            session.compile(MOMENTUM, N=12)

    def test_what_python_refuses_on_one_rank_is_an_error_on_all(self):
        def body(group):
            is_bad, failures = group.rank == 1, []

            def fails(run):
                try:
                    run()
                except (coconet.Error, TypeError, ValueError, OSError) as failure:
                    failures.append(f"{type(failure).__name__}: {failure}")

            with coconet.Session(group, timeout=10, **FAST) as session:
                fails(lambda: session.compile("missing.coco" if is_bad else MOMENTUM, N=4))
                fails(lambda: session.compile(MOMENTUM, N="four" if is_bad else 4))
                fails(lambda: session.allocate("f33" if is_bad else "f32", 4))
                tuned = session.compile(MOMENTUM, N=4)
                fails(lambda: tuned.bind(p=None if is_bad else np.zeros(4, np.float32)))
                with tuned.bind() as bound:
                    fails(lambda: bound.write("g", [1, 2] if is_bad else [1, 2, 3, 4]))
                    fails(lambda: bound.read("p", "text" if is_bad else np.zeros(4, np.float32)))
                    fails(lambda: bound.read("q" if is_bad else "p"))
                    bound.write("g", np.full(4, 3, np.float32))
                    bound.set(lr=1)
                    bound.run()
                    return failures, list(bound["p"])

        (good, p), (bad, _) = run_threads(2, body)
        self.assertEqual(p, [-3] * 4)
        self.assertEqual([text.partition(":")[0] for text in bad],
                         ["FileNotFoundError", "TypeError", "ValueError", "TypeError",
                          "ValueError", "TypeError", "NotFound"])
        for text, words in zip(good, ["compile: text", "compile: text", "allocate: want a dtype",
                                      "Bind p: want a tensor", "Write g: want a tensor",
                                      "Read p: want a tensor", "Read q: no such tensor"]):
            self.assertRegex(text, f"(InvalidArgument|NotFound): rank 1: .*{words}")

    def test_a_type_error_names_the_line_of_python(self):
        p = coconet.Program("wrong")
        a, b = p.input("a", "f32", ["N"], "local"), p.input("b", "f16", ["N"], "local")
        p.output("y", a + b)
        line = "package_test.py:%d" % (sys._getframe().f_lineno - 1)
        with self.assertRaisesRegex(coconet.InvalidArgument, line):
            self.session.compile(p, N=3)

    def test_two_calls_at_once_are_an_error(self):
        bound, _, _ = momentum(self.session, 1 << 20)
        bound.set(lr=1)
        failures = []

        def run():
            try:
                for _ in range(200):
                    bound.run()
            except coconet.FailedPrecondition as failure:
                failures.append(failure)

        threads = [threading.Thread(target=run) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for failure in failures:
            self.assertTrue(str(failure))
        bound.run()


class ProcessTest(unittest.TestCase):

    def run_python(self, code, *flags, returncode=0):
        ended = subprocess.run([sys.executable, *flags, "-c", code], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, timeout=50)
        self.assertEqual(ended.returncode, returncode, ended.stdout)
        return ended.stdout

    def test_an_interpreter_may_exit_with_everything_open(self):
        text = self.run_python(f"""
import coconet, numpy as np, sys
session = coconet.Session(cache_file=":none:", effort="fast", progress=lambda line: None)
tuned = session.compile('''{MOMENTUM}''', N=10)
g = session.allocate("f32", 10)
taken = np.from_dlpack(g)
left = g.__dlpack__()
bound = tuned.bind(g=g)
bound.run()
sys.stray = (taken, left, bound, session, g)
""", "-W", "error")
        self.assertEqual(text, "")

    def test_a_child_of_fork_gets_an_error(self):
        text = self.run_python(f"""
import coconet, os
session = coconet.Session(cache_file=":none:", effort="fast", progress=lambda line: None)
bound = session.compile('''{MOMENTUM}''', N=10).bind()
child = os.fork()
if child == 0:
    try:
        bound.run()
    except coconet.Error as failure:
        print(type(failure).__name__, flush=True)
    raise SystemExit(0)
assert os.waitpid(child, 0)[1] == 0
bound.run()
""")
        self.assertEqual(text, "FailedPrecondition\n")

    def test_importing_loads_neither_library_nor_numpy(self):
        self.run_python("import coconet, sys; assert 'numpy' not in sys.modules; "
                        "assert coconet._library._library is None")

    def test_a_missing_library_is_named(self):
        environment = dict(os.environ, COCONET_LIBRARY="/nowhere/libcoconet.so")
        ended = subprocess.run([sys.executable, "-c", "import coconet; coconet.Session()"],
                               env=environment, capture_output=True, text=True, timeout=50)
        self.assertIn("coconet.Unavailable", ended.stderr)
        self.assertIn("/nowhere/libcoconet.so", ended.stderr)

    def test_commands_run(self):
        ended = subprocess.run([sys.executable, "-m", "coconet", "sweep", "--list"],
                               capture_output=True, text=True, timeout=50)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("adam", ended.stdout)
        ended = subprocess.run([sys.executable, "-m", "coconet"], capture_output=True, text=True,
                               timeout=50)
        self.assertEqual(ended.returncode, 2)
        self.assertIn("coconet sweep", ended.stderr)
        ended = subprocess.run([sys.executable, "-m", "coconet", "swep"], capture_output=True,
                               text=True, timeout=50)
        self.assertEqual(ended.returncode, 2)
        self.assertIn("did you mean 'sweep'?", ended.stderr)


if __name__ == "__main__":
    unittest.main()
