#!/usr/bin/env bash
# Checks Coconet on this machine's GPU, what never ran on a GPU first: processes that share the GPU, NCCL, faults, exact lines (gpu_probe), then differential tests and
# benchmarks. Needs a driver and the CUDA 13 libraries; uses PyTorch and compute-sanitizer if they are installed. Lies in the folder that
# `bazel build //bench:gpu_check` makes.
#
#   ./gpu_check.sh [--part=1|2] [--out=DIR] [--quick] [--host]
#   ./gpu_check.sh --compile-for=sm_90a
#
# --part: one of two parts, each of at most 5 minutes; without it both. --out: where the logs, rows and tables go (./results). --quick: small sizes. --host: on CPU
# cores and the driver of tests, to try the script itself. --compile-for: only compiles the lines of gpu_probe into ./cubins, which later calls use instead of NVRTC;
# needs no GPU.
# Prints a line for each check, "ok", "FAILED" or "skipped", with its reason and seconds. Each has a limit of its own; none stops a later one. The last line is "N
# passed, N failed, N skipped, N not reached". Exits with 1 if one failed.
set -uo pipefail

readonly here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly part_seconds=${GPU_CHECK_SECONDS:-285} # of a part, so that with its start and end it takes 5 minutes at most
readonly cut_off=124 not_here=3 found=77       # exit codes: of timeout, of what cannot be tried here, of compute-sanitizer
readonly shards=12 most_variants=6             # of differential tests
out=results quick='' host='' parts='1 2' compile_for=''
export COCONET_TEST_BACKEND=cuda
for argument in "$@"; do
  case $argument in
    --part=1 | --part=2) parts=${argument#--part=} ;;
    --out=*) out=${argument#--out=} ;;
    --quick) quick=--quick ;;
    --compile-for=*) compile_for=${argument#--compile-for=} ;;
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
# Large libraries are packed.
find "$here/lib" -name '*.gz' -exec gunzip -f {} +
export LD_LIBRARY_PATH="$here/lib:/usr/local/cuda/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

if [[ -n $compile_for ]]; then
  failed=0
  for lines in "$here"/lines/*.probe; do
    [[ $lines == */quick.probe ]] && continue
    echo "$(basename "$lines")"
    "$here/gpu_probe" "$lines" --compile-for="$compile_for" --cubins="$here/cubins" || failed=1
  done
  exit $failed
fi

mkdir -p "$out"
out=$(cd "$out" && pwd)
export COCONET_CACHE_DIR=${COCONET_CACHE_DIR:-$out/cache}
passed=0 failed=0 skipped=0 unreached=0 deadline=0

# How long a check may take: its limit, or what is left of the part.
left() { # limit
  local rest=$((deadline - SECONDS))
  echo $(($1 < rest ? $1 : rest))
}
say() { # word, name, seconds, reason
  printf '%-8s %s (%d s)%s\n' "$1" "$2" "$3" "${4:+: ${4:0:240}}"
}
judge() { # name, exit code, seconds, log
  local reason
  reason=$(grep -v '^$' "$4" | tail -n 1)
  case $2 in
    0)
      passed=$((passed + 1))
      say ok "$1" "$3" "$reason"
      ;;
    "$not_here")
      skipped=$((skipped + 1))
      say skipped "$1" "$3" "$reason"
      ;;
    *)
      failed=$((failed + 1))
      (($2 == cut_off || $2 == 137)) && reason="its time was over; so far: $reason"
      say FAILED "$1" "$3" "$reason (exit code $2; see $4)"
      ;;
  esac
}
check() { # name, limit in seconds, command...
  local name=$1 limit begin=$SECONDS log=$out/$1.log
  limit=$(left "$2")
  shift 2
  if ((limit < 3)); then
    unreached=$((unreached + 1))
    say 'not run' "$name" 0 'the time of the part was over'
    return
  fi
  timeout --kill-after=5 "$limit" "$@" >"$log" 2>&1 </dev/null
  judge "$name" $? $((SECONDS - begin)) "$log"
}

one_gpu() { # check, limit
  check "$1" "$2" "$here/one_gpu" "$1" ${host:+--fake}
}
torch_job() {
  COCONET_LIBRARY=$here/libcoconet.so.1 PYTHONPATH=$here/python PYTHONDONTWRITEBYTECODE=1 check torch 45 python3 "$here/torch_job.py" $host
}
cubins() { [[ -z $host && -d $here/cubins ]] && echo "--cubins=$here/cubins"; }
probe() { # lines, limit
  local file=$here/lines/$1.probe backend=cuda
  [[ -n $host ]] && file=$here/lines/quick.probe backend=host
  # shellcheck disable=SC2046
  check "$1" "$2" "$here/gpu_probe" "$file" --backend=$backend --json="$out/$1.json" --markdown="$out/$1.md" --line-seconds=30 $quick $(cubins)
  [[ -z $host ]] && cat "$out/$1.md" 2>/dev/null
}

