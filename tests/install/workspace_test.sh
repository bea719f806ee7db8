#!/usr/bin/env bash
# A package of another repository depends on @coconet//:coconet, by the lines that docs/embedding.md tells to write into
# WORKSPACE: Bazel finds all that the target needs, without a download. Nothing is compiled.
set -euo pipefail

coconet="$(dirname "$(readlink -f WORKSPACE)")"
work="$TEST_TMPDIR/other"

mkdir -p "$work"
{
  printf 'local_repository(\n    name = "coconet",\n    path = "%s",\n)\n' "$coconet"
  sed -n '/^load("@coconet/,/^```/{/^```/d;p}' docs/embedding.md
} >"$work/WORKSPACE"
grep -q coconet_repositories "$work/WORKSPACE" || {
  echo "workspace_test.sh: docs/embedding.md has no lines for WORKSPACE" >&2
  exit 1
}
cat >"$work/BUILD.bazel" <<'END'
cc_binary(
    name = "adam",
    srcs = ["adam.cc"],
    deps = ["@coconet//:coconet"],
)
END
cp -L examples/adam.cc "$work"
cd "$work"
run_bazel() {
  HOME="$TEST_TMPDIR" bazel --output_user_root="$TEST_TMPDIR/bazel" "$@"
}
trap 'run_bazel shutdown >/dev/null 2>&1' EXIT
run_bazel build --nobuild --experimental_repository_disable_download --cxxopt=-std=c++20 //:adam
