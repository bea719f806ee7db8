"""Benchmarks of the rooms of bench/."""

def benchmark(name, srcs, deps, **kwargs):
    """A program of the one main function, which runs the Benchmark that one of the sources registers."""
    native.cc_binary(
        name = name,
        srcs = srcs,
        deps = deps + [
            "//bench/harness",
            "//bench/harness:main",
            "//coconet/base",
            "//third_party/absl",
        ],
        **kwargs
    )
