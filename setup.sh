#!/usr/bin/env bash
# Installs what `bazel test //...` needs on Debian 12 and prints what it found. Running it again is harmless.
#
#   ./setup.sh [--cuda=auto|system|wheels|none]     (--no-cuda is --cuda=none; in the environment: COCONET_CUDA)
#
#     auto    the toolkit at CUDA_HOME or /usr/local/cuda; else the wheels; else a build without CUDA (the default)
#     system  the toolkit at CUDA_HOME or /usr/local/cuda
#     wheels  CUDA's wheels from PyPI, pinned, in a private prefix that no other program sees
#     none    a build without CUDA
#
#   Beside a toolkit without nvdisasm, which reads the machine code of kernels in tests, comes that of PyPI.
#
#   ./setup.sh --install=PREFIX also builds the library for other programs, and lays it out in the folder PREFIX: lib,
#                               include, bin, files for pkg-config and CMake (docs/embedding.md)
#   ./setup.sh --wheel=DIR      also builds the Python package (docs/python.md) as a wheel in the folder DIR
#   ./setup.sh --formatter      also installs the pinned clang-format that tests/format.sh runs
#   ./setup.sh --torch          also installs PyTorch, mpi4py and mypy, for the tests of the Python package (//tests/python)
#   ./setup.sh --pypi           also installs PyPI's current PyTorch, JAX and mpi4py into a folder of their own, for the
#                               long test of the Python package (a download of 2.5 GB)
#   ./setup.sh --browser        also installs Chromium and zsh, in which tests look at the pages of coconet report and try
#                               its completion (a download of 130 MB)
#   ./setup.sh --fuzzers        also installs what tests/fuzz/run.sh builds with
set -euo pipefail
readonly CALLED_FROM="$PWD"
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"

# Services and containers may lack HOME, which bazel and pip need.
export HOME="${HOME:-$(getent passwd "$EUID" | cut -d: -f6)}"

readonly PACKAGES=(
  bazel-bootstrap bazel-platforms bazel-rules-java bazel-rules-proto bazel-skylib dpkg-dev g++ iproute2
  libabsl-dev libboost-context-dev libdlpack-dev libdnnl-dev libfabric-dev libgmock-dev libgtest-dev nettle-dev libopenmpi-dev libsqlite3-dev openmpi-bin
)
# What only tests use: nothing is compiled against it.
readonly TEST_PACKAGES=(cmake make pkgconf python3-numpy python3-pip python3-venv)
readonly TORCH_PACKAGES=(python3-torch python3-mpi4py mypy)
readonly BROWSER_PACKAGES=(chromium fonts-dejavu-core zsh)
readonly FUZZER_PACKAGES=(clang libclang-rt-dev)
readonly PINS=third_party/cuda/requirements.txt
readonly PREFIX="${XDG_DATA_HOME:-$HOME/.local/share}/coconet/cuda"
readonly DISASSEMBLER_PINS=third_party/cuda/nvdisasm.txt
readonly DISASSEMBLER="${XDG_DATA_HOME:-$HOME/.local/share}/coconet/nvdisasm"
readonly ABSL_SOURCE="${XDG_DATA_HOME:-$HOME/.local/share}/coconet/abseil"
readonly ABSL_FILES=(
  absl/base/internal/sysinfo.cc absl/container/internal/raw_hash_set.cc absl/strings/cord.cc
  absl/strings/internal/cordz_functions.cc
)
readonly FORMATTER_PINS=third_party/format/requirements.txt
readonly FORMATTER="${XDG_DATA_HOME:-$HOME/.local/share}/coconet/formatter"
readonly PYPI_PINS=tests/python/requirements.txt
readonly PYPI="${XDG_DATA_HOME:-$HOME/.local/share}/coconet/pypi"
staging=""
trap '[[ -z "$staging" ]] || rm -rf "$staging"' EXIT

say() { echo "setup.sh: $*"; }
die() {
  say "$*" >&2
  exit 1
}

# Prints those of the given packages that are not installed.
missing_packages() {
  comm -23 <(printf '%s\n' "$@" | sort -u) \
    <(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null | sed -n 's/ installed$//p' | sort -u)
}

# Runs apt-get as root or by sudo; fails where neither is possible.
apt_get() {
  if ((EUID == 0)); then
    DEBIAN_FRONTEND=noninteractive apt-get "$@"
  elif command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
    sudo DEBIAN_FRONTEND=noninteractive apt-get "$@"
  else
    return 1
  fi
}

