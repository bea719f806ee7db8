"""@mpi: Open MPI's C headers, or nothing."""

def _prefix(ctx):
    """Returns the first folder with include/mpi.h, or None: MPI_HOME, then where Debian puts Open MPI."""
    candidates = [ctx.os.environ.get("MPI_HOME", "")]
    for arch in ["x86_64", "aarch64"]:
        candidates.append("/usr/lib/%s-linux-gnu/openmpi" % arch)
    for candidate in candidates:
        if candidate.startswith("/") and ctx.path(candidate + "/include/mpi.h").exists:
            return candidate
    return None

def _mpi_impl(ctx):
    prefix = _prefix(ctx)
    if prefix:
        ctx.symlink(prefix + "/include", "include")
    ctx.file("found.bzl", "FOUND = %s\n" % (prefix != None))
    ctx.file("BUILD.bazel", """
cc_library(
    name = "mpi",
    hdrs = glob(["include/**/*.h"], allow_empty = True),
    includes = ["include"],
    visibility = ["//visibility:public"],
)
""")

mpi_repository = repository_rule(
    implementation = _mpi_impl,
    # COCONET_SETUP changes whenever setup.sh finds something else than before.
    environ = ["COCONET_SETUP", "MPI_HOME"],
    local = True,
)
