#!/usr/bin/env bash
# Runs the tests of the Python package, and others that use PyTorch or JAX, with PyPI's current releases.
set -uo pipefail

if [[ -z "${COCONET_PYPI_PYTHON-}" ]]; then
  echo "pypi_test.sh: skipped: ./setup.sh --pypi installs what it needs"
  exit 0
fi
export COCONET_PYTHON="$COCONET_PYPI_PYTHON"

failed=()
run() {
  local log="$TEST_TMPDIR/log"
  echo "+ $*"
  env -u XML_OUTPUT_FILE "$@" 2>&1 | tee "$log"
  ((PIPESTATUS[0] == 0)) && ! grep -qi "skipped" "$log" || failed+=("$*")
}

for test in program package group random documents mpi jax float8 torch torch_options torch_objects diverging; do run tests/python/run.sh "${test}_test.py"; done
run env COCONET_TEST_SEQUENCES=400 tests/python/run.sh torch_sequences_test.py
run tests/python/wheel_test.sh
run tests/torch_test
run bench/hlo/jax_test
run tests/hlo_cases_test --modules=400 --compiled=40
((${#failed[@]} == 0)) || {
  printf 'failed, or skipped what is there to be run: %s\n' "${failed[@]}" >&2
  exit 1
}
