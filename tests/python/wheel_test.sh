#!/usr/bin/env bash
# The wheel installs into a fresh virtual environment, without a network, and runs there.
set -euo pipefail

python="${COCONET_PYTHON:-/usr/bin/python3}"
library="${COCONET_LIBRARY:-$PWD/autotune/c/library/libcoconet.so.1}"
unset COCONET_LIBRARY PYTHONPATH
export COCONET_CACHE_DIR="$TEST_TMPDIR/cache"

build() {
  "$python" python/build_wheel.py --library="$library" --license=LICENSE --out="$TEST_TMPDIR/$1"
}
wheel="$(build dist)"
again="$(build again)"
cmp "$wheel" "$again"
[[ "$(basename "$wheel")" == coconet-*-py3-none-linux_*.whl ]]

"$python" -m venv "$TEST_TMPDIR/venv"
"$TEST_TMPDIR/venv/bin/python" -m pip install -q --disable-pip-version-check \
  --no-index --no-deps "$wheel"
example="$PWD/examples/sgd_momentum.coco"
cd "$TEST_TMPDIR"
venv/bin/python -m coconet sweep --list >/dev/null
venv/bin/coconet sweep --list >/dev/null
[[ "$(venv/bin/coconet --version)" == "coconet $(venv/bin/python -c 'import coconet; print(coconet.version())')" ]]
words="$(venv/bin/coconet swep 2>&1)" && exit 1
[[ "$words" == *"did you mean 'sweep'?"* ]]
venv/bin/python - "$example" <<'END'
import coconet
import sys

with coconet.Session(cache_file=":none:", effort="fast", budget=5) as session:
    tuned = session.compile(sys.argv[1], M=10, N=100)
    print(coconet.version(), tuned.tensors)
    array = session.allocate("f32", 4)
    assert array.shape == (4,) and coconet.__file__.startswith(sys.prefix)
END
! venv/bin/python -m coconet nothing
venv/bin/python -m pip uninstall -q -y coconet
[[ ! -e venv/bin/coconet ]]
