"""Optimizers for PyTorch that average gradients over the ranks and update weights in one program.

    model = Gpt()
    optimizer = coconet.torch.FusedAdamW(model.parameters(), lr=1e-3)   # of the default group
    for tokens, targets in batches:
        optimizer.zero_grad()
        model(tokens, targets).backward()
        optimizer.step()

They stand in for DistributedDataParallel plus `torch.optim.SGD`, `Adam` and `AdamW`, whose
arguments they take; the model is not wrapped. Besides:

group          a process group of torch.distributed (None: the default group, or one rank where
               there is none), or what `coconet.Session` takes
session        an open `coconet.Session` instead, with options of its own
policy, budget, progress
               of the session that is made without one, as `coconet.Session` takes them; alike on
               all ranks. Optimizers of one group and the same three share a session
max_grad_norm  clips by the norm of all averaged gradients, as torch.nn.utils.clip_grad_norm_ does;
               `optimizer.grad_norm` is the norm of the last step
loss_scale     a number or "dynamic": `(loss * optimizer.loss_scale).backward()`. A step changes
               nothing where any gradient on any rank is inf or nan; a dynamic scale is halved then,
               down to 2**-16 (FloatingPointError), and doubled after 2000 good steps

Making an optimizer is collective: weights become views of memory that peers reach, with rank 0's
values. So are `step`, `add_param_group`, `state`, `state_dict`, `load_state_dict`, whose layout is
that of torch's own optimizers, and `copy.deepcopy`. Convert or move a model before. `param.grad`
holds this rank's gradient, before and after a step; gradients of several backward passes
accumulate, and are averaged in `step`: clip by `max_grad_norm`, not by `clip_grad_norm_`.
Parameters lie on the CPU; gradients are dense. Buffers of a module (running means) are not the
optimizer's: `coconet.torch.sync_buffers(module)` keeps them equal on all ranks.
"""

from coconet.torch._modules import sync_buffers
from coconet.torch._optimizer import FusedOptimizer
from coconet.torch._optimizers import FusedAdam, FusedAdamW, FusedLAMB, FusedSGD

__all__ = ["FusedAdam", "FusedAdamW", "FusedLAMB", "FusedOptimizer", "FusedSGD", "sync_buffers"]
