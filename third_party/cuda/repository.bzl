"""@cuda: the CUDA toolkit's headers, and where its libraries are, or nothing."""

def _root(ctx):
    """Returns the toolkit's folder, or None: CUDA_HOME, the conventional prefix, setup.sh's private one."""
    env = ctx.os.environ
    if env.get("COCONET_CUDA", "auto") == "none":
        return None
    data = env.get("XDG_DATA_HOME") or env.get("HOME", "") + "/.local/share"
    for root in [env.get("CUDA_HOME", ""), "/usr/local/cuda", data + "/coconet/cuda"]:
        headers = [root + "/include/cuda.h", root + "/include/nvrtc.h"]
        if root.startswith("/") and all([ctx.path(header).exists for header in headers]):
            return root
    return None

def _disassembler(ctx, root):
    """Returns the path of nvdisasm, or "": of the toolkit, else the one that setup.sh installed beside it."""
    for path in [(root or "") + "/bin/nvdisasm", ctx.os.environ.get("COCONET_NVDISASM", "")]:
        if root and path.startswith("/") and ctx.path(path).exists:
            return path
    return ""

def _library(ctx, root, name):
    """Returns the path of a shared library, or "": lib<name>.so, else lib<name>.so.N (as in wheels)."""
    for folder in ["lib64", "lib"]:
        path = ctx.path("%s/%s" % (root, folder))
        if not root or not path.exists:
            continue
        names = sorted([entry.basename for entry in path.readdir() if entry.basename.startswith("lib%s.so" % name)])
        if names:
            return "%s/%s/%s" % (root, folder, names[0])
    return ""

def _cuda_impl(ctx):
    root = _root(ctx)
    if root:
        ctx.symlink(root + "/include", "include")
    has_nccl = root != None and ctx.path(root + "/include/nccl.h").exists
    ctx.file("found.bzl", "FOUND = %s\nFOUND_NCCL = %s\n" % (root != None, has_nccl))
    ctx.template("third_party/cuda/paths.h", ctx.attr._paths, {
        "{include}": root + "/include" if root else "",
        "{nvdisasm}": _disassembler(ctx, root),
        "{nvrtc}": _library(ctx, root, "nvrtc"),
        "{nvrtc_builtins}": _library(ctx, root, "nvrtc-builtins"),
        "{nccl}": _library(ctx, root, "nccl"),
        "{cublas_lt}": _library(ctx, root, "cublasLt"),
    })
    ctx.file("BUILD.bazel", """
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "headers",
    hdrs = glob(
        [
            "include/*.h",
            "include/*.hpp",
            "include/crt/**",
            "include/cccl/nv/**",
        ],
        allow_empty = True,
    ),
    includes = [
        "include",
        "include/cccl",
    ],
)

cc_library(
    name = "paths",
    hdrs = ["third_party/cuda/paths.h"],
    includes = ["."],
)
""")

cuda_repository = repository_rule(
    implementation = _cuda_impl,
    attrs = {"_paths": attr.label(default = "//third_party/cuda:paths.h.tpl")},
    # COCONET_SETUP changes whenever setup.sh finds something else than before.
    environ = ["COCONET_CUDA", "COCONET_NVDISASM", "COCONET_SETUP", "CUDA_HOME", "HOME", "XDG_DATA_HOME"],
    local = True,
)
