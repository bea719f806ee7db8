"""Compiled programs, and their bindings to memory."""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes import POINTER, byref, c_char_p, c_int, c_void_p
from typing import (TYPE_CHECKING, Any, Callable, Dict, List, Mapping, NamedTuple, Optional,
                    Set, Tuple, Union)

from coconet._array import Array, numpy_dtype
from coconet._dlpack import OF_ML_DTYPES, View, dl_dtype, make_tensor, name_of_dl_dtype, view
from coconet._errors import FailedPrecondition, InvalidArgument, NotFound, OfThisProcess, did_you_mean
from coconet._library import (DLManagedTensor, DLTensor, TensorStruct, call, check, library, refuse)
from coconet._numbers import count_of, exact, integer_of, is_integer

if TYPE_CHECKING:
    from coconet._session import Session

_ROLES = ("input", "state", "output")
_LAYOUTS = ("local", "replicated", "sliced", "auto")


class Tensor(NamedTuple):
    """A tensor or scalar of a compiled program."""

    name: str
    #: "input", "state" or "output"
    role: str
    #: As declared: "local", "replicated", "sliced" or "auto".
    layout: str
    dtype: str
    #: The whole tensor's extents; () for a scalar.
    shape: Tuple[int, ...]
    #: This rank's elements as the schedule keeps them, in canonical order: the first (-1: more than
    #: one run), and how many.
    first: int
    count: int  # type: ignore[assignment]  # hides that of tuples


class TunedProgram(OfThisProcess):
    """A program that is tuned and compiled for a session: what `Session.compile` returns."""

    def __init__(self, session: "Session", handle: int, text: str):
        self._session = session
        self._handle = handle
        #: The program as text.
        self.text = text
        self._tensors: Optional[Dict[str, Tensor]] = None

    def __del__(self) -> None:
        if not sys.is_finalizing():
            library().coconet_program_free(self._handle)

    @property
    def session(self) -> "Session":
        return self._session

    @property
    def from_cache(self) -> bool:
        """Whether the tuning cache had the program."""
        return bool(library().coconet_program_from_cache(self._handle))

    @property
    def tensors(self) -> Dict[str, Tensor]:
        """All inputs, states and outputs, by name."""
        if self._tensors is None:
            found = {}
            for i in range(library().coconet_program_tensors(self._handle)):
                struct = TensorStruct(size=ctypes.sizeof(TensorStruct))
                call("program_tensor", self._handle, i, byref(struct))
                name = struct.name.decode()
                found[name] = Tensor(name, _ROLES[struct.role], _LAYOUTS[struct.layout],
                                     name_of_dl_dtype(struct.dtype),
                                     tuple(struct.shape[d] for d in range(struct.ndim)),
                                     struct.first, struct.count)
            self._tensors = found
        return self._tensors

    @property
    def _inputs(self) -> Set[str]:
        """The tensors that no step writes."""
        return {tensor.name for tensor in self.tensors.values() if tensor.role == "input"}

    def tensor(self, name: str) -> Tensor:
        """NotFound where the program has no such tensor."""
        if name not in self.tensors:
            raise NotFound(f"{name}: the program has {', '.join(self.tensors)}"
                           f"{did_you_mean(name, self.tensors)}")
        return self.tensors[name]

    def allocate(self, name: str) -> Array:
        """Memory that peers reach for one tensor, with the padding of its slicing. Collective."""
        managed = POINTER(DLManagedTensor)()
        call("program_allocate", self._handle, name.encode(), byref(managed))
        return Array(managed)

    def bind(self, arrays: Optional[Mapping[str, Any]] = None, /, **named: Any) -> "Binding":
        """Binds tensors to arrays, which steps read and write in place. Collective.

        An array is one of `Session.allocate`, of NumPy, PyTorch or JAX, or any with `__dlpack__`;
        for a tensor over a list, a list of arrays. All ranks bind the same names. Arrays that peers
        must reach and that are not memory of a session are copied at every step, with one warning.
        Tensors that are not bound belong to the session, and start as zeros. The binding keeps the
        arrays alive: `tuned.bind(g=gradient, p=weights)`, `tuned.bind({"p.0": a, "p.1": b})`.
        """
        every: Dict[str, Any] = {}
        for name, value in {**(arrays or {}), **named}.items():
            if isinstance(value, (list, tuple)) and len(value) == 1 and name in self.tensors:
                every[name] = value[0]  # one size is no list
            elif isinstance(value, (list, tuple)):
                every.update((f"{name}.{i}", array) for i, array in enumerate(value))
            else:
                every[name] = value
        views: List[View] = []
        refusal: Optional[TypeError] = None
        names = (c_char_p * max(1, len(every)))(*(name.encode() for name in every))
        tensors = (POINTER(DLTensor) * max(1, len(every)))()
        for i, (name, array) in enumerate(every.items()):
            try:
                views.append(view(array, name not in self._inputs))
                tensors[i] = views[-1].pointer
            except Exception as failure:  # whatever an array of others raises
                refusal = TypeError(f"bind({name}): {failure}")
                refusal.__cause__ = failure
        handle = c_void_p()
        arguments = self._handle, names, tensors, len(every), byref(handle)
        if refusal is not None:
            refuse(refusal, "bind", *arguments)
        call("bind", *arguments)
        return Binding(self, handle.value or 0, views)

    def explain(self) -> str:
        """Which schedule runs, what it gained over the plain one, why each other lost or was
        refused, and of a miss which field of the key differed from the nearest record."""
        text = c_void_p()
        call("explain", self._handle, byref(text))
        try:
            return ctypes.string_at(text.value or 0).decode(errors="replace")
        finally:
            library().coconet_text_free(text)