# Installs those of the given packages that are missing; if it cannot, names them and fails.
install_packages() {
  local missing
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0
  say "installing ${missing[*]}"
  apt_get update -qq || say "no new package lists; trying with those that are here"
  apt_get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null && return
  say "could not install them. Ask an administrator for: apt-get install ${missing[*]}" >&2
  return 1
}

is_toolkit() { [[ -f "$1/include/cuda.h" && -f "$1/include/nvrtc.h" ]]; }

# Prints the folder of the system's toolkit; third_party/cuda/repository.bzl looks in the same places.
system_toolkit() {
  local root
  for root in "${CUDA_HOME:-}" /usr/local/cuda; do
    if [[ "$root" == /* ]] && is_toolkit "$root"; then
      echo "$root"
      return
    fi
  done
  return 1
}

# Prints a python with pip; installs one if there is none.
python_with_pip() {
  local python
  for python in python3 /usr/bin/python3; do
    if "$python" -m pip --version >/dev/null 2>&1; then
      echo "$python"
      return
    fi
  done
  install_packages ca-certificates python3 python3-pip >&2 && echo /usr/bin/python3
}

# Installs the wheels into PREFIX, in a toolkit's layout, unless it holds the pinned versions. PREFIX is complete or
# absent: it is renamed into place, with a copy of the pins in it.
install_wheels() {
  cmp -s "$PINS" "$PREFIX/requirements.txt" && return
  local python
  python="$(python_with_pip)" || return 1
  say "installing CUDA's wheels into $PREFIX (once; a download of about 700 MB)"
  mkdir -p "$(dirname "$PREFIX")" && staging="$(mktemp -d "$PREFIX.XXXXXX")" || return 1
  "$python" -m pip install -qq --disable-pip-version-check --root-user-action=ignore --no-deps --no-cache-dir \
    --only-binary=:all: --require-hashes --target "$staging/wheels" -r "$PINS" &&
    mv "$staging/wheels/nvidia/cu13" "$staging/cuda" &&
    cp -r "$staging/wheels/nvidia/nccl/include/." "$staging/cuda/include" &&
    cp -r "$staging/wheels/nvidia/nccl/lib/." "$staging/cuda/lib" &&
    is_toolkit "$staging/cuda" &&
    cp "$PINS" "$staging/cuda/requirements.txt" &&
    rm -rf "$PREFIX" && mv "$staging/cuda" "$PREFIX"
}

# Installs the pinned nvdisasm into DISASSEMBLER, unless the toolkit `cuda` has one or the pinned version is there.
install_disassembler() {
  [[ ! -x "$cuda/bin/nvdisasm" ]] || return 0
  cmp -s "$DISASSEMBLER_PINS" "$DISASSEMBLER/requirements.txt" && return
  local python
  python="$(python_with_pip)" || return 1
  say "installing nvdisasm into $DISASSEMBLER"
  mkdir -p "$(dirname "$DISASSEMBLER")" && staging="$(mktemp -d "$DISASSEMBLER.XXXXXX")" || return 1
  "$python" -m pip install -qq --disable-pip-version-check --root-user-action=ignore --no-deps --no-cache-dir \
    --only-binary=:all: --require-hashes --target "$staging/wheels" -r "$DISASSEMBLER_PINS" &&
    chmod -R a+rX "$staging/wheels/nvidia/cu13" &&
    cp "$DISASSEMBLER_PINS" "$staging/wheels/nvidia/cu13/requirements.txt" &&
    rm -rf "$DISASSEMBLER" && mv "$staging/wheels/nvidia/cu13" "$DISASSEMBLER" && rm -rf "$staging"
}

# Installs the pinned clang-format into FORMATTER, unless it holds the pinned version.
install_formatter() {
  cmp -s "$FORMATTER_PINS" "$FORMATTER/requirements.txt" && return
  local python
  python="$(python_with_pip)" || return 1
  say "installing clang-format into $FORMATTER"
  mkdir -p "$(dirname "$FORMATTER")" && staging="$(mktemp -d "$FORMATTER.XXXXXX")" || return 1
  "$python" -m pip install -qq --disable-pip-version-check --root-user-action=ignore --no-deps \
    --only-binary=:all: --require-hashes --target "$staging" -r "$FORMATTER_PINS" &&
    cp "$FORMATTER_PINS" "$staging/requirements.txt" &&
    rm -rf "$FORMATTER" && mv "$staging" "$FORMATTER"
}

# Installs PyTorch and others from PyPI into a virtual environment at PYPI, unless it holds the pinned versions.
install_pypi() {
  cmp -s "$PYPI_PINS" "$PYPI/requirements.txt" && return
  say "installing PyTorch, JAX and mpi4py into $PYPI (once; a download of about 2.5 GB)"
  rm -rf "$PYPI" && mkdir -p "$(dirname "$PYPI")" && /usr/bin/python3 -m venv "$PYPI" &&
    "$PYPI/bin/python" -m pip install -qq --disable-pip-version-check --no-cache-dir --only-binary=:all: -r "$PYPI_PINS" &&
    cp "$PYPI_PINS" "$PYPI/requirements.txt"
}

# Unpacks those files of Abseil's source package that libcoconet.so compiles again (third_party/absl) into a folder of
# this version, whose name it prints. Packages with source come from where the packages without it do.
unpack_absl_source() {
  local version folder lists
  local -a from
  version="$(dpkg-query -W -f '${source:Version}' libabsl-dev)" || return 1
  folder="$ABSL_SOURCE/$version"
  if [[ ! -d "$folder" ]]; then
    mkdir -p "$ABSL_SOURCE" && staging="$(mktemp -d "$folder.XXXXXX")" || return 1
    mkdir "$staging/sources" "$staging/lists"
    for lists in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
      [[ -f "$lists" ]] || continue
      case "$lists" in
        *.sources) sed 's/^Types:.*/Types: deb-src/' "$lists" >"$staging/sources/${lists##*/}" ;;
        *.list) sed -n 's/^deb /deb-src /p' "$lists" >"$staging/sources/${lists##*/}" ;;
      esac
    done
    from=(-o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$staging/sources"
      -o "Dir::State::Lists=$staging/lists" -o APT::Sandbox::User=)
    say "unpacking Abseil's source (once)" >&2
    apt-get -qq "${from[@]}" update >/dev/null 2>&1 || true  # other lists may lack source
    (cd "$staging" && apt-get -qq "${from[@]}" source "abseil=$version" >/dev/null 2>&1) || return 1
    mkdir "$staging/kept" &&
      (cd "$staging"/abseil-*/ && cp --parents "${ABSL_FILES[@]}" "$staging/kept") &&
      mv "$staging/kept" "$folder" && rm -rf "$staging" || return 1
  fi
  echo "$folder"
}

# Sets `cuda` to the toolkit's folder, or to "" for a build without CUDA.
find_cuda() {
  local mode="$1"
  cuda=""
  if [[ "$mode" =~ ^(auto|system)$ ]]; then cuda="$(system_toolkit)" || true; fi
  if [[ -z "$cuda" && "$mode" =~ ^(auto|wheels)$ ]] && install_wheels; then cuda="$PREFIX"; fi
  case "$mode:$cuda" in
    *:/*) say "CUDA: $cuda" ;;
    none:) say "CUDA: none, as asked" ;;
    auto:) say "CUDA: none; building without it. To have it, set CUDA_HOME to a toolkit, or get pip and a network" ;;
    system:) die "no CUDA toolkit at CUDA_HOME (${CUDA_HOME:-unset}) or /usr/local/cuda" ;;
    wheels:) die "could not install CUDA's wheels" ;;
    *) die "--cuda=$mode: want auto, system, wheels or none" ;;
  esac
}

# Tells bazel the toolkit's folder and digests of the installed packages (.bazelrc imports the file). When the first digest
# changes, bazel looks for CUDA and MPI again and compiles again; by itself it would not notice. When that of the tests'
# packages changes, bazel runs the tests again.
write_bazelrc() {
  local stamp tests text
  stamp="$({ dpkg-query -W "${PACKAGES[@]}" && cat ${cuda:+"$cuda/include/cuda.h"} </dev/null; } | cksum | tr ' ' -)"
  tests="$(dpkg-query -W "${TEST_PACKAGES[@]}" "${TORCH_PACKAGES[@]}" "${BROWSER_PACKAGES[@]}" 2>/dev/null | cksum | tr ' ' -)" || true
  text="$(
    echo "# Written by setup.sh"
    [[ -n "$cuda" ]] && echo "common '--repo_env=CUDA_HOME=$cuda'" || echo "common --repo_env=COCONET_CUDA=none"
    [[ ! -x "$DISASSEMBLER/bin/nvdisasm" ]] || echo "common '--repo_env=COCONET_NVDISASM=$DISASSEMBLER/bin/nvdisasm'"
    [[ -z "$absl_source" ]] || echo "common '--repo_env=COCONET_ABSL_SOURCE=$absl_source'"
    echo "common --repo_env=COCONET_SETUP=$stamp"
    echo "build --action_env=COCONET_SETUP=$stamp"
    echo "build --test_env=COCONET_TEST_SETUP=$tests"
    [[ ! -f "$PYPI/requirements.txt" ]] || echo "build '--test_env=COCONET_PYPI_PYTHON=$PYPI/bin/python'"
  )"
  [[ -f .setup.bazelrc && "$(<.setup.bazelrc)" == "$text" ]] || echo "$text" >.setup.bazelrc
}

# Builds the library for other programs and lays it out below a folder.
install_library() {
  local prefix="${1/#\~\//$HOME/}"
  [[ -n "$prefix" ]] || die "--install=: want a folder"
  prefix="$(cd "$CALLED_FROM" && realpath -m "$prefix")"
  mkdir -p "$prefix" 2>/dev/null || die "--install: cannot make the folder $prefix; name another, or ask its owner"
  [[ -w "$prefix" ]] || die "--install: cannot write into $prefix; name another folder, or ask its owner, $(stat -c %U "$prefix")"
  say "building the library (minutes, the first time)"
  bazel build //autotune/c/library:files || die "--install: the build failed; nothing was installed"
  autotune/c/library/lay_out.sh bazel-bin "$prefix" | sed 's/^/setup.sh: wrote /' || die "--install: incomplete"
  say "to use it from C: pkg-config coconet, or coconet::coconet of CMake; from C++: coconet-cxx, or coconet::cxx"
  say "they are found with PKG_CONFIG_PATH=$prefix/lib/pkgconfig, or with -DCMAKE_PREFIX_PATH=$prefix"
}

# Builds the Python package as a wheel in a folder.
build_wheel() {
  local folder="${1/#\~\//$HOME/}"
  [[ -n "$folder" ]] || die "--wheel=: want a folder"
  folder="$(cd "$CALLED_FROM" && realpath -m "$folder")"
  say "building the library (minutes, the first time)"
  bazel build //autotune/c/library:libcoconet.so.1 || die "--wheel: the build failed"
  python3 python/build_wheel.py --library=bazel-bin/autotune/c/library/libcoconet.so.1 --out="$folder" ||
    die "--wheel: no wheel was made"
}

mode="${COCONET_CUDA:-auto}"
formatter="" browser="" fuzzers="" torch="" pypi="" installs="" prefix="" wheels="" wheel_folder=""
for arg in "$@"; do
  case "$arg" in
    --cuda=*) mode="${arg#--cuda=}" ;;
    --no-cuda) mode=none ;;
    --install=*) installs=1 prefix="${arg#--install=}" ;;
    --wheel=*) wheels=1 wheel_folder="${arg#--wheel=}" ;;
    --formatter) formatter=1 ;;
    --browser) browser=1 ;;
    --fuzzers) fuzzers=1 ;;
    --torch) torch=1 ;;
    --pypi) pypi=1 ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' setup.sh && exit ;;
    *) die "unknown argument $arg (see --help)" ;;
  esac
done

command -v dpkg-query >/dev/null || die "this is not Debian. Debian 12 calls what is needed: ${PACKAGES[*]} ${TEST_PACKAGES[*]}"
install_packages "${PACKAGES[@]}" "${TEST_PACKAGES[@]}" || exit 1
[[ "$(command -v bazel)" -ef /usr/bin/bazel ]] ||
  say "note: bazel is $(command -v bazel) here; the build is made for Debian's, /usr/bin/bazel"
find_cuda "$mode"
[[ -z "$cuda" ]] || install_disassembler || say "no nvdisasm: tests that read machine code will be skipped"
absl_source="$(unpack_absl_source)" ||
  say "no source of Abseil: apt-get source abseil failed; building without libcoconet.so"
[[ -z "$formatter" ]] || install_formatter || die "could not install the formatter"
[[ -z "$browser" ]] || install_packages "${BROWSER_PACKAGES[@]}" ||
  say "no Chromium or zsh: tests of pages and of zsh's completion will be skipped"
[[ -z "$fuzzers" ]] || install_packages "${FUZZER_PACKAGES[@]}" || exit 1
[[ -z "$torch" ]] || install_packages "${TORCH_PACKAGES[@]}" || exit 1
[[ -z "$pypi" ]] || install_pypi || die "could not install PyPI's packages"
write_bazelrc
[[ -z "$installs" ]] || install_library "$prefix"
[[ -z "$wheels" ]] || build_wheel "$wheel_folder"
say "ready: bazel test //..."
