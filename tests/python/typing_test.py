"""The package and a program that uses it, by mypy; skipped where no mypy is."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

MYPY = os.environ.get("COCONET_MYPY", "/usr/bin/mypy")
if not os.access(MYPY, os.X_OK):
    print(f"skipped: no {MYPY}; COCONET_MYPY may name another")
    sys.exit(0)

USER = """
import coconet

program = coconet.Program("scaled")
x = program.input("x", "f32", ["N"], "local")
program.output("y", coconet.sqrt(coconet.all_reduce("sum", abs(x)) / coconet.world))
with coconet.Session(timeout=5) as session:
    tuned = session.compile(program, N=10)
    with tuned.bind(x=session.allocate("f32", 10)) as bound:
        bound.run()
    ranks: int = session.ranks
"""
WRONG = """
import coconet

session = coconet.Session(timeout="soon")
session.compile(5, N=10)
session.nothing()
"""


# Other packages are skipped, since reading them takes minutes.
CONFIG = """
[mypy]
strict = True
warn_unused_ignores = False
[mypy-torch.*,numpy.*,ml_dtypes.*,mpi4py.*]
follow_imports = skip
ignore_missing_imports = True
[mypy-coconet.torch.*]
disallow_subclassing_any = False
disallow_untyped_decorators = False
warn_return_any = False
"""


class TypingTest(unittest.TestCase):

    def check(self, *arguments):
        package = pathlib.Path(os.environ["PYTHONPATH"].split(os.pathsep)[0])
        with tempfile.NamedTemporaryFile("w", suffix=".ini") as config:
            config.write(CONFIG)
            config.flush()
            ended = subprocess.run(
                [MYPY, "--config-file=" + config.name, "--cache-dir=" +
                 os.environ.get("TEST_TMPDIR", "/dev/null"), *arguments],
                cwd=package, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return ended.returncode, ended.stdout

    def test_the_package_has_no_type_errors(self):
        code, text = self.check("-p", "coconet")
        self.assertEqual(code, 0, text)

    def test_users_see_the_types(self):
        for source, words in [(USER, []), (WRONG, ["4: error.*timeout", "5: error", "6: error"])]:
            with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
                file.write(source)
                file.flush()
                code, text = self.check(file.name)
            self.assertEqual(code, 1 if words else 0, text)
            for word in words:
                self.assertRegex(text, word)


if __name__ == "__main__":
    unittest.main()
