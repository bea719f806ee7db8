#!/usr/bin/env bash
# Rewrites tests/goldens, coconet/programs and python/coconet/_elementwise.py in the checkout with
# what the library makes now: bazel run //tests:update_goldens, and then look at the difference.
set -euo pipefail
tests/write_goldens "${BUILD_WORKSPACE_DIRECTORY:?use bazel run //tests:update_goldens}"
