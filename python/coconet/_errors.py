"""Errors of the library as exceptions, one class per status code."""

from __future__ import annotations

import difflib
from typing import Any, Dict, Iterable, NoReturn, Type


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: " (did you mean 'sqrt'?)", or nothing."""
    near = difflib.get_close_matches(str(word), list(known), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


class OfThisProcess:
    """The base of what belongs to a session, and cannot be copied or pickled."""

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(f"{type(self).__name__} belongs to this process's session and cannot be "
                        "copied or pickled")


class Error(Exception):
    """An error of the library, in its words.

    Each code has a subclass, which is also the built-in exception that fits, so that
    ``except ValueError`` and ``except coconet.InvalidArgument`` both work.
    """

    #: The status code, as coconet.h numbers it.
    code = 2


class Cancelled(Error):
    """The call was cancelled."""

    code = 1


class InvalidArgument(Error, ValueError):
    """An argument is wrong, or the ranks disagree; nothing has changed."""

    code = 3


class DeadlineExceeded(Error, TimeoutError):
    """A peer did not come or answer in time."""

    code = 4


class NotFound(Error, LookupError):
    """The tuning cache has no record (policy "cache_only"), or there is no such tensor."""

    code = 5


class AlreadyExists(Error):
    """What was to be made exists already."""

    code = 6


class PermissionDenied(Error, PermissionError):
    """The system does not permit it."""

    code = 7


class ResourceExhausted(Error, MemoryError):
    """Memory or disk is full."""

    code = 8


class FailedPrecondition(Error, RuntimeError):
    """An object is not in the state that the call wants: closed, or in another call."""

    code = 9


class Aborted(Error, ConnectionError):
    """A peer left the world, or the ranks call differently."""

    code = 10


class OutOfRange(Error, ValueError):
    """A number is out of its range."""

    code = 11


class Unimplemented(Error, NotImplementedError):
    """The library does not do this."""

    code = 12


class Internal(Error, RuntimeError):
    """An invariant of the library is broken."""

    code = 13


class Unavailable(Error, OSError):
    """A library, a GPU or a compiler is missing."""

    code = 14


class DataLoss(Error):
    """A kernel, a GPU or a link has failed, or a file is damaged."""

    code = 15


_BY_CODE: Dict[int, Type[Error]] = {
    error.code: error
    for error in (Cancelled, InvalidArgument, DeadlineExceeded, NotFound, AlreadyExists,
                  PermissionDenied, ResourceExhausted, FailedPrecondition, Aborted, OutOfRange,
                  Unimplemented, Internal, Unavailable, DataLoss)
}
for _error in (Error, *_BY_CODE.values()):
    _error.__module__ = "coconet"  # as messages and users name it


def error_of(code: int, text: str) -> Error:
    """The exception of a status code."""
    return _BY_CODE.get(code, Error)(text)
