"""Numbers of callers on their way to the library, none of which is cut, wrapped or rounded."""

from __future__ import annotations

import math
import operator
from typing import Any, Tuple, Union

from coconet._dlpack import DTYPES
from coconet._errors import InvalidArgument


def exact(what: str, value: Any) -> Union[float, int]:
    """A number as an integer where it has an integer's type, or is one that a float does not hold;
    else as a float. `what` begins the message of a TypeError."""
    if isinstance(value, (str, bytes, bytearray)):
        raise TypeError(f"{what}: want a number, have {value!r}")
    try:
        return operator.index(value)
    except TypeError:
        real = float(value)
    # A Decimal, a Fraction or a long double, which may hold more.
    if not math.isfinite(real) or real == value or int(value) != value:
        return real
    return int(value)


def is_integer(dtype: str) -> bool:
    """Whether it is one of integers, or bool."""
    return dtype[0] in "iu" or dtype == "bool"


def limits(dtype: str) -> Tuple[int, int]:
    """The least and the greatest integer of a dtype of integers, or of bool."""
    bits = 1 if dtype == "bool" else DTYPES[dtype][1]
    return (-2**(bits - 1), 2**(bits - 1) - 1) if dtype[0] == "i" else (0, 2**bits - 1)


def integer_of(what: str, dtype: str, value: Any) -> int:
    """A number that a dtype of integers holds; else InvalidArgument, in the library's words."""
    number = exact(what, value)
    least, most = limits(dtype)
    if not least <= number <= most or number != int(number):
        raise InvalidArgument(f"{what}: want an integer from {least} to {most}, which {dtype} "
                              f"holds, have {number}")
    return int(number)


def count_of(what: str, value: Any, least: int = 0, dtype: str = "i64") -> int:
    """An argument that is an integer; ctypes would wrap one that its type does not hold."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what}={value!r}: want an integer") from None
    most = limits(dtype)[1]
    if not least <= number <= most:
        raise ValueError(f"{what}={number}: want an integer from {least} to {most}")
    return number


def seconds_of(what: str, value: Any) -> float:
    """A positive number of seconds."""
    seconds = float(value)
    if not 0 < seconds < math.inf:
        raise ValueError(f"{what}={value!r}: want a positive number of seconds, or None")
    return seconds
