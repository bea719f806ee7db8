"""Tests that are Python files, run by run.sh."""

def python_test(name, file = None, args = [], data = [], **kwargs):
    """Runs FILE, else NAME.py."""
    file = file or name + ".py"
    native.sh_test(
        name = name,
        srcs = ["run.sh"],
        args = [file] + args,
        data = data + native.glob(["*.py"]) + ["//python:package"],
        **kwargs
    )

def torch_test(name, cases, data):
    """Cases of torch_test.py."""
    python_test(name = name, file = "torch_test.py", args = cases, size = "medium", data = data)
