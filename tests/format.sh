#!/usr/bin/env bash
# Formats all C++ sources with the pinned clang-format, which `./setup.sh --formatter` installs.
#
#   tests/format.sh           formats in place
#   tests/format.sh --check   changes nothing; names what is not formatted, and fails if there is any
# Both name lines longer than 100 columns, which no formatter breaks, and fail if there are any.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."

home="${HOME:-$(getent passwd "$EUID" | cut -d: -f6)}"
formatter="${XDG_DATA_HOME:-$home/.local/share}/coconet/formatter"
if ! cmp -s third_party/format/requirements.txt "$formatter/requirements.txt"; then
  echo "format.sh: the pinned clang-format is not installed; run ./setup.sh --formatter" >&2
  exit 1
fi
mapfile -t sources < <(git ls-files '*.cc' '*.h')

case "${1-}" in
  "") "$formatter/clang_format/data/bin/clang-format" -i "${sources[@]}" ;;
  --check) "$formatter/clang_format/data/bin/clang-format" --dry-run --Werror "${sources[@]}" ;;
  *)
    echo "format.sh: unknown argument $1; want none or --check" >&2
    exit 1
    ;;
esac
if grep -nE '^.{101,}' "${sources[@]}"; then
  echo "format.sh: these lines are longer than 100 columns" >&2
  exit 1
fi
