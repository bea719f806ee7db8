"""The first program of docs/python.md runs and prints what it says."""

import contextlib
import io
import pathlib
import re
import unittest

import coconet


class DocumentsTest(unittest.TestCase):

    def test_the_program_prints_what_it_says(self):
        text = pathlib.Path("docs/python.md").read_text(encoding="utf-8")
        block = re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1)
        wanted = re.search(r"print\(.*# (.*)", block).group(1)
        block = block.replace("coconet.Session()", "coconet.Session(effort='fast', budget=5)")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(block, {})
        self.assertEqual(printed.getvalue().strip(), wanted)

    def test_help_is_useful(self):
        for word in ("Session", "all_reduce", "compile", "allocate"):
            self.assertIn(word, coconet.__doc__ + coconet.Session.__doc__ +
                          "".join(dir(coconet)) + "".join(dir(coconet.Session)))


if __name__ == "__main__":
    unittest.main()
