#!/usr/bin/env bash
# Runs lines on host ranks and on simulated GPUs, wrong ones between right ones.
set -euo pipefail

probe=$PWD/bench/probe/gpu_probe agenda=$PWD/bench/probe/lines
cd "$TEST_TMPDIR"
export COCONET_CACHE_DIR=$TEST_TMPDIR/cache HOME=$TEST_TMPDIR
fail() {
  echo "FAILED: $*" >&2
  cat out.txt err.txt >&2
  exit 1
}
run() { # expected exit code, arguments
  local want=$1 code=0
  shift
  "$probe" "$@" >out.txt 2>err.txt || code=$?
  ((code == want)) || fail "exit code $code, want $want: $*"
}

cat >my.coco <<'PROGRAM'
coconet 1
program mine

input g : f32[N] local
state p : f32[N] replicated

update(p, p - all_reduce(sum, g))
PROGRAM
cat >lines.probe <<'LINES'
# right and wrong lines
adam | N=5003 ranks=2 | fuse(RS, C, AG); slice m v | vec=4
adam | N=5003 ranks=2 | fuse(RS, C, AG); slice m w | vec=4
adam | N=5003 ranks=2 | AR; fuse(C) | vec=3
my.coco | N=100 ranks=2 | split(%2, 0); fuse(%2 %3) | *
my.coco | N=100 ranks=2 | split(%99, 0)
my.coco | N=100 ranks=2
adan | N=4
copy | bytes=64Ki ranks=2
a | b | c | d | e
LINES

run 1 lines.probe --quick --json=host.json
grep -q '^2 .*at [0-9]* small size.*vec=4.*fuse(RS, C, AG); slice m v' out.txt || fail "line 2"
grep -q '^3 .*FAILED: schedule .*none has these words.*the nearest are "fuse(RS, C, AG); slice m v"' out.txt || fail "line 3"
grep -q '^4 .*FAILED: config .*want vec a power of two.*the nearest are' out.txt || fail "line 4"
grep -q '^6 .*FAILED: schedule "split(%99, 0)" of mine.*the nearest are' out.txt || fail "line 6"
grep -q '^7 .*AR; fuse(C)' out.txt || fail "line 7"
grep -q "^8 .*FAILED: program: unknown workload 'adan'" out.txt || fail "line 8"
grep -q '^9 .*copy' out.txt || fail "line 9"
grep -q '^10 .*FAILED: line 10: want .program | sizes' out.txt || fail "line 10"
grep -q '"of_copy": [0-9]' host.json || fail "no share of a copy"
grep -q 'rows failed' err.txt || fail "no count of failures"

# Simulated GPUs: the kernels of a GPU, verified.
grep -v '^copy' lines.probe >simt.probe
run 1 simt.probe --quick --backend=simt
grep -q '^2 .*at [0-9]* small size.*threads=' out.txt || fail "line 2 on simulated GPUs"
[[ $(grep -c FAILED out.txt) == 5 ]] || fail "lines on simulated GPUs"

# Without verification.
run 0 <(sed -n 2p lines.probe) --quick --no-verify
grep -q 'small size' out.txt && fail "it was verified"

# What cannot be run at all.
: >empty.probe
run 2 empty.probe
grep -q 'no line to run' err.txt || fail "an empty file"
run 2 missing.probe
run 2 lines.probe --backend=tpu
run 2
head -c 4096 /dev/urandom >binary.probe
run 1 binary.probe
run 1 <(echo 'adam | N=4') --cubins=/nowhere
grep -q -- '--cubins: only GPUs run cubins' out.txt || fail "cubins on hosts"
run 1 <(echo 'adam | N=4') --backend=cuda
grep -q 'FAILED: the CUDA driver' out.txt || [[ -e /dev/nvidiactl ]] || fail "no driver"

# Ctrl-C ends it after the line that runs, and the rest says so.
for i in {1..50}; do sed -n 2p lines.probe; done >many.probe
: >many.txt
"$probe" many.probe --seconds=1 >out.txt 2>many.txt &
pid=$!
until grep -q 'line 1:' many.txt; do sleep 0.1; done
kill -TERM $pid
code=0
wait $pid || code=$?
((code == 130)) || fail "exit code $code after SIGTERM"
grep -q '^50 .*FAILED: interrupted before it ran' out.txt || fail "interrupted"

# In one process.
run 1 lines.probe --quick --no-isolate --copy=0
grep -q '^2 .*at [0-9]* small size' out.txt || fail "line 2 in one process"
[[ $(grep -c FAILED out.txt) == 5 ]] || fail "wrong lines in one process"

# Compiled for GPUs that are not here, where NVRTC is; else an error says what is missing.
code=0
"$probe" simt.probe --compile-for=sm_90a --cubins=carried >out.txt 2>err.txt || code=$?
((code == 1)) || fail "exit code $code of --compile-for"
if grep -q 'line 2: compiled' err.txt; then
  ls carried/*.sm_90a.cubin >/dev/null || fail "no cubins"
  grep -q 'line 3: FAILED: schedule' err.txt || fail "a wrong line was compiled"
  # The lines for the next run on a GPU name what there is.
  for lines in "$agenda"/*.probe; do
    [[ $lines == */quick.probe ]] || run 0 "$lines" --compile-for=sm_90a --cubins=carried
  done
else
  grep -qi 'nvrtc' err.txt || fail "no word of NVRTC"
fi
run 2 simt.probe --compile-for=sm_90a
