"""How ranks meet: groups of PyTorch, of mpi4py, and of anybody, as an all-gather of bytes."""

from __future__ import annotations

import ctypes
import math
import os
import sys
import traceback
from ctypes import c_void_p
from typing import Any, Dict, List, Optional, Protocol, Tuple

from coconet._library import (ABSENT, ALL_GATHER, ERROR, RELEASE, TEST, OutOfBand)


class Group(Protocol):
    """What `Session` takes as `group`: a rank's place, and an all-gather.

    `all_gather_bytes` is called by the thread that joins, on all ranks in the same order; it
    returns the bytes of all ranks, by rank. It may block until all have come; it should raise
    where one does not.
    """

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    def all_gather_bytes(self, mine: bytes) -> List[bytes]: ...


class Exchange:
    """An all-gather of bytes in progress, one call at a time."""

    rank: int
    size: int

    def begin(self, mine: bytes) -> None:
        raise NotImplementedError

    def result(self) -> Optional[List[bytes]]:
        """The bytes of all ranks; None as long as some have not come."""
        raise NotImplementedError

    def absent(self) -> int:
        """The rank that the gathering waits for; -1: not known."""
        return -1


class _BlockingExchange(Exchange):
    """Over a function that returns when all ranks have come."""

    def __init__(self, rank: int, size: int, gather: Any):
        self.rank, self.size, self._gather = rank, size, gather
        self._result: List[bytes] = []

    def begin(self, mine: bytes) -> None:
        self._result = self._gather(mine)

    def result(self) -> Optional[List[bytes]]:
        return self._result


class _StoreExchange(Exchange):
    """Over the store of a PyTorch process group, with a key per call and rank."""

    _joins: Dict[Tuple[int, ...], int] = {}  # sessions that this process has joined, by group

    def __init__(self, rank: int, ranks: Tuple[int, ...], store: Any):
        self.rank, self.size, self._store = rank, len(ranks), store
        number = self._joins[ranks] = self._joins.get(ranks, -1) + 1
        self._prefix = f"coconet/{'.'.join(map(str, ranks))}/{number}"
        self._calls = 0
        self._parts: List[bytes] = []

    def _key(self, rank: int) -> str:
        return f"{self._prefix}/{self._calls}/{rank}"

    def begin(self, mine: bytes) -> None:
        self._calls += 1
        self._parts = []
        # In hexadecimal: older stores cut bytes that are no text.
        self._store.set(self._key(self.rank), mine.hex() + ".")
        self._store.add(self._key(self.rank) + "/set", 1)

    def result(self) -> Optional[List[bytes]]:
        while len(self._parts) < self.size:
            key = self._key(len(self._parts))
            # A counter says whether the key is there. `check` is missing in PyTorch 1.13, whose
            # `wait` leaves a late answer on the connection where it times out.
            if self._store.add(key + "/set", 0) == 0:
                return None
            self._parts.append(bytes.fromhex(self._store.get(key).decode()[:-1]))
        return self._parts

    def absent(self) -> int:
        return len(self._parts) if len(self._parts) < self.size else -1


def is_torch_group(group: Any) -> bool:
    return "torch" in sys.modules and any(
        kind.__name__ in ("ProcessGroup", "ProcessGroupWrapper") for kind in type(group).__mro__)


def is_mpi_communicator(group: Any) -> bool:
    return any(kind.__module__.startswith("mpi4py") for kind in type(group).__mro__)


def _torch_exchange(group: Any) -> Exchange:
    import torch.distributed as dist
    from torch.distributed import distributed_c10d as c10d
    rank = dist.get_rank(group)
    if rank < 0:
        raise ValueError("this process is not in the process group")
    get_ranks = getattr(dist, "get_process_group_ranks", None)
    if get_ranks is not None:
        ranks = tuple(get_ranks(group))
    elif group is c10d._get_default_group():
        ranks = tuple(range(dist.get_world_size(group)))
    else:
        places = c10d._pg_group_ranks[group]
        ranks = tuple(sorted(places, key=lambda rank: int(places[rank])))
    store = c10d._get_default_store()
    if store is not None:
        return _StoreExchange(rank, ranks, store)

    def gather(mine: bytes) -> List[bytes]:
        everyone: List[Any] = [None] * len(ranks)
        dist.all_gather_object(everyone, mine, group=group)
        return everyone

    return _BlockingExchange(rank, len(ranks), gather)


