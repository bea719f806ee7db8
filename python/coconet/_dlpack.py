"""DLPack without native code: dtypes, tensors of others, and capsules of ours."""

from __future__ import annotations

import atexit
import ctypes
import sys
from ctypes import POINTER, byref, c_int64, c_void_p, cast, py_object
from typing import Any, Dict, List, Optional, Sequence, Tuple

from coconet._errors import did_you_mean
from coconet._library import DLDataType, DLDevice, DLManagedTensor, DLTensor

CPU = 1  # kDLCPU

# The language's dtypes: DLPack's code and bits.
DTYPES: Dict[str, Tuple[int, int]] = {
    "f32": (2, 32), "f16": (2, 16), "bf16": (4, 16), "f64": (2, 64),
    "i8": (0, 8), "i16": (0, 16), "i32": (0, 32), "i64": (0, 64),
    "u8": (1, 8), "u16": (1, 16), "u32": (1, 32), "u64": (1, 64),
    "bool": (6, 8),
    "f8e4m3": (10, 8), "f8e5m2": (12, 8),
}
_NAMES = {code: name for name, code in DTYPES.items()}
_OF_OTHERS = {  # names of NumPy, PyTorch and JAX
    "float32": "f32", "float16": "f16", "bfloat16": "bf16", "float64": "f64",
    "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2",
}


# Dtypes that NumPy itself lacks: the integer with as many bits.
OF_ML_DTYPES = {"bf16": "uint16", "f8e4m3": "uint8", "f8e5m2": "uint8"}

_FULL_NAMES = {short: full for full, short in _OF_OTHERS.items()}


def full_name(name: str) -> str:
    """NumPy's and PyTorch's name of a dtype: "float32" of "f32"."""
    return _FULL_NAMES.get(name, name)


def dtype_name(dtype: Any) -> str:
    """The language's name of a dtype: of "f32", "float32", numpy.float32, torch.float32, ...

    >>> dtype_name("float16")
    'f16'
    """
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    name = name.rpartition(".")[2]
    name = _OF_OTHERS.get(name, name)
    if name not in DTYPES:
        raise ValueError(f"dtype {dtype!r}: want one of {' '.join(DTYPES)}"
                         f"{did_you_mean(name, DTYPES)}")
    return name


def dl_dtype(name: str) -> DLDataType:
    code, bits = DTYPES[name]
    return DLDataType(code, bits, 1)


def name_of_dl_dtype(dtype: DLDataType) -> str:
    name = _NAMES.get((dtype.code, dtype.bits))
    if name is None or dtype.lanes != 1:
        return f"dtype(code {dtype.code}, {dtype.bits} bits, {dtype.lanes} lanes)"
    return name


def bytes_of(name: str) -> int:
    return DTYPES[name][1] // 8


def int64s(values: Sequence[int]) -> Any:
    """A C array; it has one element where `values` has none, so that its address is valid."""
    return (c_int64 * max(1, len(values)))(*values)


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = c_void_p, [py_object, ctypes.c_char_p]
_capsule_rename = ctypes.pythonapi.PyCapsule_SetName
_capsule_rename.restype, _capsule_rename.argtypes = ctypes.c_int, [py_object, ctypes.c_char_p]
_capsule_new = ctypes.pythonapi.PyCapsule_New
_capsule_new.restype = py_object
_capsule_new.argtypes = [c_void_p, ctypes.c_char_p, c_void_p]
_NEW, _USED = b"dltensor", b"used_dltensor"  # capsules keep the address of their name
_DELETER = ctypes.CFUNCTYPE(None, c_void_p)


class View:
    """A DLTensor of an array that somebody owns; keeps the array alive."""

    def __init__(self, tensor: DLTensor, owner: Any, deleter: int = 0, managed: int = 0,
                 is_read_only: bool = False):
        self.tensor = tensor
        self.is_read_only = is_read_only
        self._owner = owner  # what the tensor points into
        self._deleter, self._managed = deleter, managed

    @property
    def pointer(self) -> Any:
        return ctypes.pointer(self.tensor)

    def __del__(self) -> None:
        if self._deleter and not sys.is_finalizing():
            deleter, self._deleter = self._deleter, 0
            _DELETER(deleter)(self._managed)


def make_tensor(data: int, dtype: DLDataType, shape: Sequence[int],
                strides: Optional[Sequence[int]] = None,
                device: Tuple[int, int] = (CPU, 0)) -> Tuple[DLTensor, Any]:
    """A DLTensor, and what must live as long. Strides are in elements."""
    kept: List[Any] = [int64s(shape)]
    tensor = DLTensor(data, DLDevice(*device), len(shape), dtype, kept[0], None, 0)
    if strides is not None:
        kept.append(int64s(strides))
        tensor.strides = kept[1]
    return tensor, kept


def view(array: Any, is_written: bool = False) -> View:
    """The memory of an array: one of this package, NumPy, PyTorch, JAX, or with `__dlpack__`.

    Nothing is copied. TypeError for what has no memory that DLPack describes, ValueError for a
    read-only array where it `is_written`; an array may raise others.
    """
    found = _view_of(array)
    if is_written and found.is_read_only:
        raise ValueError(f"want an array that can be written, have a read-only one "
                         f"({type(array).__module__}.{type(array).__name__})")
    return found


