"""libcoconet.so: where it is, and the functions and structs of coconet.h in ctypes."""

from __future__ import annotations

import ctypes
import os
import pathlib
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char_p, c_double, c_int, c_int32, c_int64,
                    c_size_t, c_uint8, c_uint16, c_uint64, c_void_p)
from typing import Any, Dict, List, NoReturn, Optional, Sequence

from coconet._errors import Unavailable, error_of

MAJOR_VERSION = 1


class DLDevice(Structure):
    _fields_ = [("device_type", c_int32), ("device_id", c_int32)]


class DLDataType(Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class DLTensor(Structure):
    _fields_ = [("data", c_void_p), ("device", DLDevice), ("ndim", c_int32), ("dtype", DLDataType),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class DLManagedTensor(Structure):
    _fields_ = [("dl_tensor", DLTensor), ("manager_ctx", c_void_p), ("deleter", c_void_p)]


LINE = CFUNCTYPE(None, c_void_p, c_char_p)
INTERRUPTED = CFUNCTYPE(c_int, c_void_p)
ALL_GATHER = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_size_t, POINTER(c_void_p))
TEST = CFUNCTYPE(c_int, c_void_p, c_void_p)
RELEASE = CFUNCTYPE(None, c_void_p, c_void_p)
ABSENT = CFUNCTYPE(c_int, c_void_p, c_void_p)
# Returns the address of the text, since ctypes frees what a callback returns as c_char_p.
ERROR = CFUNCTYPE(c_void_p, c_void_p)


class Options(Structure):
    _fields_ = [("size", c_size_t), ("cache_file", c_char_p), ("policy", c_int),
                ("backend", c_int), ("sum_order", c_int), ("effort", c_int), ("budget_s", c_double),
                ("timeout_s", c_double), ("stages", c_int), ("nodes", c_int), ("pin", c_int),
                ("retune", c_int), ("memory_limit", c_int64), ("progress", LINE), ("warn", LINE),
                ("interrupted", INTERRUPTED), ("context", c_void_p),
                ("sum_rounding", c_int), ("nans", c_int)]


class OutOfBand(Structure):
    _fields_ = [("size", c_size_t), ("rank", c_int), ("ranks", c_int), ("context", c_void_p),
                ("all_gather", ALL_GATHER), ("test", TEST), ("release", RELEASE),
                ("absent", ABSENT), ("error", ERROR)]


class Size(Structure):
    _fields_ = [("symbol", c_char_p), ("values", POINTER(c_int64)), ("count", c_size_t)]


class TensorStruct(Structure):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("role", c_int), ("layout", c_int),
                ("dtype", DLDataType), ("ndim", c_int), ("shape", POINTER(c_int64)),
                ("first", c_int64), ("count", c_int64)]