def explain(tuned: Union[TunedProgram, "Binding"]) -> str:
    """`TunedProgram.explain`, of a program or of a binding's program."""
    return (tuned.program if isinstance(tuned, Binding) else tuned).explain()


class Scalar(OfThisProcess):
    """A scalar input of a binding, found once: `lr = bound.scalar("lr"); lr.set(1e-3)`."""

    def __init__(self, binding: "Binding", name: str):
        number = c_int()
        call("scalar", binding._open_handle(), name.encode(), byref(number))
        self._handle: Optional[int] = binding._handle
        self._number = number.value
        self._tensor = binding.program.tensors.get(name)
        self._set: Callable[[Any, int, float], int] = library().coconet_set

    def set(self, value: Union[float, int]) -> None:
        """Sets the scalar for the next step. `InvalidArgument` if its dtype does not hold the
        value."""
        if type(value) is not float:
            value = exact("set", value)
            if type(value) is int:
                self._set_integer(value)
                return
        status = self._set(self._handle, self._number, value)
        if status:
            check(status)

    def _set_integer(self, value: int) -> None:
        """All of 64 bits, which a float does not hold."""
        if self._handle is None:
            raise FailedPrecondition("the binding is closed")
        if -2**63 <= value < 2**64:
            name = "coconet_set_i64" if value < 2**63 else "coconet_set_u64"
            check(getattr(library(), name)(self._handle, self._number, value))
            return
        if self._tensor is not None and is_integer(self._tensor.dtype):
            integer_of("set", self._tensor.dtype, value)
        check(self._set(self._handle, self._number, float(value)))


def _closed(*arguments: Any) -> int:
    raise FailedPrecondition("the binding is closed")


