"""The ranks of an optimizer: sessions by process group, and what they need besides programs."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Dict, List, Tuple

import torch
import torch.distributed as dist

import coconet
from coconet._groups import is_torch_group
from coconet.torch._buffers import distinct

_sessions: Dict[int, Tuple[Any, coconet.Session]] = {}  # by the group's id; keeps the group


def group_of(group: Any) -> Any:
    """The group that a caller means by None: torch's default group, where there is one."""
    if group is None and dist.is_available() and dist.is_initialized():
        return dist.group.WORLD
    return group


def session_of(group: Any) -> coconet.Session:
    """One session per group, for all optimizers of the process."""
    found = _sessions.get(id(group))
    if found is None or found[1]._handle is None:
        found = _sessions[id(group)] = (group, coconet.Session(group))
    return found[1]


def check_equal(group: Any, session: coconet.Session, what: str, value: Any) -> None:
    """ValueError on all ranks where `value`, which JSON can write, differs between ranks."""
    if not is_torch_group(group):
        return  # compiling compares programs and sizes
    digest = hashlib.sha256(json.dumps(value).encode()).hexdigest()
    everyone: List[Any] = [None] * session.ranks
    dist.all_gather_object(everyone, digest, group=group)
    for rank, other in enumerate(everyone):
        if other != everyone[0]:
            raise ValueError(f"{what} of rank {rank} differ from rank 0's: want equal "
                             "dtypes, shapes and strides, in one order, and the same ones "
                             "trained: by requires_grad, or since they have a gradient")


def broadcast(group: Any, session: coconet.Session, tensor: torch.Tensor) -> None:
    """Rank 0's values, in place; as bytes, since neither gloo nor programs know every dtype."""
    tensor = distinct(tensor.detach())
    if not tensor.numel():
        return
    values = tensor.resolve_conj().resolve_neg().contiguous()
    # Of an extent of 1 torch leaves the stride as it is, also where that is not 1.
    bytes_of_it = values.as_strided((values.numel(),), (1,)).view(torch.uint8)
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
