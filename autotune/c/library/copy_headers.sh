#!/usr/bin/env bash
# Copies headers, and those of this project that they include, into a folder.
#
#   copy_headers.sh FOLDER HEADER...     HEADER: a path as it is included, or FILE=NAME to be named so at the root
#
# Headers are looked for in the working folder; those that are not there belong to other libraries.
set -euo pipefail
folder="$1"
shift

declare -A seen=()
# Copies $1 and what it includes, unless that has been done.
copy() {
  local header="$1" included
  [[ -z "${seen[$header]-}" ]] || return 0
  seen[$header]=1
  install -D -m 644 "$header" "$folder/$header"
  while read -r included; do
    if [[ -f "$included" ]]; then copy "$included"; fi
  done < <(sed -n 's/^#include "\([^"]*\)".*/\1/p' "$header")
}

for header in "$@"; do
  if [[ "$header" == *=* ]]; then
    install -D -m 644 "${header%=*}" "$folder/${header#*=}"
  else
    copy "$header"
  fi
done
