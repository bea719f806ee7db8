#!/usr/bin/env bash
# Runs torch_bench.py with this checkout's package and library.
set -euo pipefail

export COCONET_LIBRARY="${COCONET_LIBRARY:-$PWD/autotune/c/library/libcoconet.so.1}"
export PYTHONPATH="$PWD/python" PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 bench/torch/torch_bench.py "$@"