def _view_of(array: Any) -> View:
    own = getattr(array, "_coconet_view", None)
    if own is not None:
        viewed: View = own()
        return viewed
    if hasattr(array, "__array_interface__"):
        return _view_of_interface(array)
    if hasattr(array, "__dlpack__"):
        return _view_of_dlpack(array)
    raise TypeError(f"want an array with __dlpack__ or __array_interface__, have "
                    f"{type(array).__name__}")


_KINDS = {"f": 2, "i": 0, "u": 1, "b": 6}


def _view_of_interface(array: Any) -> View:
    interface = array.__array_interface__
    if not isinstance(interface.get("data"), tuple):  # an object with a buffer, or none
        import numpy
        array = numpy.asarray(array)
        interface = array.__array_interface__
    order, kind, size = interface["typestr"][0], interface["typestr"][1], interface["typestr"][2:]
    code = _KINDS.get(kind, -1)
    name = dtype_name_or_none(getattr(array, "dtype", None))
    if name is not None and name in OF_ML_DTYPES:
        code = DTYPES[name][0]
    if code < 0:
        raise TypeError(f"an array of {getattr(array, 'dtype', interface['typestr'])}: want one of "
                        f"{' '.join(DTYPES)}")
    bits = 8 * int(size)
    if bits > 8 and order == (">" if sys.byteorder == "little" else "<"):
        raise ValueError("the array's bytes are in the other order; use array.byteswap()")
    strides = interface.get("strides")
    if strides is not None:
        if any(stride % (bits // 8) for stride in strides):
            raise ValueError(f"strides of {strides} bytes: want multiples of the element's "
                             f"{bits // 8}")
        strides = [stride // (bits // 8) for stride in strides]
    tensor, kept = make_tensor(interface["data"][0], DLDataType(code, bits, 1),
                               interface["shape"], strides)
    return View(tensor, (array, kept), is_read_only=interface["data"][1])


def dtype_name_or_none(dtype: Any) -> Optional[str]:
    try:
        return dtype_name(dtype)
    except ValueError:
        return None


_TORCH_BYTES = {"torch.bool": "bool", "torch.float8_e4m3fn": "f8e4m3",
                "torch.float8_e5m2": "f8e5m2"}


def _view_of_dlpack(array: Any) -> View:
    if hasattr(array, "detach"):  # a PyTorch tensor that requires gradients exports nothing
        array = array.detach()
    if getattr(array, "is_neg", bool)():
        raise ValueError("the tensor's memory has the negatives of its elements (is_neg); use "
                         "resolve_neg()")
    of_bytes = _TORCH_BYTES.get(str(getattr(array, "dtype", "")))  # some versions export none
    if of_bytes is not None:
        import torch
        array = array.view(torch.uint8)
    capsule = array.__dlpack__()
    managed = _capsule_pointer(capsule, _NEW)
    _capsule_rename(capsule, _USED)
    struct = cast(managed, POINTER(DLManagedTensor)).contents
    tensor = DLTensor()
    ctypes.memmove(byref(tensor), byref(struct.dl_tensor), ctypes.sizeof(DLTensor))
    if of_bytes is not None:
        tensor.dtype = dl_dtype(of_bytes)
    jax = sys.modules.get("jax")
    is_read_only = jax is not None and isinstance(array, jax.Array)
    return View(tensor, (array, struct), struct.deleter or 0, managed, is_read_only)


class _Export:
    """A DLManagedTensor that others hold. Lives until they call its deleter."""

    live: Dict[int, "_Export"] = {}

    def __init__(self, source: View):
        self.source = source
        self.struct = DLManagedTensor(source.tensor, None, cast(_delete, c_void_p))
        self.address = ctypes.addressof(self.struct)


@_DELETER  # type: ignore[untyped-decorator, misc]
def _delete(address: int) -> None:
    _Export.live.pop(address, None)


@ctypes.PYFUNCTYPE(None, c_void_p)  # type: ignore[untyped-decorator, misc]
def _capsule_destructor(capsule: int) -> None:
    """Frees what nobody took out of the capsule."""
    is_new = _is_valid(capsule, _NEW)
    if is_new:
        _delete(_pointer_of_dying(capsule, _NEW))


_is_valid = ctypes.pythonapi["PyCapsule_IsValid"]
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [c_void_p, ctypes.c_char_p]
_pointer_of_dying = ctypes.pythonapi["PyCapsule_GetPointer"]  # of a capsule without references
_pointer_of_dying.restype, _pointer_of_dying.argtypes = c_void_p, [c_void_p, ctypes.c_char_p]


def capsule(source: View) -> Any:
    """A capsule "dltensor" of the view, for `__dlpack__`."""
    export = _Export(source)
    _Export.live[export.address] = export
    return _capsule_new(export.address, _NEW, cast(_capsule_destructor, c_void_p))


@atexit.register
def _disarm() -> None:
    """Others may free their tensors after the interpreter has gone: then nothing is called back.

    Py_IsInitialized does nothing, and may be called without an interpreter.
    """
    nothing = cast(ctypes.pythonapi.Py_IsInitialized, c_void_p)
    for export in _Export.live.values():
        export.struct.deleter = nothing
    for kept in (*_Export.live.values(), _capsule_destructor, _delete):
        ctypes.pythonapi.Py_IncRef(py_object(kept))
