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
                args = test.variables + ["$(location %s)" % test.label] + test.args,
                data = [test.label] + test.data,
                shard_count = test.shard_count,
                tags = ["manual"] + test.tags,
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

def again(test, args = [], only = [], but = [], variables = [], data = [], shard_count = 1, tags = []):
    """The test or binary `test` with more arguments and variables.

    Args:
      test: its name, if it is of this package, else its label.
      args: arguments.
      only: patterns of --gtest_filter; [] for all cases.
      but: those of cases that are left out. A pattern that no case matches is an error.
      variables: NAME=VALUE.
      data: what the test needs besides.
      shard_count: as in all tests.
      tags: the same.
    """
    chosen = ":".join(only) + ("-" + ":".join(but) if but else "")
    return struct(
        label = test if test.startswith("//") else ":" + test,
        args = args + (["--gtest_filter=" + chosen] if chosen else []),
        variables = variables,
        data = data,
        shard_count = shard_count,
        tags = tags,
    )
