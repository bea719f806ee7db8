"""What an installation consists of: the shared library, the archive for C++, their headers, and files that find them."""

VERSION = "1.3"  # of autotune/c/coconet.h
MAJOR = VERSION.split(".")[0]

def _linker_inputs(deps):
    merged = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in deps])
    return merged.linking_context.linker_inputs.to_list()

def _archives(deps):
    """The archives of `deps` and of all that they depend on, as structs of file and alwayslink; dependents first."""
    return [
        struct(file = library.pic_static_library or library.static_library, alwayslink = library.alwayslink)
        for linker_input in _linker_inputs(deps)
        for library in linker_input.libraries
    ]

def _link_flags(deps):
    """How to link what they depend on outside of this build, dependents first, each flag once, at its last place."""
    flags = [flag for linker_input in _linker_inputs(deps) for flag in linker_input.user_link_flags]
    return [flag for i, flag in enumerate(flags) if flag not in flags[i + 1:]]

def _self_contained_library_impl(ctx):
    library = ctx.actions.declare_file(ctx.label.name)
    archives = _archives(ctx.attr.deps)
    args = ctx.actions.args()
    args.add_all(["-shared", "-o", library, "-Wl,-soname," + ctx.label.name])
    args.add_all(["-fuse-ld=bfd", "-Wl,--gc-sections", "-Wl,-z,relro,-z,now", "-Wl,--as-needed"])
    args.add_all(ctx.fragments.cpp.linkopts)
    if not ctx.fragments.cpp.linkopts:  # a sanitizer's functions are the program's
        args.add("-Wl,-z,defs")
    args.add(ctx.file.version_script, format = "-Wl,--version-script=%s")
    for archive in archives:
        args.add_all(["-Wl,--whole-archive", archive.file, "-Wl,--no-whole-archive"] if archive.alwayslink else [archive.file])
    args.add_all(_link_flags(ctx.attr.deps))

    # Debian's Abseil reaches the variables of libstdc++, and stderr, only where they are in the same file.
    args.add_all(["-Wl,--wrap=stderr", "-l:libstdc++.a", "-lm", "-ldl"])
    ctx.actions.run_shell(
        inputs = [ctx.file.version_script] + [archive.file for archive in archives],
        outputs = [library],
        arguments = [args],
        command = 'gcc "$@"',
        mnemonic = "LinkSelfContained",
        progress_message = "Linking %s" % library.short_path,
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([library]))]

self_contained_library = rule(
    doc = "A shared library that contains all of `deps`, and exports what `version_script` says.",
    implementation = _self_contained_library_impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "version_script": attr.label(allow_single_file = True, mandatory = True),
    },
    fragments = ["cpp"],
)

def _merged_archive_impl(ctx):
    merged = ctx.actions.declare_file(ctx.label.name)
    archives = _archives(ctx.attr.deps)
    script = ["create " + merged.path] + ["addlib " + archive.file.path for archive in archives] + ["save", "end"]
    commands = ctx.actions.declare_file(ctx.label.name + ".mri")
    ctx.actions.write(commands, "\n".join(script) + "\n")
    ctx.actions.run_shell(
        inputs = [commands] + [archive.file for archive in archives],
        outputs = [merged],
        command = "ar -M <%s && ar -sD %s" % (commands.path, merged.path),
        mnemonic = "MergeArchives",
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([merged]))]

merged_archive = rule(
    doc = "One archive of `deps` and of all in this build that they depend on.",
    implementation = _merged_archive_impl,
    attrs = {"deps": attr.label_list(providers = [CcInfo])},
)

def _include_folder_impl(ctx):
    folder = ctx.actions.declare_directory(ctx.label.name)
    headers = depset(transitive = [dep[CcInfo].compilation_context.headers for dep in ctx.attr.deps])
    ctx.actions.run(
        inputs = depset(ctx.files.at_root, transitive = [headers]),
        outputs = [folder],
        executable = ctx.executable._copy,
        arguments = [folder.path] + ctx.attr.public + [file.path + "=" + file.basename for file in ctx.files.at_root],
        mnemonic = "CopyHeaders",
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([folder]))]

include_folder = rule(
    doc = "A folder with the `public` headers of `deps`, and those that they include, in their folders; with `at_root` at its root.",
    implementation = _include_folder_impl,
    attrs = {
        "at_root": attr.label_list(allow_files = True),
        "deps": attr.label_list(providers = [CcInfo]),
        "public": attr.string_list(),
        "_copy": attr.label(default = ":copy_headers", executable = True, cfg = "host"),
    },
)

def _finder_impl(ctx):
    ctx.actions.expand_template(
        template = ctx.file.template,
        output = ctx.outputs.out,
        substitutions = {
            "@VERSION@": VERSION,
            "@MAJOR@": MAJOR,
            "@CXX_LIBRARIES@": ctx.attr.separator.join(_link_flags(ctx.attr.cxx)),
        },
    )

finder = rule(
    doc = "A file by which build systems find the libraries, from a template.",
    implementation = _finder_impl,
    attrs = {
        "cxx": attr.label_list(providers = [CcInfo], doc = "what is in the archive for C++"),
        "out": attr.output(mandatory = True),
        "separator": attr.string(default = " "),
        "template": attr.label(allow_single_file = True, mandatory = True),
    },
)
