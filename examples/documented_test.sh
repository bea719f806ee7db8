#!/usr/bin/env bash
# docs/programs.md shows examples/adam.cc as it is.
set -eu
code="$(sed -n '/^absl::StatusOr<Graph> Adam/,$p' examples/adam.cc)"
shown="$(sed -n '/^```cpp$/,/^```$/p' docs/programs.md | sed '1d;$d')"
if [[ "$shown" != "$code" ]]; then
  echo "docs/programs.md: want the code of examples/adam.cc; differences:"
  diff <(echo "$code") <(echo "$shown") || true
  exit 1
fi
echo "docs/programs.md shows examples/adam.cc"
