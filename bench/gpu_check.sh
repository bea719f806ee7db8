#!/usr/bin/env bash
# Checks Coconet on this machine's GPU: differential tests on the device, then benchmarks. Needs a driver and the CUDA 13 libraries; also measures PyTorch if it is
# installed. Lies in the folder that `bazel build //bench:gpu_check` makes.
#
#   ./gpu_check.sh [--out=DIR] [--tests-only] [--test-seconds=N] [--quick] [--host]
#
# --test-seconds: how long the tests may take (150); those that are not reached are counted, not failed. --quick: small sizes; --host: on CPU cores, to try the
# script itself.
# Writes DIR/gpu.json, DIR/gpu.md and the logs (default: ./results). The last line is "N passed, N failed". Stops after 8 minutes in all.
set -uo pipefail

readonly here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly shards=12 most_variants=6 sanitizer_seconds=90 torch_seconds=50 bench_seconds=220
out=results quick='' tests_only='' host='' test_seconds=150
export COCONET_TEST_BACKEND=cuda
for argument in "$@"; do
  case $argument in
    --out=*) out=${argument#--out=} ;;
    --tests-only) tests_only=yes ;;
    --test-seconds=*) test_seconds=${argument#--test-seconds=} ;;
    --quick) quick=--quick ;;
    --host)
      host=--host
      COCONET_TEST_BACKEND=host
      ;;
    *)
      sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
      exit 2
      ;;
  esac
done
mkdir -p "$out"
out=$(cd "$out" && pwd)
export COCONET_CACHE_DIR=${COCONET_CACHE_DIR:-$out/cache}
failed=0 passed=0 planned=0

# Large libraries are packed.
find "$here/lib" -name '*.gz' -exec gunzip -f {} +

with_libraries() {
  LD_LIBRARY_PATH="$here/lib:/usr/local/cuda/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$@"
}
judge() { # name, exit code
  if (($2 == 0)); then
    passed=$((passed + 1))
    echo "ok      $1"
  else
    failed=$((failed + 1))
    echo "FAILED  $1 (exit code $2; see $out)"
  fi
}

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null | tee "$out/machine.txt"

# Kernels under CUDA's sanitizer, where it is installed. It may serialise kernels: then ranks that wait for each other reach their deadlines, which is no fault of
# the kernels, so only its findings count.
readonly found=77 cut_off=124  # by timeout
sanitize() { # tool, ranks
  timeout "$sanitizer_seconds" compute-sanitizer --tool "$1" --error-exitcode "$found" "$here/sweep" adam --N=1003 --ranks="$2" --backend=cuda --budget=70 \
    --only="fuse(RS, C, AG)" --cache=:none: >"$out/sanitizer.$1.$2.log" 2>&1
}
sanitizers=()
if [[ -z $host ]] && command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck; do
    with_libraries sanitize "$tool" 2 &
    sanitizers+=("$tool of 2 ranks:$!")
  done
fi

# The interpreter and the compiler run on the host, so several processes run at once, of which one at a time has ranks on the GPU.
pids=()
for ((shard = 0; shard < shards; ++shard)); do
  GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard TEST_TMPDIR=$(mktemp -d) \
    with_libraries timeout "$test_seconds" "$here/differential" --most_variants="$most_variants" --gpu_lock="$out/gpu.lock" >"$out/tests.$shard.log" 2>&1 &
  pids+=($!)
done
for ((shard = 0; shard < shards; ++shard)); do
  wait "${pids[shard]}"
  code=$?
  log=$out/tests.$shard.log
  if grep -q '^skipped: ' "$log"; then
    head -n 1 "$log"
    echo "0 passed, 0 failed"
    exit 0
  fi
  passed=$((passed + $(grep -c '^\[       OK \]' "$log")))
  failed=$((failed + $(grep -cE '^\[  FAILED  \] .* \([0-9]+ ms\)$' "$log")))
  planned=$((planned + $(sed -n 's/^\[==========\] Running \([0-9]*\) tests\? .*/\1/p' "$log" | grep . || echo 0)))
  if ((code == cut_off)) && grep -q '^\[       OK \]' "$log"; then continue; fi
  if ((code != 0)) && ! grep -q '^\[  FAILED  \]' "$log"; then judge "tests, part $shard: $(tail -n 1 "$log")" "$code"; fi
done
unreached=$((planned - passed - failed))
for sanitizer in "${sanitizers[@]}"; do
  wait "${sanitizer##*:}"
  code=$?
  if ((code == 0 || code == found)); then judge "${sanitizer%:*}" "$code"; else echo "${sanitizer%:*} says nothing (exit code $code; see $out)"; fi
done
echo "tests: $passed passed, $failed failed, $unreached not reached in $test_seconds s, with at most $most_variants variants of each program"

if [[ -z $tests_only ]]; then
  timeout "$torch_seconds" python3 "$here/torch_adam.py" ${quick:+--elements=65536} >"$out/torch.txt" 2>"$out/torch.log" || echo "PyTorch is not measured: $(tail -n 1 "$out/torch.log")"
  with_libraries timeout "$bench_seconds" "$here/gpu" $quick $host --torch="$out/torch.txt" --json="$out/gpu.json" --markdown="$out/gpu.md" 2>"$out/gpu.log"
  judge benchmarks $?
fi
echo "$passed passed, $failed failed"
((failed == 0))
