#!/usr/bin/env bash
# An installation that was moved builds and runs the example in C++ and a program in C, by CMake and by a Makefile.
set -euo pipefail

built="$PWD" work="$TEST_TMPDIR/work"
export COCONET_CACHE_DIR="$TEST_TMPDIR/cache"

fail() {
  echo "install_test.sh: $*" >&2
  exit 1
}

autotune/c/library/lay_out.sh "$built" "$work/first" >"$TEST_TMPDIR/written"
while read -r file; do [[ -e "$file" ]] || fail "it says that it wrote $file"; done <"$TEST_TMPDIR/written"
find "$work/first" | sort >"$TEST_TMPDIR/once"
autotune/c/library/lay_out.sh "$built" "$work/first" >/dev/null
find "$work/first" | sort | diff "$TEST_TMPDIR/once" - || fail "the second run differs"
mv "$work/first" "$work/moved"
prefix="$work/moved"
if text="$(grep -rIlE "$work/first|$built" "$prefix")"; then fail "these name folders of the build: $text"; fi

if words="$(autotune/c/library/lay_out.sh "$built" /proc/nowhere 2>&1)"; then fail "wrote into /proc"; fi
[[ "$words" == *"cannot write /proc/nowhere/lib/libcoconet.so.1"* ]] || fail "of /proc it says: $words"

# Runs what was built in folder $1; with a second argument, where tuning the example is an error.
run() {
  LD_LIBRARY_PATH="$prefix/lib" "$1/uses_c" || fail "$1/uses_c failed"
  local out
  out="$(COCONET_ASSERT_CACHED="${2-0}" "$1/adam" 2>&1)" || [[ -n "${2-}" ]] || fail "$1/adam failed: $out"
  echo "$out"
  # A record that was tuned beside other programs may be tuned on.
  [[ "$out" == *"p[0]=-0.0030  "* || (-n "${2-}" && "$out" == *COCONET_ASSERT_CACHED*) ]] ||
    fail "three steps of Adam end elsewhere"
}

mkdir -p "$work/source"
cp -L tests/install/{CMakeLists.txt,Makefile,uses_c.c} examples/adam.cc "$work/source"

cmake -S "$work/source" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$work/cmake"
run "$work/cmake"

export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
make -C "$work/source"
run "$work/source" 1
"$prefix/bin/coconet" sweep --list >/dev/null || fail "coconet does not run"
bash -c 'source "$1" && complete -p coconet >/dev/null' - "$prefix/share/bash-completion/completions/coconet" ||
  fail "bash does not take the completion of coconet"
[[ "$(head -1 "$prefix/share/zsh/site-functions/_coconet")" == "#compdef coconet" ]] ||
  fail "the completion of zsh is not one"

# A program of MPI's, whose communicators are adopted.
if ! command -v mpicc mpirun >/dev/null; then
  echo "install_test.sh: no mpicc and mpirun: uses_mpi.c skipped"
  exit 0
fi
# shellcheck disable=SC2046  # flags are words
mpicc -std=c99 -Wall -Werror $(pkg-config --cflags coconet) tests/install/uses_mpi.c -o "$work/uses_mpi" \
  $(pkg-config --libs coconet)
LD_LIBRARY_PATH="$prefix/lib" mpirun --allow-run-as-root --oversubscribe -n 3 "$work/uses_mpi" ||
  fail "uses_mpi failed"
