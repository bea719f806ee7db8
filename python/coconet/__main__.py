"""`coconet ...` and `python -m coconet ...`: the library's command, with all of its subcommands."""

import ctypes
import os
import sys

from coconet._library import library


def main() -> int:
    arguments = [os.fsencode(each) for each in sys.argv[1:]]
    argv = (ctypes.c_char_p * (len(arguments) + 1))(*arguments, None)
    return int(library().coconet_command(len(arguments), argv))


if __name__ == "__main__":
    sys.exit(main())
