#!/usr/bin/env bash
# Runs every command of docs/production.md, in order, with the outcome that the page gives: a line that ends with
# "# fails: TEXT" fails with that text, one with "# prints: TEXT" prints it. Root can write what is read-only, so as root
# the commands run as the user nobody.
set -euo pipefail

scratch="$(mktemp -d /tmp/coconet-production-XXXXXX)"
trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
mkdir -p "$scratch"/bazel-bin/{examples,autotune} "$scratch"/tmp
cp examples/serve "$scratch"/bazel-bin/examples/
cp autotune/coconet "$scratch"/bazel-bin/autotune/
sed -n '/^```sh$/,/^```$/p' docs/production.md | sed '/^```/d' >"$scratch/commands"
as_user=()
if [[ $EUID -eq 0 ]]; then
  command -v setpriv >/dev/null || { echo "no setpriv: skipped"; exit 0; }
  chown -R 65534:65534 "$scratch"
  as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
fi
cd "$scratch"
unset COCONET_CACHE_DIR COCONET_TRACE
export TMPDIR="$scratch/tmp" HOME="$scratch"

run=0
while IFS= read -r line; do
  [[ -z "$line" ]] && continue
  code=0
  out="$("${as_user[@]}" bash -c "${line%%  #*}" 2>&1)" || code=$?
  echo "$ $line"
  echo "$out"
  case "$line" in
    *'# fails: '*) want="${line##*# fails: }"; [[ $code -ne 0 ]] ;;
    *'# prints: '*) want="${line##*# prints: }"; [[ $code -eq 0 ]] ;;
    *) want=""; [[ $code -eq 0 ]] ;;
  esac || { echo "exit code $code of: $line"; exit 1; }
  [[ "$out" == *"$want"* ]] || { echo "want in its output: $want"; exit 1; }
  run=$((run + 1))
done <commands
[[ $run -ge 8 ]] || { echo "only $run commands in docs/production.md"; exit 1; }

# What is read-only stays as it was: no journal, lock or binary was added.
[[ -z "$(find shipped -newer shipped.made -print)" ]] || { find shipped -newer shipped.made; exit 1; }
