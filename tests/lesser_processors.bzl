"""Tests that run again as on processors with fewer instructions than this one."""

# What kernels are compiled for, and what oneDNN may use. Where the processor has less than that,
# a test runs as it does without them.
LESSER_PROCESSORS = {
    "x86_64_v3": [
        "COCONET_HOST_ARCH=x86-64-v3",
        "ONEDNN_MAX_CPU_ISA=AVX2",
    ],
    "x86_64_v2": [
        "COCONET_HOST_ARCH=x86-64-v2",
        "ONEDNN_MAX_CPU_ISA=SSE41",
    ],
}

def on_lesser_processors(test, args = [], **kwargs):
    """The test `test` of this package again, as TEST_x86_64_v3 and TEST_x86_64_v2, with `args`."""
    for processor, variables in LESSER_PROCESSORS.items():
        native.sh_test(
            name = test + "_" + processor,
            srcs = ["//tests:run_with_variables.sh"],
            args = variables + ["$(location :%s)" % test] + args,
            data = [":" + test],
            **kwargs
        )