def timeout_of(group: Any) -> Optional[float]:
    """How long a process group of PyTorch waits for a rank, in seconds, unless COCONET_TIMEOUT says
    how long; None of other groups."""
    if not is_torch_group(group) or _is_timeout(os.environ.get("COCONET_TIMEOUT", "")):
        return None
    from torch.distributed import distributed_c10d as c10d
    backends = [group]
    if hasattr(group, "_get_backend"):
        import torch
        for device in ("cpu", "cuda"):
            try:
                backends.append(group._get_backend(torch.device(device)))
            except RuntimeError:  # the group has none for it
                pass
    for backend in backends:
        timeout = getattr(getattr(backend, "options", None), "_timeout", None)
        if timeout is not None:
            return float(timeout.total_seconds())
    return float(c10d.default_pg_timeout.total_seconds())


def _is_timeout(text: str) -> bool:
    """Whether the library takes it; what it does not take counts as unset."""
    try:
        return 0 < float(text) < math.inf
    except ValueError:
        return False


def exchange_of(group: Any) -> Exchange:
    """TypeError where `group` is nothing by which ranks can meet."""
    if is_torch_group(group):
        return _torch_exchange(group)
    if is_mpi_communicator(group):
        return _BlockingExchange(group.Get_rank(), group.Get_size(), group.allgather)
    if all(hasattr(group, name) for name in ("rank", "size", "all_gather_bytes")):
        return _BlockingExchange(group.rank, group.size, group.all_gather_bytes)
    raise TypeError(f"group: want a process group of torch.distributed, a communicator of mpi4py, "
                    f"or an object with rank, size and all_gather_bytes; have "
                    f"{type(group).__name__}")


class OutOfBandStruct:
    """A coconet_out_of_band over an exchange; its callbacks live as long as this object."""

    def __init__(self, exchange: Exchange):
        self._exchange = exchange
        self._all: Tuple[int, int] = (0, 0)  # address, and bytes per rank
        self._failure: Any = None
        self.struct = OutOfBand(
            ctypes.sizeof(OutOfBand), exchange.rank, exchange.size, None,
            ALL_GATHER(self._all_gather), TEST(self._test), RELEASE(lambda context, request: None),
            ABSENT(lambda context, request: self._exchange.absent()), ERROR(self._error))

    def _all_gather(self, context: int, mine: int, everyone: int, count: int,
                    request: Any) -> int:
        try:
            self._all = (everyone, count)
            self._exchange.begin(ctypes.string_at(mine, count))
            request[0] = 1
            return 0
        except Exception as failure:
            return self._failed(failure)

    def _test(self, context: int, request: int) -> int:
        try:
            parts = self._exchange.result()
            if parts is None:
                return 1
            address, count = self._all
            if len(parts) != self._exchange.size or any(len(part) != count for part in parts):
                raise ValueError(f"all_gather_bytes: want {self._exchange.size} times {count} "
                                 f"bytes, have {[len(part) for part in parts]}")
            ctypes.memmove(address, b"".join(parts), count * len(parts))
            return 0
        except Exception as failure:
            return self._failed(failure)

    def _failed(self, failure: Exception) -> int:
        words = traceback.format_exception_only(type(failure), failure)
        self._failure = ctypes.create_string_buffer("".join(words).strip().encode())
        return -1

    def _error(self, context: int) -> Optional[int]:
        return None if self._failure is None else ctypes.cast(self._failure, c_void_p).value
