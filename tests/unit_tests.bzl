"""Unit tests that lie beside what they test."""

def unit_tests(names, deps = [], size = "small", **kwargs):
    """One test per name, of NAME.cc; all may use `deps`, Abseil, coconet/base and GoogleTest."""
    for name in names:
        native.cc_test(
            name = name,
            size = size,
            srcs = [name + ".cc"],
            deps = deps + [
                "//coconet/base",
                "//third_party/absl",
                "//third_party/gtest:gtest_main",
            ],
            **kwargs
        )
