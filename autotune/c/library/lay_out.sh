#!/usr/bin/env bash
# Lays out an installation below PREFIX from the files that `bazel build //autotune/c/library:files` makes, and prints
# what it wrote. Nothing in it names PREFIX: it may be moved. Running it again replaces the files.
#
#   lay_out.sh BUILT PREFIX     BUILT: bazel-bin, or a folder of the same layout
set -euo pipefail
built="$1" prefix="$2"
files="$built/autotune/c/library"

die() {
  echo "lay_out.sh: $*" >&2
  exit 1
}
# Puts file $2 at PREFIX/$3 with mode $1.
put() {
  install -D -m "$1" "$2" "$prefix/$3" || die "cannot write $prefix/$3"
  echo "$prefix/$3"
}

[[ -f "$files/libcoconet.so.1" ]] || die "$built has no autotune/c/library/libcoconet.so.1: build it first"

put 755 "$files/libcoconet.so.1" lib/libcoconet.so.1
ln -sfn libcoconet.so.1 "$prefix/lib/libcoconet.so"
put 644 "$files/libcoconet_cxx.a" lib/libcoconet_cxx.a
put 644 "$files/coconet.pc" lib/pkgconfig/coconet.pc
put 644 "$files/coconet-cxx.pc" lib/pkgconfig/coconet-cxx.pc
put 644 "$files/coconetConfig.cmake" lib/cmake/coconet/coconetConfig.cmake
put 644 "$files/coconetConfigVersion.cmake" lib/cmake/coconet/coconetConfigVersion.cmake
put 755 "$built/autotune/coconet" bin/coconet
put 644 "$files/completion.bash" share/bash-completion/completions/coconet
put 644 "$files/completion.zsh" share/zsh/site-functions/_coconet
# The commands of earlier installations.
rm -f "$prefix/bin/sweep" "$prefix/bin/cache"

# Headers of an earlier installation that are no longer public go.
include="$prefix/include/coconet-1"
rm -rf "$include"
while IFS= read -r header; do
  install -D -m 644 "$files/include/$header" "$include/$header" || die "cannot write $include/$header"
done < <(cd "$files/include" && find -L . -type f -printf '%P\n' | sort)
install -D -m 644 "$files/dlpack.h" "$include/dlpack/dlpack.h"
echo "$include"
