"""A rank's place in a world of ranks."""

from __future__ import annotations

import atexit
import ctypes
import gzip
import os
import pathlib
import re
import sys
import warnings
import weakref
from ctypes import POINTER, byref, c_void_p
from typing import Any, Callable, Dict, Generator, List, Mapping, Optional, Sequence, Union

from coconet import _groups
from coconet._array import Array
from coconet._dlpack import dl_dtype, dtype_name, int64s
from coconet._errors import (FailedPrecondition, OfThisProcess, Unavailable, did_you_mean,
                             error_of)
from coconet._library import (INTERRUPTED, LINE, DLDataType, DLManagedTensor, Options, Size, call,
                              check, last_error, library, refuse)
from coconet._numbers import count_of, seconds_of
from coconet._tuned import Ended, TunedProgram
from coconet.program import Program

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_POLICIES = {"tune": 0, "cache_only": 1, "baseline_on_miss": 2, "improve": 3, "online": 4}
_BACKENDS = {"host": 0, "cuda": 1, "simt": 2}
_SUM_ORDERS = {"any": 0, "rank": 1}
_SUM_ROUNDINGS = {"once": 0, "each": 1}
_NANS = {"possible": 0, "none": 1}
_EFFORTS = {"full": 0, "fast": 1}

Sizes = Mapping[str, Union[int, Sequence[int]]]


def _number(what: str, word: str, numbers: Dict[str, int]) -> int:
    if word not in numbers:
        raise ValueError(f"{what}={word!r}: want one of {', '.join(map(repr, numbers))}"
                         f"{did_you_mean(word, numbers)}")
    return numbers[word]


