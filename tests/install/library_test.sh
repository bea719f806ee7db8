#!/usr/bin/env bash
# libcoconet.so.1 needs the C library and the compiler's run-time library only, and exports the C interface only.
set -euo pipefail

library=autotune/c/library/libcoconet.so.1

fail() {
  echo "library_test.sh: $*" >&2
  exit 1
}

needed="$(readelf -dW "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
  grep -vxE 'libc\.so\.6|libm\.so\.6|libgcc_s\.so\.1|ld-linux-.*|libstdc\+\+\.so\.6' || true)"
[[ -z "$needed" ]] || fail "it needs $needed"

soname="$(readelf -dW "$library" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')"
[[ "$soname" == libcoconet.so.1 ]] || fail "its soname is $soname"

exported="$(nm -D --defined-only "$library" | awk '{print $3}' | sort)"
foreign="$(grep -vxE 'coconet_[a-z0-9_]+@@COCONET_1|COCONET_1' <<<"$exported" || true)"
[[ -z "$foreign" ]] || fail "it exports $foreign"
grep -qx 'coconet_version@@COCONET_1' <<<"$exported" || fail "it does not export coconet_version"

# The files that find the library have the header's version.
version="$(sed -n 's/^#define COCONET_VERSION_M[AJINOR]* //p' autotune/c/coconet.h | paste -sd.)"
grep -qx "Version: $version" autotune/c/library/coconet.pc || fail "coconet.pc is not of version $version"