# Functions that return a status, which call() turns into an exception.
_STATUS: Dict[str, Sequence[Any]] = {
    "session_open": (POINTER(Options), POINTER(c_void_p)),
    "session_join": (POINTER(OutOfBand), POINTER(Options), POINTER(c_void_p)),
    "session_join_mpi": (c_void_p, POINTER(Options), POINTER(c_void_p)),
    "session_close": (c_void_p,),
    "session_leave": (c_void_p, c_char_p),
    "session_meet": (c_void_p, c_char_p),
    "compile": (c_void_p, c_char_p, POINTER(Size), c_size_t, POINTER(c_void_p)),
    "program_tensor": (c_void_p, c_size_t, POINTER(TensorStruct)),
    "explain": (c_void_p, POINTER(c_void_p)),
    "allocate": (c_void_p, DLDataType, c_int, POINTER(c_int64),
                 POINTER(POINTER(DLManagedTensor))),
    "program_allocate": (c_void_p, c_char_p, POINTER(POINTER(DLManagedTensor))),
    "bind": (c_void_p, POINTER(c_char_p), POINTER(POINTER(DLTensor)), c_size_t,
             POINTER(c_void_p)),
    "scalar": (c_void_p, c_char_p, POINTER(c_int)),
    "set": (c_void_p, c_int, c_double),
    "set_i64": (c_void_p, c_int, c_int64),
    "set_u64": (c_void_p, c_int, c_uint64),
    "set_named": (c_void_p, c_char_p, c_double),
    "run": (c_void_p,),
    "run_steps": (c_void_p, c_int64),
    "enqueue": (c_void_p, c_void_p),
    "wait": (c_void_p,),
    "read": (c_void_p, c_char_p, POINTER(DLTensor)),
    "write": (c_void_p, c_char_p, POINTER(DLTensor)),
    "save": (c_void_p, c_char_p),
    "load": (c_void_p, c_char_p),
    "trace": (c_void_p,),
    "trace_write": (c_void_p, c_char_p),
}
_OTHERS: Dict[str, Any] = {  # name: (result, arguments)
    "last_error": (c_char_p, ()),
    "version": (c_int, ()),
    "session_rank": (c_int, (c_void_p,)),
    "session_ranks": (c_int, (c_void_p,)),
    "session_stage": (c_int, (c_void_p,)),
    "session_stages": (c_int, (c_void_p,)),
    "session_stream": (c_void_p, (c_void_p,)),
    "program_free": (None, (c_void_p,)),
    "program_tensors": (c_size_t, (c_void_p,)),
    "program_from_cache": (c_int, (c_void_p,)),
    "text_free": (None, (c_void_p,)),
    "binding_free": (None, (c_void_p,)),
    "command": (c_int, (c_int, POINTER(c_char_p))),
}


def _candidates() -> List[str]:
    named = os.environ.get("COCONET_LIBRARY")
    if named:
        return [named]
    inside = pathlib.Path(__file__).resolve().parent / "libcoconet.so.1"
    return ([str(inside)] if inside.exists() else []) + ["libcoconet.so.1"]


_library: Optional[ctypes.CDLL] = None


def library() -> ctypes.CDLL:
    """libcoconet.so, loaded by the first call: COCONET_LIBRARY, the package's, the system's."""
    global _library
    if _library is not None:
        return _library
    failures = []
    for candidate in _candidates():
        try:
            loaded = ctypes.CDLL(candidate)
            break
        except OSError as failure:
            failures.append(str(failure))
    else:
        raise Unavailable("libcoconet.so cannot be loaded; COCONET_LIBRARY may name it: " +
                          "; ".join(failures))
    for name, arguments in _STATUS.items():
        _declare(loaded, name, c_int, arguments)
    for name, (result, arguments) in _OTHERS.items():
        _declare(loaded, name, result, arguments)
    version = loaded.coconet_version()
    if version // 1000 != MAJOR_VERSION:
        raise Unavailable(f"{candidate}: want version {MAJOR_VERSION} of the library, have "
                          f"{version // 1000}.{version % 1000}")
    _library = loaded
    return loaded


def _declare(loaded: ctypes.CDLL, name: str, result: Any, arguments: Sequence[Any]) -> None:
    name = "coconet_" + name
    try:
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, list(arguments)
    except AttributeError:
        path = loaded._name

        def missing(*arguments: Any) -> Any:
            raise Unavailable(f"{path} has no {name}: it is another library, or older than this "
                              "package")

        setattr(loaded, name, missing)


def last_error() -> str:
    """The calling thread's last failure."""
    text: Optional[bytes] = library().coconet_last_error()
    return text.decode(errors="replace") if text else ""


def check(status: int) -> None:
    """Raises the exception of a status that is not OK."""
    if status:
        raise error_of(status, last_error())


def call(name: str, *arguments: Any) -> None:
    """Calls coconet_`name`, which returns a status."""
    check(getattr(library(), "coconet_" + name)(*arguments))


def refuse(failure: Exception, name: str, *arguments: Any) -> NoReturn:
    """Raises `failure`, after the collective call coconet_`name` with arguments that are an error
    (NULL): so it is one on the other ranks, too, which have none of their own."""
    getattr(library(), "coconet_" + name)(*arguments)
    raise failure
