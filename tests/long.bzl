"""Tests that take long: more types, interleavings, schedules, programs, processors."""

def long_tests(name, parts):
    """The suite `name`, and one suite per part, NAME_1 and so on, all of them manual.

    Args:
      name: of the suite.
      parts: list of parts; .ci/run runs one of them a day. A part maps the name of a test to a
        struct that `again` returns.
    """
    for number, part in enumerate(parts, 1):
        for again_name, test in part.items():
            native.sh_test(
                name = again_name,
                timeout = "eternal",
                srcs = ["//tests:run_with_variables.sh"],
                args = test.variables + ["$(location :%s)" % test.binary] + test.args,
                data = [":" + test.binary],
                shard_count = test.shard_count,
                tags = ["manual"],
            )
        native.test_suite(
            name = "%s_%d" % (name, number),
            tags = ["manual"],
            tests = [":" + test for test in part],
        )
    native.test_suite(
        name = name,
        tags = ["manual"],
        tests = [":" + test for part in parts for test in part],
    )

def again(binary, args = [], variables = [], shard_count = 1):
    """The test or binary `binary` of this package, with more arguments and variables."""
    return struct(
        binary = binary,
        args = args,
        variables = variables,
        shard_count = shard_count,
    )