class Binding(OfThisProcess):
    """A program bound to memory, and run step after step: what `TunedProgram.bind` returns.

    It is freed by `close()` or as a context manager, collectively on GPUs, or when it is dropped;
    on GPUs with several ranks a dropped one is freed when its session closes.
    """

    def __init__(self, program: TunedProgram, handle: int, views: List[View]):
        #: The `TunedProgram`.
        self.program = program
        self._session = program._session
        self._handle: Optional[int] = handle
        self._views = views
        self._scalars: Dict[str, Scalar] = {}
        self._run: Callable[[Any], int] = library().coconet_run
        self._is_freed_alone = self._session._backend == "host" or self._session.ranks == 1

    def _open_handle(self) -> int:
        if self._handle is None:
            raise FailedPrecondition("the binding is closed")
        return self._handle

    def scalar(self, name: str) -> Scalar:
        """The scalar input `name`, for setting it often."""
        found = self._scalars.get(name)
        if found is None:
            found = self._scalars[name] = Scalar(self, name)
        return found

    def set(self, **values: float) -> None:
        """Sets scalars of the next step: `bound.set(lr=1e-3, step=1)`."""
        for name, value in values.items():
            self.scalar(name).set(value)

    def __setitem__(self, name: str, value: Any) -> None:
        """`bound["lr"] = 1e-3` sets a scalar; `bound["p"] = array` is `write`."""
        if hasattr(value, "__float__") and not getattr(value, "shape", ()):
            tensor = self.program.tensors.get(name)
            if tensor is None or (tensor.role == "input" and not tensor.shape):
                self.scalar(name).set(value)
                return
        self.write(name, value)

    def __getitem__(self, name: str) -> Any:
        """`read(name)`."""
        return self.read(name)

    def run(self) -> None:
        """Runs one step; returns when this rank's part is done."""
        status = self._run(self._handle)
        if status:
            check(status)

    def run_steps(self, steps: int) -> None:
        """Runs as many steps, with the same scalars."""
        call("run_steps", self._open_handle(), count_of("steps", steps))

    def enqueue(self, stream: Any = 0) -> None:
        """Enqueues one step in a CUDA stream (torch.cuda.Stream, or its address) and returns; in
        `Session.stream` with the fewest calls of the driver."""
        call("enqueue", self._open_handle(), getattr(stream, "cuda_stream", stream))

    def wait(self) -> None:
        """Waits for what was enqueued, and raises its error."""
        call("wait", self._open_handle())

    def trace(self) -> None:
        """Runs one step and appends it to the trace that `Session.write_trace` writes."""
        call("trace", self._open_handle())

    def read(self, name: str, into: Any = None) -> Any:
        """A tensor's elements, in canonical form: all of the whole tensor, row-major, whatever its
        layout; of a local one, this rank's. Collective. Returns `into`, an array in the memory of
        the host, or else a new NumPy array (of bf16 and 8-bit floats:
        of ml_dtypes', or unsigned integers with their bits)."""
        results = [into]

        def memory() -> View:
            if into is not None:
                return view(into, is_written=True)
            tensor = self.program.tensor(name)
            new = results[0] = _new_numpy(tensor)
            to, kept = make_tensor(new.ctypes.data, dl_dtype(tensor.dtype), tensor.shape)
            return View(to, (new, kept))

        self._copy("read", name, memory)
        return results[0]

    def write(self, name: str, source: Any) -> None:
        """Sets a tensor's elements, in canonical form. Collective."""

        def memory() -> View:
            if not isinstance(source, (int, float, bool, list, tuple)):
                return view(source)
            return view(_numpy_of(source, self.program.tensor(name)))

        self._copy("write", name, memory)

    def _copy(self, call_name: str, name: str, memory: Callable[[], View]) -> None:
        handle = self._open_handle()
        try:
            copied = memory()
        except Exception as failure:  # whatever an array of others raises
            refuse(failure, call_name, handle, name.encode(), None)
        call(call_name, handle, name.encode(), copied.pointer)

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes all states to one file, for any schedule and number of ranks. Collective."""
        self._with_file("save", path)

    def load(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Reads states from a file. Collective."""
        self._with_file("load", path)

    def _with_file(self, call_name: str, path: Any) -> None:
        handle = self._open_handle()
        try:
            encoded = os.fsencode(path)
        except TypeError as failure:
            refuse(failure, call_name, handle, None)
        call(call_name, handle, encoded)

    def close(self) -> None:
        """Frees the binding. Collective on GPUs. Twice is harmless."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._run = _closed
            for scalar in self._scalars.values():
                scalar._set, scalar._handle = _closed, None
            library().coconet_binding_free(handle)
            self._views = []

    def __enter__(self) -> "Binding":
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        self.close()

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is None or sys.is_finalizing():
            return
        if self._is_freed_alone or self._session._handle is None:
            self.close()
        else:  # ranks drop bindings at different times, and freeing one is collective
            self._session._ended.append(Ended(handle, self._views))


class Ended(NamedTuple):
    """A binding that nobody can reach any more, and what it uses."""

    handle: int
    views: List[View]


def _new_numpy(tensor: Tensor) -> Any:
    import numpy
    return numpy.zeros(tensor.shape, numpy_dtype(tensor.dtype))


def _numpy_of(numbers: Any, tensor: Tensor) -> Any:
    """A number, or lists of them, as an array like the tensor, which must hold each."""
    import numpy
    array = _new_numpy(tensor)
    if is_integer(tensor.dtype):
        held = numpy.frompyfunc(lambda x: integer_of("write", tensor.dtype, x), 1, 1)
        array[...] = held(numpy.array(numbers, dtype=object))
        return array
    if tensor.dtype in OF_ML_DTYPES and array.dtype == OF_ML_DTYPES[tensor.dtype]:
        raise TypeError(f"write: NumPy has no {tensor.dtype}; install ml_dtypes, or write an array "
                        f"of {tensor.dtype}")
    try:
        with numpy.errstate(over="raise"):
            array[...] = numbers
            if tensor.dtype in OF_ML_DTYPES:  # whose casts raise nothing
                held = numpy.isfinite(array.astype(numpy.float32))
                if not (held | ~numpy.isfinite(numpy.array(numbers, dtype=numpy.float64))).all():
                    raise FloatingPointError
    except FloatingPointError:
        raise InvalidArgument(f"write: want numbers that {tensor.dtype} holds, have greater ones") \
            from None
    return array
