#!/usr/bin/env bash
# pack.sh OUT.tar PROGRAM... -- SCRIPT... -- FILE...: packs one folder, gpu_check, with the programs, the scripts, the files (lines of gpu_probe in lines/, the Python
# package in python/, others in programs/), and the shared libraries that the programs load. Not glibc's; nor the driver's and CUDA's, which are opened at run time
# and must be the other machine's.
set -euo pipefail

out=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/gpu_check/lib" "$folder/gpu_check/programs" "$folder/gpu_check/lines" "$folder/gpu_check/python"
while [[ "$1" != -- ]]; do
  cp -L "$1" "$folder/gpu_check/"
  ldd "$1" | awk '$2 == "=>" && $3 ~ "^/" {print $3}' | grep -Ev '/(libc|libm|libdl|librt|libpthread|libresolv|ld-linux[^/]*)\.so' |
    while read -r library; do cp -Ln "$library" "$folder/gpu_check/lib/"; done
  shift
done
shift
while [[ "$1" != -- ]]; do
  cp -L "$1" "$folder/gpu_check/"
  shift
done
shift
for file in "$@"; do
  case $file in
    bench/probe/lines/*) cp -L "$file" "$folder/gpu_check/lines/" ;;
    python/*)
      mkdir -p "$folder/gpu_check/$(dirname "$file")"
      cp -L "$file" "$folder/gpu_check/$file"
      ;;
    *) cp -L "$file" "$folder/gpu_check/programs/" ;;
  esac
done
chmod -R u+w "$folder"
find "$folder/gpu_check" -maxdepth 1 -type f -size +1M -exec strip --strip-unneeded {} +
# The folder is copied to the machine with the GPU in each check: it should stay small. Much of it is oneDNN's library, which the script unpacks.
find "$folder/gpu_check/lib" -type f -size +8M -exec gzip -n -9 {} +
mib=$(du -sm "$folder/gpu_check" | cut -f1)
if ((mib > 80)); then
  echo "pack.sh: gpu_check has $mib MiB, want at most 80" >&2
  exit 1
fi
tar -C "$folder" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf "$out" gpu_check
