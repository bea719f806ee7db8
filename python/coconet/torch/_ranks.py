"""The ranks of an optimizer: sessions by process group, and what they need besides programs."""

from __future__ import annotations

import hashlib
import json
import weakref
import zlib
from typing import Any, Callable, Counter, Dict, List, Optional, Tuple

import torch
import torch.distributed as dist

import coconet
from coconet._groups import is_torch_group
from coconet.torch._buffers import distinct

# How a session tunes: its policy, budget and progress; None: as it does by default.
Tuning = Tuple[Optional[str], Optional[float], Optional[Callable[[str], None]]]
_NO_TUNING: Tuning = (None, None, None)
# By the group's id and how they tune; keeps the group.
_sessions: Dict[Tuple[int, Tuning], Tuple[Any, coconet.Session]] = {}


def group_of(group: Any) -> Any:
    """The group that a caller means by None: torch's default group, if there is one."""
    if group is None and dist.is_available() and dist.is_initialized():
        return dist.group.WORLD
    return group


def meeting_of(group: Any, session: Any,
               tuning: Tuning = _NO_TUNING) -> Tuple[Any, coconet.Session]:
    """How the ranks meet that a caller means by a group, a session, both or neither."""
    if session is not None:
        for name, value in zip(("policy", "budget", "progress"), tuning):
            if value is not None:
                raise ValueError(f"{name}={value!r} and a session: want one of them, since a "
                                 f"session has a {name} of its own")
        return session._process_group if group is None else group, session
    return group_of(group), session_of(group_of(group), tuning)


_counts: "weakref.WeakKeyDictionary[coconet.Session, Counter[str]]" = weakref.WeakKeyDictionary()


def number_in(session: coconet.Session, kind: str) -> int:
    """The number, from 1, of an object among those of its kind, which all ranks make in the same
    order."""
    counts = _counts.setdefault(session, Counter())
    counts[kind] += 1
    return counts[kind]


def session_of(group: Any, tuning: Tuning = _NO_TUNING) -> coconet.Session:
    """One session per group and way of tuning, for all optimizers of the process."""
    key = (id(group), tuning)
    found = _sessions.get(key)
    if found is None or found[1]._handle is None:
        policy, budget, progress = tuning
        session = coconet.Session(group, policy="tune" if policy is None else policy,
                                  budget=budget, progress=progress)
        found = _sessions[key] = (group, session)
    return found[1]


def check_equal(group: Any, session: coconet.Session, what: str, value: Any) -> None:
    """ValueError on all ranks where `value`, which JSON can write, differs between ranks; Aborted
    where they have not met by torch."""
    digest = hashlib.sha256(json.dumps(value).encode()).hexdigest()
    if not is_torch_group(group):
        session.meet(f"{what}, of the checksum {digest[:8]}: want equal ones on all ranks")
        return
    everyone: List[Any] = [None] * session.ranks
    dist.all_gather_object(everyone, digest, group=group)
    for rank, other in enumerate(everyone):
        if other != everyone[0]:
            raise ValueError(f"{what} of rank {rank} differ from rank 0's: want equal "
                             "names, dtypes, shapes and strides, in one order, and the same ones "
                             "trained: by requires_grad, or since they have a gradient")


def check_near(group: Any, session: coconet.Session, call: str,
               tensors: Dict[str, torch.Tensor]) -> None:
    """ValueError on all ranks where tensors, by name, differ between ranks by more than
    roundings; torch's groups only. Equal ones cost a checksum; the others are compared with
    rank 0's."""
    if not is_torch_group(group):
        return
    everyone: List[Any] = [None] * session.ranks
    dist.all_gather_object(everyone, list(map(checksum, tensors.values())), group=group)
    if all(other == everyone[0] for other in everyone):
        return
    far = []
    for number, (name, tensor) in enumerate(tensors.items()):
        if any(other[number] != everyone[0][number] for other in everyone):
            first = tensor.detach().clone()
            broadcast(group, session, first)
            if not _is_near(tensor.detach(), first):
                far.append(name)
    dist.all_gather_object(everyone, far, group=group)
    for rank, names in enumerate(everyone):
        if names:
            raise ValueError(
                f"{call}: the weights of {names[0]} differ between rank 0 and rank {rank}: they "
                "were changed on one rank only, or to other values; change weights on all "
                "ranks alike, or make the optimizer afterwards, which takes rank 0's")


def _is_near(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether no element differs by more than what ranks on other processors may round otherwise
    when all compute the same."""
    share = 1e-4 + 2 * torch.finfo(a.dtype).eps
    a, b = a.double(), b.double()
    most = torch.max(a.abs().nan_to_num(posinf=0).max(), b.abs().nan_to_num(posinf=0).max())
    return bool(torch.isclose(a, b, rtol=share, atol=1e-5 * most.item(), equal_nan=True).all())


def checksum(states: Any) -> int:
    """A checksum of the tensors and numbers in a `state_dict()["state"]`; 0 for others."""
    if isinstance(states, torch.Tensor):
        if states.layout != torch.strided or states.is_quantized:
            return 0
        flat = states.detach().cpu().resolve_conj().resolve_neg().reshape(-1).contiguous()
        return zlib.crc32(memoryview(bytes_of(flat).numpy()))
    if isinstance(states, dict):
        states = [(str(name), value) for name, value in states.items()]
        return checksum([part for item in sorted(states, key=lambda item: item[0])
                         for part in item])
    if isinstance(states, (list, tuple)):
        return zlib.crc32(b"".join(checksum(value).to_bytes(4, "little") for value in states))
    # No others: what `repr` shows of an object may be its address.
    return zlib.crc32(repr(states).encode()) if isinstance(states, (str, int, float)) else 0


def bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """A contiguous tensor's memory. In a dimension of extent 1 torch leaves the
    stride as it is, even if that is not 1."""
    return tensor.as_strided((tensor.numel(),), (1,)).view(torch.uint8)


def broadcast(group: Any, session: coconet.Session, tensor: torch.Tensor) -> None:
    """Rank 0's values, in place; as bytes, since neither gloo nor programs know every dtype."""
    tensor = distinct(tensor.detach())
    if not tensor.numel():
        return
    values = tensor.resolve_conj().resolve_neg().contiguous()
    bytes_of_it = bytes_of(values)
    if is_torch_group(group):
        root = 0 if group is dist.group.WORLD else _global_rank(group)
        dist.broadcast(bytes_of_it, root, group=group)
    else:
        program = coconet.Program("broadcast")
        x = program.input("x", "u8", ["N"], "local")
        program.output("y", coconet.broadcast(x, 0))
        tuned = session.compile(program, N=bytes_of_it.numel())
        result = torch.empty_like(bytes_of_it)
        with tuned.bind(x=bytes_of_it, y=result) as bound:
            bound.run()
        values = result.view(values.dtype).view(values.shape)
    if values.data_ptr() != tensor.data_ptr() or tensor.is_neg():
        tensor.copy_(values)


def _global_rank(group: Any) -> int:
    get = getattr(dist, "get_global_rank", None)
    return int((get or dist.distributed_c10d.get_global_rank)(group, 0))