# Only findings of the sanitizer count: it may run kernels one after the other, and ranks that wait for each other then reach their deadlines.
sanitize() { # tool, limit
  local name=sanitizer_$1 log=$out/sanitizer_$1.log begin=$SECONDS limit code
  limit=$(left "$2")
  if [[ -n $host ]] || ! command -v compute-sanitizer >/dev/null; then
    skipped=$((skipped + 1))
    say skipped "$name" 0 "$([[ -n $host ]] && echo 'it is for GPUs' || echo 'compute-sanitizer is not installed')"
    return
  fi
  if ((limit < 3)); then
    unreached=$((unreached + 1))
    say 'not run' "$name" 0 'the time of the part was over'
    return
  fi
  # shellcheck disable=SC2046
  timeout --kill-after=5 "$limit" compute-sanitizer --tool "$1" --error-exitcode "$found" "$here/gpu_probe" "$here/lines/sanitize.probe" --backend=cuda --no-verify \
    --no-isolate --quick $(cubins) >"$log" 2>&1
  code=$?
  if ((code == found)) || grep -q 'ERROR SUMMARY: [1-9]' "$log"; then
    judge "$name" "$found" $((SECONDS - begin)) "$log"
  elif grep -q 'ERROR SUMMARY: 0' "$log"; then
    judge "$name" 0 $((SECONDS - begin)) "$log"
  else
    skipped=$((skipped + 1))
    say skipped "$name" $((SECONDS - begin)) "it says nothing (exit code $code; see $log)"
  fi
}

# The interpreter and the compiler run on the host, so several processes run at once, of which one at a time has ranks on the GPU.
differential() { # limit
  local limit begin=$SECONDS pids=() shard code log ran=0 wrong=0 planned=0
  limit=$(left "$1")
  if ((limit < 3)); then
    unreached=$((unreached + 1))
    say 'not run' differential 0 'the time of the part was over'
    return
  fi
  for ((shard = 0; shard < shards; ++shard)); do
    GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard TEST_TMPDIR=$(mktemp -d) \
      timeout --kill-after=5 "$limit" "$here/differential" --most_variants="$most_variants" --gpu_lock="$out/gpu.lock" >"$out/tests.$shard.log" 2>&1 &
    pids+=($!)
  done
  for ((shard = 0; shard < shards; ++shard)); do
    wait "${pids[shard]}"
    code=$?
    log=$out/tests.$shard.log
    if grep -q '^skipped: ' "$log"; then
      judge differential "$not_here" $((SECONDS - begin)) "$log"
      return
    fi
    ran=$((ran + $(grep -c '^\[       OK \]' "$log")))
    wrong=$((wrong + $(grep -cE '^\[  FAILED  \] .* \([0-9]+ ms\)$' "$log")))
    planned=$((planned + $(sed -n 's/^\[==========\] Running \([0-9]*\) tests\? .*/\1/p' "$log" | grep . || echo 0)))
    if ((code != 0 && code != cut_off && code != 137)) && ! grep -q '^\[  FAILED  \]' "$log"; then wrong=$((wrong + 1)); fi
  done
  echo "$ran tests passed, $wrong failed, $((planned - ran - wrong)) not reached, with at most $most_variants variants of each program" >"$out/differential.log"
  judge differential $((wrong > 0 || ran == 0)) $((SECONDS - begin)) "$out/differential.log"
}

benchmarks() { # limit
  [[ -z $host ]] && timeout --kill-after=5 "$(left 45)" python3 "$here/torch_adam.py" ${quick:+--elements=65536} >"$out/torch.txt" 2>"$out/torch_adam.log"
  check benchmarks "$1" "$here/gpu" $quick $host --torch="$out/torch.txt" --json="$out/gpu.json" --markdown="$out/gpu.md"
}

part_1() {
  one_gpu multicast 15
  one_gpu ipc 40
  one_gpu files 20
  one_gpu nccl_one 30
  one_gpu nccl_two 60
  torch_job
  one_gpu fault 20
  one_gpu late 20
  probe ceilings 40
  probe adam 75
  probe gather 30
}
part_2() {
  probe mlp 75
  probe tiles 45
  probe fused 50
  probe awaited 40
  probe dispatch 20
  check floor 30 "$here/$([[ -n $host ]] && echo fake_driver || echo gpu_dispatch)" $quick --json="$out/floor.json"
  sanitize memcheck 40
  sanitize racecheck 40
  differential 90
  benchmarks 180
}

nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.mem --format=csv,noheader 2>/dev/null | tee "$out/machine.txt"
for part in $parts; do
  deadline=$((SECONDS + part_seconds))
  "part_$part"
done
echo "$passed passed, $failed failed, $skipped skipped, $unreached not reached"
((failed == 0))
