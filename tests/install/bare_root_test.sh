#!/usr/bin/env bash
# In a root file system that has the C and C++ run-time libraries only, programs say what is missing when they need it:
# the compiler, MPI, oneDNN. With a compiler and no header they tune; with what was tuned there, they run without.
set -euo pipefail

root="$TEST_TMPDIR/root"
cache=/tmp/cache  # in the root

if ! unshare -rm true 2>/dev/null; then
  echo "bare_root_test.sh: skipped: this kernel lets nobody make a user namespace (unshare -rm)"
  exit 0
fi

fail() {
  echo "bare_root_test.sh: $*" >&2
  exit 1
}

# Copies files, and the shared libraries that they need, to the same places in the root.
copy() {
  local file library
  for file in "$@"; do
    [[ "$file" == /* && -e "$file" ]] || fail "there is no $file to copy"
    file="$(realpath -s "$file")"
    [[ ! -e "$root$file" ]] || continue
    mkdir -p "$root$(dirname "$file")"
    cp -L "$file" "$root$file"
    while read -r library; do copy "$library"; done < <(ldd "$file" 2>/dev/null | grep -o '/[^ ]*' | sort -u)
  done
}

# Runs a command in the root with the given variables, VARIABLE=VALUE... --, its output in `said`. Fails as it does.
inside() {
  local variables=("COCONET_CACHE_DIR=$cache" PATH=/usr/bin)
  while [[ "$1" != -- ]]; do
    variables+=("$1")
    shift
  done
  shift
  said="$(env -i unshare -rm bash -c 'mount --rbind /dev "$0/dev" && mount --rbind /proc "$0/proc" &&
    exec chroot "$0" /usr/bin/env -i "$@"' "$root" "${variables[@]}" "$@" 2>&1)" || return 1
}
refuses() {
  local words="$1"
  shift
  if inside "$@"; then fail "$* did not fail: $said"; fi
  [[ "$said" == *"$words"* ]] || fail "$* says: $said; want: $words"
}

add_compiler() {
  local name
  for name in cc1plus collect2 as ld liblto_plugin.so; do
    local file
    file="$(g++ -print-prog-name="$name")"
    if [[ "$file" != /* ]]; then file="$(type -P "$name" || g++ -print-file-name="$name")"; fi
    copy "$file"
  done
  for name in crti.o crtn.o crtbeginS.o crtendS.o libgcc.a libgcc_s.so libgcc_s.so.1 libstdc++.so libm.so libc.so \
    libc_nonshared.a; do
    copy "$(g++ -print-file-name="$name")"
  done
  copy /usr/include/stdc-predef.h  # which the compiler includes before each source
  copy "$(type -P g++)" "$(ldconfig -p | sed -n 's/.*x86-64.* => \(.*libmvec.so.1\)$/\1/p')"
}

mkdir -p "$root"/{usr/bin,usr/lib,usr/lib64,dev,proc,tmp}
ln -s usr/lib usr/lib64 usr/bin "$root/"
copy /usr/bin/env
for program in examples/adam autotune/sweep; do
  copy "$PWD/$program"
  ln -s "$PWD/$program" "$root/usr/bin/"
done
# A program in C, which has the library beside it.
mkdir "$TEST_TMPDIR/include" && cp -rL autotune/c/library/include/. "$TEST_TMPDIR/include"
install -D autotune/c/library/dlpack.h "$TEST_TMPDIR/include/dlpack/dlpack.h"
gcc -std=c99 "-I$TEST_TMPDIR/include" tests/install/uses_c.c -o "$root/usr/bin/uses_c" \
  autotune/c/library/libcoconet.so.1 "-Wl,-rpath,\$ORIGIN"
copy "$PWD/autotune/c/library/libcoconet.so.1"
ln -s "$PWD/autotune/c/library/libcoconet.so.1" "$root/usr/bin/"
# One rank waits for no other, so a busy machine does not slow it.
tuned=(sweep sgd --N=1000 --ranks=1 --budget=5) another=(sweep adam --N=1000 --ranks=1 --budget=5)
product=(sweep mlp --preset=small --ranks=1 --budget=5 --cache=:none:)

# Nothing but libraries of the C and C++ run time.
refuses "host compiler: want c++, g++ or clang++, have no such program; install g++" -- adam
refuses "host compiler: want c++, g++ or clang++, have no such program; install g++" -- uses_c
refuses "MPI cannot be opened (libmpi.so.40: cannot open shared object file" OMPI_COMM_WORLD_SIZE=2 -- adam

# A compiler, without headers.
add_compiler
inside -- "${tuned[@]}" || fail "with a compiler: $said"
[[ "$said" == *"stored as "* ]] || fail "with a compiler: $said"
inside -- uses_c || fail "in C, with a compiler: $said"
refuses "oneDNN, for matrix products, cannot be opened (libdnnl.so" -- "${product[@]}"

# Without it again: what was tuned runs, another program is refused.
rm "$root/usr/bin/g++"
inside COCONET_ASSERT_CACHED=1 -- "${tuned[@]}" || fail "without a compiler, tuned before: $said"
[[ "$said" == *"cache hit"*"; 0 kernel files compiled"* ]] || fail "without a compiler: $said"
inside COCONET_ASSERT_CACHED=1 -- uses_c || fail "in C, without a compiler, tuned before: $said"
[[ "$said" == "from_cache=1  p[0]=9.0" ]] || fail "in C, without a compiler: $said"
refuses "host compiler: want c++, g++ or clang++, have no such program; install g++" -- "${another[@]}"
