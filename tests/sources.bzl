"""The sources and headers of libraries as data, for tests that compile them again."""

_Sources = provider("Of a library and all that it depends on.", fields = ["files"])

def _sources_aspect_impl(_target, ctx):
    own = [
        file
        for name in ["srcs", "hdrs", "textual_hdrs"]
        for file in getattr(ctx.rule.files, name, [])
    ]
    deps = getattr(ctx.rule.attr, "deps", [])
    return [_Sources(files = depset(own, transitive = [d[_Sources].files for d in deps if _Sources in d]))]

_sources_aspect = aspect(implementation = _sources_aspect_impl, attr_aspects = ["deps"])

def _library_sources_impl(ctx):
    files = depset(transitive = [d[_Sources].files for d in ctx.attr.libraries])
    return [DefaultInfo(files = files, runfiles = ctx.runfiles(transitive_files = files))]

library_sources = rule(
    implementation = _library_sources_impl,
    attrs = {"libraries": attr.label_list(aspects = [_sources_aspect])},
)
