"""`python -m coconet sweep ...` and `python -m coconet cache ...`: the library's commands."""

import ctypes
import sys

from coconet._library import library


def main() -> int:
    arguments = sys.argv[1:]
    if not arguments or arguments[0] not in ("sweep", "cache"):
        print("usage: python -m coconet sweep|cache ARGUMENTS...  (sweep --help)", file=sys.stderr)
        return 0 if arguments in (["--help"], ["-h"]) else 2
    argv = (ctypes.c_char_p * (len(arguments) + 1))(*(each.encode() for each in arguments), None)
    return int(library().coconet_command(len(arguments), argv))


if __name__ == "__main__":
    sys.exit(main())
