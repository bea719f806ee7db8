"""Bazel's own dependencies: Debian's packages, or small stand-ins. Names declared before win."""

_OF_DEBIAN = {
    "platforms": "/usr/share/bazel/tools/platforms",
    "bazel_skylib": "/usr/share/bazel/tools/skylib",
    "rules_java": "/usr/share/bazel/rules/java",
    "rules_proto": "/usr/share/bazel/rules/proto",
}

def _stand_in_impl(ctx):
    folder = ctx.path(Label("//third_party:bazel.bzl")).dirname.get_child(ctx.attr.folder)
    for file in folder.readdir():
        ctx.symlink(file, file.basename)

_stand_in = repository_rule(
    implementation = _stand_in_impl,
    attrs = {"folder": attr.string(mandatory = True)},
    local = True,
)

def debian_bazel_repositories():
    """Declares what Debian's Bazel would download."""
    for name, path in _OF_DEBIAN.items():
        if not native.existing_rule(name):
            native.local_repository(name = name, path = path)

    # Debian's bazel-rules-cc is too new for its Bazel 4.2; this one re-exports the native rules.
    if not native.existing_rule("rules_cc"):
        _stand_in(name = "rules_cc", folder = "rules_cc")

    # Every test depends on this tool, which only `bazel coverage` runs.
    if not native.existing_rule("remote_coverage_tools"):
        _stand_in(name = "remote_coverage_tools", folder = "remote_coverage_tools")
