"""Memory of a session as an array that NumPy, PyTorch and JAX read and write in place."""

from __future__ import annotations

import ctypes
import math
import sys
from typing import Any, Optional, Tuple

from coconet._dlpack import (CPU, OF_ML_DTYPES, _DELETER, View, bytes_of, capsule, full_name,
                             make_tensor, name_of_dl_dtype)
from coconet._errors import OfThisProcess


class _Memory:
    """What coconet_allocate returned; freed with the last array over it."""

    def __init__(self, managed: Any):
        self.managed = managed

    def __del__(self) -> None:
        if not sys.is_finalizing():  # a process that ends gives its memory back by itself
            struct = self.managed.contents
            if struct.deleter:
                _DELETER(struct.deleter)(ctypes.addressof(struct))


class Array(OfThisProcess):
    """Memory that peers reach, zero-filled: what `Session.allocate` returns.

    Programs use it in place, without a copy. It is row-major. Views of it (`numpy()`, `torch()`,
    `from_dlpack`) keep the memory alive; it is freed after the last of them and after the last
    binding that uses it.
    """

    def __init__(self, managed: Any):
        self._memory = _Memory(managed)
        tensor = managed.contents.dl_tensor
        #: The language's dtype: "f32", "bf16", ...
        self.dtype: str = name_of_dl_dtype(tensor.dtype)
        self.shape: Tuple[int, ...] = tuple(tensor.shape[i] for i in range(tensor.ndim))
        self._device = (tensor.device.device_type, tensor.device.device_id)
        self._address = (tensor.data or 0) + tensor.byte_offset

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * bytes_of(self.dtype)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"coconet.Array({self.dtype}{list(self.shape)})"

    def _coconet_view(self) -> View:
        code = self._memory.managed.contents.dl_tensor.dtype
        tensor, kept = make_tensor(self._address, code, self.shape, None, self._device)
        return View(tensor, (self._memory, kept))

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
                   copy: Optional[bool] = None) -> Any:
        """A DLPack capsule over this memory, or with `copy` over memory of its own."""
        if dl_device is not None and tuple(dl_device) != self._device:
            raise BufferError(f"the array lies on device {self._device}, not {tuple(dl_device)}")
        memory: Any = self._memory
        address = self._address
        if copy:
            if self._device[0] != CPU:
                raise BufferError("an array on a GPU is not copied; copy the tensor made of it")
            memory = (ctypes.c_uint8 * max(1, self.nbytes)).from_buffer_copy(
                self._buffer() if self.nbytes else b"0")
            address = ctypes.addressof(memory)
        code = self._memory.managed.contents.dl_tensor.dtype
        strides = [math.prod(self.shape[i + 1:]) for i in range(len(self.shape))]
        tensor, kept = make_tensor(address, code, self.shape, strides, self._device)
        return capsule(View(tensor, (memory, kept)))

    def __dlpack_device__(self) -> Tuple[int, int]:
        return self._device

    def _buffer(self) -> Any:
        """The bytes as a ctypes array, which keeps the memory alive."""
        if self._device[0] != CPU:
            raise TypeError("the array lies on a GPU; use from_dlpack")
        buffer = _Bytes.of(self.nbytes).from_address(self._address)
        buffer._memory = self._memory
        return buffer

    def numpy(self) -> Any:
        """A NumPy array over this memory. NumPy has no bf16, f8e4m3 and f8e5m2: it gives those of
        ml_dtypes where that is installed, else uint16 or uint8 with the same bits."""
        import numpy
        dtype = numpy_dtype(self.dtype)
        if not self.size:
            return numpy.zeros(self.shape, dtype)
        return numpy.frombuffer(self._buffer(), dtype).reshape(self.shape)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        array = self.numpy()
        if dtype is None or array.dtype == dtype:
            return array.copy() if copy else array
        if copy is False:
            raise ValueError(f"an array of {self.dtype} is one of {dtype} only as a copy")
        return array.astype(dtype)

    def torch(self) -> Any:
        """A PyTorch tensor over this memory."""
        import torch
        if self._device[0] != CPU:
            return torch.utils.dlpack.from_dlpack(self.__dlpack__())
        name = full_name(self.dtype)
        dtype = getattr(torch, name, None)
        if dtype is None:
            raise TypeError(f"this version of torch has no {name}")
        if not self.size:
            return torch.zeros(self.shape, dtype=dtype)
        return torch.frombuffer(self._buffer(), dtype=dtype).view(self.shape)


def numpy_dtype(name: str) -> Any:
    import numpy
    if name not in OF_ML_DTYPES:
        return numpy.dtype(full_name(name))
    try:
        import ml_dtypes  # type: ignore
        return numpy.dtype(getattr(ml_dtypes, full_name(name)))
    except (ImportError, AttributeError):
        return numpy.dtype(OF_ML_DTYPES[name])


class _Bytes:
    """Types of C arrays of bytes, whose instances may have attributes."""

    @staticmethod
    def of(count: int) -> Any:
        return type("_Buffer", (ctypes.c_uint8 * count,), {})