def warn_caller(line: str) -> None:
    """A warning whose place is the caller's, outside of this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        level, frame = level + 1, frame.f_back
    warnings.warn("coconet: " + line, RuntimeWarning, stacklevel=level)


class Session(OfThisProcess):
    """One rank's place in a world of ranks. Collective: all ranks of the group make one.

    `group` is how the ranks meet: None (a world of one rank), a process group of
    torch.distributed, a communicator of mpi4py, or any object with `rank`, `size` and
    `all_gather_bytes` (`coconet.Group`). A rank that does not come is an error by the deadline.

    Options must be equal on all ranks, except `cache_file` and the callbacks:

    cache_file    the tuning cache; None: tuning.db in the cache folder; ":none:": none
    policy        of a program that is not in it: "tune" (measure every variant), "cache_only"
                  (NotFound), "baseline_on_miss" (the plain schedule at once, with a warning),
                  "improve" (as "tune", and tune an incomplete record further first), or "online"
                  (on hosts: variants take turns with the best one in the job's steps, at most 5 %
                  of the time of any 100 steps, and the cache keeps what was learned)
    backend       "host", "cuda" or "simt"
    sum_order     of sums over ranks: "any", or "rank": 0 + 1 + ... + (n-1)
    sum_rounding  of sums of f16 and bf16 over ranks: "once", at the end, or "each" addition, which
                  admits NCCL for more than two ranks
    nans          "possible", or "none": no operand of a minimum or maximum over ranks is NaN, which
                  admits NCCL for those of floats; what a NaN gives is then not defined
    effort        "full", or "fast" for tests, where only answers matter
    budget        the most seconds that tuning one program may take, or, with policy "online", that
                  compile() may take to prepare variants; None: 60
    timeout       seconds of one wait for a peer; None: COCONET_TIMEOUT, or what the process group
                  of torch.distributed waits (30 minutes, unless it was made with another), or 60
    stages        pipeline stages
    nodes         virtual nodes; 0: one per machine
    pinned        whether the thread that makes a session stays on a core of its own
    retune        whether programs that are in the cache are tuned, too
    memory_limit  bytes that a program may have on a rank
    progress      called on rank 0 with lines of text while tuning, and exploring; None: a line on
                  stderr says that a program is tuned, and for how long at most
    warn          called on rank 0 with warnings; None: warnings.warn

    A session is a context manager, or is closed by `close()`, which is collective. Sessions that
    are left open are closed when the interpreter exits; the other ranks are told where it exits by
    an exception.
    Its objects may be used by any thread, one call at a time.
    """

    def __init__(self, group: Any = None, *,
                 cache_file: Union[str, "os.PathLike[str]", None] = None,
                 policy: str = "tune", backend: str = "host", sum_order: str = "any",
                 sum_rounding: str = "once", nans: str = "possible", effort: str = "full",
                 budget: Optional[float] = None, timeout: Optional[float] = None, stages: int = 1, nodes: int = 0,
                 pinned: bool = False, retune: bool = False, memory_limit: Optional[int] = None,
                 progress: Optional[Callable[[str], None]] = None,
                 warn: Optional[Callable[[str], None]] = None) -> None:
        self._handle: Optional[int] = None
        self._pid = os.getpid()
        self._backend = backend
        #: Whether the rank is a process, and no thread.
        #: The process group of PyTorch by which the ranks have met, if any.
        self._process_group = group if _groups.is_torch_group(group) else None
        self._is_process = _groups.is_torch_group(group) or _groups.is_mpi_communicator(group)
        self._ended: List[Ended] = []  # bindings that were dropped without close()
        self._interrupt: Optional[BaseException] = None
        self._progress = progress
        self._warn = warn_caller if warn is None else warn
        self._callbacks = (LINE(self._lines("_progress")), LINE(self._lines("_warn")),
                           INTERRUPTED(self._interrupts()))
        options = Options(
            size=ctypes.sizeof(Options),
            cache_file=None if cache_file is None else os.fsencode(cache_file),
            policy=_number("policy", policy, _POLICIES),
            backend=_number("backend", backend, _BACKENDS),
            sum_order=_number("sum_order", sum_order, _SUM_ORDERS),
            sum_rounding=_number("sum_rounding", sum_rounding, _SUM_ROUNDINGS),
            nans=_number("nans", nans, _NANS),
            effort=_number("effort", effort, _EFFORTS),
            budget_s=0 if budget is None else seconds_of("budget", budget),
            timeout_s=_groups.timeout_of(group) or 0 if timeout is None
            else seconds_of("timeout", timeout),
            stages=count_of("stages", stages, 1, "i32"), nodes=count_of("nodes", nodes, 0, "i32"),
            pin=pinned, retune=retune,
            memory_limit=0 if memory_limit is None else count_of("memory_limit", memory_limit, 1),
            warn=self._callbacks[1],
            interrupted=self._callbacks[2])
        if progress is not None:
            options.progress = self._callbacks[0]
        handle = c_void_p()
        self._join(group, options, handle)
        self._handle = handle.value
        self._run_interrupt()
        _sessions[self] = None

    def _join(self, group: Any, options: Options, handle: c_void_p) -> None:
        if group is None:
            call("session_open", byref(options), byref(handle))
            return
        if _groups.is_mpi_communicator(group):
            from mpi4py import MPI  # type: ignore
            status = library().coconet_session_join_mpi(MPI._addressof(group), byref(options),
                                                        byref(handle))
            if status != Unavailable.code:
                check(status)
                return
        band = _groups.OutOfBandStruct(_groups.exchange_of(group))
        call("session_join", byref(band.struct), byref(options), byref(handle))

    def _lines(self, name: str) -> Callable[[Any, bytes], None]:
        """A callback that passes lines on to this session's attribute `name`."""
        this = weakref.ref(self)

        def tell(context: Any, line: bytes) -> None:
            session = this()
            if session is None:
                return
            try:
                to = getattr(session, name)
                if to is not None:
                    to(line.decode(errors="replace"))
            except BaseException as failure:  # nothing may pass through the library
                session._interrupt = session._interrupt or failure

        return tell

    def _interrupts(self) -> Callable[[Any], Any]:
        """The callback `interrupted`. Python handles Ctrl-C where a function begins or resumes: a
        generator resumes inside of its try."""
        this = weakref.ref(self)

        def poll() -> Generator[int, Any, None]:
            answer = 0
            while True:
                try:
                    yield answer
                    session = this()
                    answer = int(session is None or session._interrupt is not None)
                except BaseException as failure:
                    session = this()
                    if session is None or isinstance(failure, GeneratorExit):
                        return
                    session._interrupt, answer = failure, 1

        generator = poll()
        next(generator)
        return generator.send

    def _run_interrupt(self) -> None:
        """Raises what a callback raised, Ctrl-C among others."""
        if self._interrupt is not None:
            failure, self._interrupt = self._interrupt, None
            raise failure

    def _open_handle(self) -> int:
        if self._handle is None:
            raise FailedPrecondition("the session is closed")
        return self._handle

    @property
    def rank(self) -> int:
        """This rank's number, from 0."""
        return int(library().coconet_session_rank(self._open_handle()))

    @property
    def ranks(self) -> int:
        """Number of ranks, of all stages."""
        return int(library().coconet_session_ranks(self._open_handle()))

    @property
    def stage(self) -> int:
        """The pipeline stage that this rank is in, from 0."""
        return int(library().coconet_session_stage(self._open_handle()))

    @property
    def stages(self) -> int:
        return int(library().coconet_session_stages(self._open_handle()))

    @property
    def stream(self) -> Optional[int]:
        """The address of the rank's own CUDA stream, valid until the session is closed (None on
        hosts). A program that works there, as in `with torch.cuda.stream(
        torch.cuda.ExternalStream(session.stream))`, enqueues steps with the fewest calls of the
        driver."""
        stream: Optional[int] = library().coconet_session_stream(self._open_handle())
        return stream

    def compile(self, program: Union[str, "os.PathLike[str]", Program],
                sizes: Optional[Sizes] = None, /,
                **named_sizes: Union[int, Sequence[int]]) -> TunedProgram:
        """The program for these sizes, from the tuning cache or tuned now. Collective.

        `program` is a `coconet.Program`, text of the language, or the path of a file of such text,
        which gzip may have compressed. A size
        is a number, or a list of numbers for a program over a list of tensors:
        `session.compile("adam.coco", N=1 << 24)`, `session.compile(text, N=[1024, 4096])`.
        """
        handle = c_void_p()
        try:
            text = _text_of(program)
            every = {**(sizes or {}), **named_sizes}
            array = _sizes_of(every)
        except Exception as failure:
            refuse(failure, "compile", self._open_handle(), None, None, 0, byref(handle))
        status = library().coconet_compile(self._open_handle(), text.encode(), array, len(every),
                                           byref(handle))
        if status:
            self._interrupt = self._interrupt or error_of(
                status, program._with_place(last_error()) if isinstance(program, Program)
                else last_error())
        self._run_interrupt()
        return TunedProgram(self, handle.value or 0, text)

    def allocate(self, dtype: Any, shape: Union[int, Sequence[int]]) -> Array:
        """Zeros in memory that peers reach, so that programs copy nothing. Collective.

        `dtype` is a name of the language ("f32"), or a dtype of NumPy or PyTorch.
        """
        managed = POINTER(DLManagedTensor)()
        try:
            element = dl_dtype(dtype_name(dtype))
            dims = [shape] if hasattr(shape, "__index__") else list(shape)  # type: ignore
            extents = int64s([count_of("extent", extent) for extent in dims])
        except Exception as failure:
            refuse(failure, "allocate", self._open_handle(), DLDataType(), 0, None, byref(managed))
        call("allocate", self._open_handle(), element, len(dims), extents, byref(managed))
        return Array(managed)

    def write_trace(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the steps that `Binding.trace` ran, as Chrome JSON shaped like Kineto's."""
        call("trace_write", self._open_handle(), os.fsencode(path))

    def meet(self, what: str) -> None:
        """Returns when all ranks have come. Collective: where one makes another call, or says
        another `what`, Aborted on all ranks, in words that name both."""
        call("session_meet", self._open_handle(), what.encode())

    def close(self) -> None:
        """Leaves the world. Collective unless an error came before: Aborted, and closed, where the
        ranks have made different calls. Twice is harmless."""
        self._end()

    def _end(self, waits: bool = True, why: Optional[str] = None) -> None:
        """Leaves the world; does not wait for the others where an error is the reason."""
        handle, self._handle = self._handle, None
        _sessions.pop(self, None)
        if handle is None or self._pid != os.getpid():
            return
        ended, self._ended = self._ended, []
        if waits and why is None:
            status = library().coconet_session_close(handle)
        else:
            status = library().coconet_session_leave(
                handle, None if why is None else why.encode(errors="replace"))
        failure = error_of(status, last_error()) if status else None
        for binding in ended:
            library().coconet_binding_free(binding.handle)
        if failure is not None:
            raise failure

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        self._end(why=None if kind is None else f"{kind.__name__}: {value}")

    def __repr__(self) -> str:
        if self._handle is None:
            return "coconet.Session(closed)"
        return f"coconet.Session(rank {self.rank} of {self.ranks})"


def _sizes_of(sizes: Sizes) -> Any:
    """An array of C's, with one element if there are none."""
    array = (Size * max(1, len(sizes)))()
    for size, (symbol, value) in zip(array, sizes.items()):
        values = list(value) if isinstance(value, Sequence) else [value]
        if isinstance(value, str) or not all(hasattr(x, "__index__") for x in values):
            raise TypeError(f"size {symbol}={value!r}: want an integer, or a list of integers")
        values = [count_of(f"size {symbol}", x) for x in values]
        size.symbol, size.values, size.count = symbol.encode(), int64s(values), len(values)
    return array


def _text_of(program: Any) -> str:
    if isinstance(program, Program):
        return program.text
    if isinstance(program, str) and not _is_path(program):
        return program
    if isinstance(program, (str, os.PathLike)):
        return _read(pathlib.Path(program))
    raise TypeError(f"program: want a coconet.Program, text, or the path of a .coco file; have "
                    f"{type(program).__name__}")


def _is_path(text: str) -> bool:
    """A program has lines; a name of a file has an ending, or folders before it."""
    if "\n" in text or text.startswith("coconet "):
        return False
    return re.search(r"[/.]\S*\S$", text) is not None


def _read(path: pathlib.Path) -> str:
    content = path.read_bytes()
    if content.startswith(b"\x1f\x8b"):
        content = gzip.decompress(content)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path}: want the text of a program in UTF-8; have a binary file") from None


_sessions: "Dict[Session, None]" = {}  # all that are open, in the order of their making


@atexit.register
def _close_all() -> None:
    """Closes what is open; after an exception leaves, which peers are told, and waits for nobody."""
    failure = getattr(sys, "last_type", None)
    why = None if failure is None else f"{failure.__name__}: {getattr(sys, 'last_value', '')}"
    # If ranks are threads of this process, one cannot wait here for the next.
    waits = sum(not session._is_process for session in _sessions) <= 1
    for session in list(_sessions):
        try:
            session._end(waits or session._is_process, why)
        except Exception as failure:
            print(f"coconet: closing a session: {failure}", file=sys.stderr)
