#!/usr/bin/env python3
"""Builds a wheel of the Python package, with the shared library inside, and prints its path.

    build_wheel.py --library=libcoconet.so --out=DIR [--sources=python/coconet] [--license=LICENSE]

The wheel is for any Python from 3.9 on and this machine's kind of processor. It needs nothing but
Python, and the same input gives the same bytes.
"""

import argparse
import base64
import hashlib
import pathlib
import platform
import re
import sys
import zipfile

_METADATA = """Metadata-Version: 2.1
Name: coconet
Version: {version}
Summary: Programs of computation and communication, tuned and run on all ranks
License: Apache-2.0
Requires-Python: >=3.9
Provides-Extra: numpy
Requires-Dist: numpy; extra == 'numpy'
Provides-Extra: torch
Requires-Dist: torch; extra == 'torch'
Description-Content-Type: text/plain

Coconet jointly optimises the computation and the communication of distributed machine learning, at
run time: help(coconet).
"""

_WHEEL = """Wheel-Version: 1.0
Generator: coconet
Root-Is-Purelib: false
Tag: {tag}
"""

_ENTRY_POINTS = """[console_scripts]
coconet = coconet.__main__:main
"""


def version_of(sources: pathlib.Path) -> str:
    text = (sources / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "([0-9.]+)"$', text, re.MULTILINE)
    if not found:
        raise ValueError(f"{sources / '__init__.py'}: want a line __version__ = \"...\"")
    return found.group(1)


def write(wheel: zipfile.ZipFile, name: str, data: bytes, mode: int = 0o644) -> str:
    """Adds a file; returns its line of RECORD."""
    info = zipfile.ZipInfo(name)  # the date of all files is 1980-01-01
    info.external_attr = (0o100000 | mode) << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    wheel.writestr(info, data)
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def build(sources: pathlib.Path, library: pathlib.Path, license_file: pathlib.Path,
          out: pathlib.Path) -> pathlib.Path:
    version = version_of(sources)
    tag = f"py3-none-linux_{platform.machine()}"
    info = f"coconet-{version}.dist-info"
    files = {f"coconet/{path.relative_to(sources).as_posix()}": path.read_bytes()
             for path in sorted(sources.rglob("*"))
             if path.suffix == ".py" or path.name == "py.typed"}
    files[f"{info}/METADATA"] = _METADATA.format(version=version).encode()
    files[f"{info}/WHEEL"] = _WHEEL.format(tag=tag).encode()
    files[f"{info}/entry_points.txt"] = _ENTRY_POINTS.encode()
    files[f"{info}/LICENSE"] = license_file.read_bytes()
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"coconet-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        record = [write(wheel, name, data) for name, data in files.items()]
        record.append(write(wheel, "coconet/libcoconet.so.1", library.read_bytes(), 0o755))
        record.append(f"{info}/RECORD,,\n")
        write(wheel, f"{info}/RECORD", "".join(record).encode())
    return path


def main() -> int:
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--sources", type=pathlib.Path, default=here / "coconet")
    parser.add_argument("--license", type=pathlib.Path, default=here.parent / "LICENSE")
    arguments = parser.parse_args()
    for path in (arguments.library, arguments.license, arguments.sources / "__init__.py"):
        if not path.is_file():
            print(f"build_wheel.py: no file {path}", file=sys.stderr)
            return 1
    print(build(arguments.sources, arguments.library, arguments.license, arguments.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
