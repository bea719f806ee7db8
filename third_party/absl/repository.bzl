"""@absl_source: files of Abseil's source that setup.sh unpacked, or nothing."""

def _absl_source_impl(ctx):
    folder = ctx.os.environ.get("COCONET_ABSL_SOURCE", "")
    found = folder.startswith("/") and ctx.path(folder + "/absl").exists
    if found:
        ctx.symlink(folder + "/absl", "absl")
    ctx.file("found.bzl", "FOUND = %s\n" % found)
    ctx.file("BUILD.bazel", """
filegroup(
    name = "files",
    srcs = glob(["absl/**/*.cc"], allow_empty = True),
    visibility = ["//visibility:public"],
)
""")

absl_source_repository = repository_rule(
    implementation = _absl_source_impl,
    environ = ["COCONET_SETUP", "COCONET_ABSL_SOURCE"],
    local = True,
)
