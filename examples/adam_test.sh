#!/usr/bin/env bash
# The example runs; run again, it tunes nothing. After three steps of Adam with one gradient p is 3 lr below where it was.
set -euo pipefail

export COCONET_CACHE_DIR="$TEST_TMPDIR/cache"

check() {
  local out
  out="$(examples/adam)"
  echo "$out"
  [[ "$out" == "from_cache=$1  p[0]=-0.0030  "* ]]
}

check 0
# A record that was tuned beside other programs may be tuned on by the next runs, at most twice.
check 1 || check 1 || check 1
COCONET_ASSERT_CACHED=1 check 1
