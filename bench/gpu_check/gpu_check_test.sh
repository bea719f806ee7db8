#!/usr/bin/env bash
# Tests the folder for machines with a GPU on this machine's cores: it is complete, and its script counts passes and failures.
set -euo pipefail

tar xf bench/gpu_check.tar -C "$TEST_TMPDIR"
cd "$TEST_TMPDIR"
check() { env -i PATH="$PATH" HOME="$TEST_TMPDIR" GTEST_FILTER='*Dropout*' gpu_check/gpu_check.sh --host --quick "$@"; }

check --out=good | tee good.txt
tail -n 1 good.txt | grep -Eq '^[1-9][0-9]* passed, 0 failed$'
grep -q '"of_copy": [0-9]' good/gpu.json
grep -q '^| adam | 2 ' good/gpu.md

# A program that does not start is a failure.
mv gpu_check/gpu .
ln -s /dev/null gpu_check/gpu
if check --out=bad >bad.txt; then exit 1; fi
tail -n 1 bad.txt | grep -Eq '^[1-9][0-9]* passed, 1 failed$'
