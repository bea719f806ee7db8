#!/usr/bin/env bash
# The differential tests that the arguments choose, on GPUs that are simulated thread for thread.
set -euo pipefail
COCONET_TEST_BACKEND=simt exec tests/differential "$@"
