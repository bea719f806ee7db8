#!/usr/bin/env bash
# Fuzzes what the library reads from outside, under the address and the undefined behaviour sanitizers: programs' text,
# schedules' traces, configs' text, lines of gpu_probe, rows of a tuning cache, exports of records, and HLO.
#
#   tests/fuzz/run.sh [--runs=1000000] [--seed=N] [--only=program,trace,config,probe,row,import,hlo] [--findings=FOLDER] [FILE]...
#
#     --runs      inputs of each
#     --seed      of all that is drawn; without it, one that differs from run to run and is printed
#     --only      of these only
#     --findings  where inputs go that break something; without it, ./findings
#     FILE        with --only of one: runs these inputs instead, as findings are repeated
#
# A finding is a sanitizer's report, a broken invariant, an input that takes longer than 30 s or more than 2 GB, or memory
# that is never freed. Exits with 0 only if there is none. Takes clang: ./setup.sh --fuzzers.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."

readonly ALL=(program trace config probe row import hlo)
readonly LIMITS=(-timeout=30 -rss_limit_mb=2048 -malloc_limit_mb=1024 -max_len=4096)

die() {
  echo "run.sh: $*" >&2
  exit 2
}

runs=1000000 seed=$((RANDOM * 32768 + RANDOM + 1)) findings="$PWD/findings"
only=("${ALL[@]}") files=()
for arg in "$@"; do
  case "$arg" in
    --runs=*) runs="${arg#*=}" ;;
    --seed=*) seed="${arg#*=}" ;;
    --only=*) IFS=, read -ra only <<<"${arg#*=}" ;;
    --findings=*) findings="$(readlink -f "${arg#*=}")" ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit ;;
    -*) die "unknown argument $arg (see --help)" ;;
    *) files+=("$(readlink -f "$arg")") ;;
  esac
done
[[ "$runs" =~ ^[1-9][0-9]*$ ]] || die "--runs=$runs: want a number"
[[ "$seed" =~ ^[1-9][0-9]*$ ]] || die "--seed=$seed: want a number"
for name in "${only[@]}"; do
  [[ " ${ALL[*]} " == *" $name "* ]] || die "--only=$name: want some of ${ALL[*]}"
done
((!${#files[@]} || ${#only[@]} == 1)) || die "with files, want --only of the one that they are for"
[[ -n "$(type -P clang)" ]] || die "clang is missing: ./setup.sh --fuzzers installs it"

bazel build --config=fuzz //tests/fuzz:{seeds,program_fuzzer,trace_fuzzer,config_fuzzer,probe_fuzzer,row_fuzzer,import_fuzzer,hlo_fuzzer}
bin="$(bazel info --config=fuzz bazel-bin 2>/dev/null)/tests/fuzz"

# Files in memory, since the fuzzer of rows writes many.
work="$(mktemp -d -p "$([[ -w /dev/shm ]] && echo /dev/shm || echo /tmp)")"
trap 'rm -rf "$work"' EXIT
export TMPDIR="$work" UBSAN_OPTIONS=print_stacktrace=1
if ((${#files[@]})); then
  "$bin/${only[0]}_fuzzer" "${LIMITS[@]}" "${files[@]}"
  exit
fi

"$bin/seeds" "$work/seeds"
mkdir -p "$findings"
echo "--seed=$seed"
failed=0
for name in "${only[@]}"; do
  mkdir "$work/$name"
  if "$bin/${name}_fuzzer" "${LIMITS[@]}" -runs="$runs" -seed="$seed" -print_funcs=0 -print_final_stats=1 \
    -artifact_prefix="$findings/$name-" "$work/$name" "$work/seeds/$name" >"$work/log" 2>&1; then
    echo "$name: no finding in $(sed -n 's/^stat::number_of_executed_units: //p' "$work/log") inputs;" \
      "the slowest took $(sed -n 's/^stat::slowest_unit_time_sec: //p' "$work/log") s"
  else
    failed=1
    grep -v '# Uses:' "$work/log" | tail -60
    echo "$name: FINDING. Again: tests/fuzz/run.sh --only=$name $findings/$name-*"
  fi
done
rmdir --ignore-fail-on-non-empty "$findings"
exit $failed
