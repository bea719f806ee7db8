"""Buffers of modules: what DistributedDataParallel does for them."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import torch

import coconet
from coconet.torch._ranks import broadcast, check_equal, meeting_of, number_in


def sync_buffers(module: torch.nn.Module, group: Any = None,
                 session: Optional[coconet.Session] = None) -> Any:
    """Gives all ranks rank 0's buffers of `module` (running means), now and before each forward pass
    in training, as DistributedDataParallel does with `broadcast_buffers=True`.

    Collective, as are those forward passes. `group` and `session`: as of the optimizers. Returns a
    handle, whose `remove()` ends it. An error where the ranks' buffers differ in dtype or shape.
    """
    group, world = meeting_of(group, session)
    which = ""
    if world.ranks > 1:
        check_equal(group, world, "the module's buffers",
                    [(name, str(b.dtype), list(b.shape)) for name, b in module.named_buffers()])
        number = number_in(world, "module")
        which = f" of module {number}" if number > 1 else ""
        _broadcast_buffers(module, group, world, which)

    def before_forward(hooked: torch.nn.Module, _: Any) -> None:
        if hooked.training and world.ranks > 1:
            _broadcast_buffers(hooked, group, world, which)

    return module.register_forward_pre_hook(before_forward)


def _broadcast_buffers(module: torch.nn.Module, group: Any, session: coconet.Session,
                       which: str) -> None:
    """One message for all buffers of a dtype."""
    session.meet(f"sync_buffers(){which}")
    of_dtype: Dict[torch.dtype, List[torch.Tensor]] = {}
    for buffer in module.buffers():
        of_dtype.setdefault(buffer.dtype, []).append(buffer)
    with torch.no_grad():
        for buffers in of_dtype.values():
            values = torch.cat([buffer.reshape(-1) for buffer in buffers])
            broadcast(group, session, values)
            for buffer, part in zip(buffers, values.split([b.numel() for b in buffers])):
                buffer.copy_(part.view(buffer.shape))
