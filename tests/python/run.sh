#!/usr/bin/env bash
# Runs a test of the Python package: run.sh TEST.py ARGUMENTS... COCONET_PYTHON names another
# interpreter.
set -euo pipefail

test="$1"
shift
export COCONET_CACHE_DIR="$TEST_TMPDIR/cache" PYTHONDONTWRITEBYTECODE=1
export COCONET_LIBRARY="${COCONET_LIBRARY:-$PWD/autotune/c/library/libcoconet.so.1}"
export PYTHONPATH="$PWD/python:$PWD/tests/python"
exec "${COCONET_PYTHON:-/usr/bin/python3}" "tests/python/$test" "$@"
