#!/usr/bin/env bash
# Opens the pages that the first argument, a program, writes: pages_test.py.
set -euo pipefail
PYTHONDONTWRITEBYTECODE=1 exec /usr/bin/python3 tests/commands/pages_test.py "$@"
