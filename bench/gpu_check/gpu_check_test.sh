#!/usr/bin/env bash
# Tests the folder for machines with a GPU on this machine's cores: it is complete, its script counts passes, failures and what it skips, and goes on after a failure.
set -euo pipefail

tar xf bench/gpu_check.tar -C "$TEST_TMPDIR"
cd "$TEST_TMPDIR"
check() { env -i PATH="$PATH" HOME="$TEST_TMPDIR" GPU_CHECK_SECONDS="${GPU_CHECK_SECONDS:-285}" GTEST_FILTER='*Dropout*' gpu_check/gpu_check.sh --host --quick "$@"; }
fail() {
  echo "FAILED: $*" >&2
  cat ./*.txt >&2
  tail -n 30 good/*.log bad/*.log >&2 || true
  exit 1
}

check --part=1 --out=good >good.txt || fail "part 1"
for name in multicast ipc files nccl_one nccl_two fault late ceilings adam gather; do
  grep -q "^ok  *$name " good.txt || fail "$name"
done
grep -Eq '^(ok|skipped) +torch ' good.txt || fail torch
tail -n 1 good.txt | grep -Eq '^1[01] passed, 0 failed, [01] skipped, 0 not reached$' || fail "the count of part 1"

check --part=2 --out=good >part2.txt || fail "part 2"
for name in mlp tiles fused awaited dispatch floor differential benchmarks; do
  grep -q "^ok  *$name " part2.txt || fail "$name"
done
tail -n 1 part2.txt | grep -Eq '^8 passed, 0 failed, 2 skipped, 0 not reached$' || fail "the count of part 2"
grep -q '"of_copy": [0-9]' good/gpu.json || fail "rows of the benchmarks"
grep -q '"line": 2' good/adam.json || fail "rows of the probe"

# A program that does not start is a failure, and one that hangs; what comes after them runs.
mv gpu_check/one_gpu .
ln -s /dev/null gpu_check/one_gpu
printf '#!/bin/bash\nsleep 1000\n' >gpu_check/gpu_probe
if GPU_CHECK_SECONDS=20 check --part=1 --out=bad >bad.txt; then fail "it did not fail"; fi
[[ $(grep -c '^FAILED  *\(multicast\|ipc\|files\|nccl_one\|nccl_two\|fault\|late\) ' bad.txt) == 7 ]] || fail "programs that do not start"
grep -q '^FAILED  *ceilings .*its time was over' bad.txt || fail "a program that hangs"
grep -q '^not run  *gather ' bad.txt || fail "the end of a part"
tail -n 1 bad.txt | grep -Eq '^[01] passed, [0-9]+ failed, [01] skipped, [12] not reached$' || fail "the count of failures"
