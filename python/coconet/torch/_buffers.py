"""Parameters and gradients as views of memory that peers reach."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch

import coconet
from coconet._dlpack import dtype_name

_ALIGNMENT = 16  # elements: views begin at cache lines


class Slot:
    """A parameter's place in a buffer."""

    def __init__(self, parameter: torch.Tensor, offset: int):
        self.parameter = parameter
        self.offset, self.count = offset, parameter.numel()
        self.weights: torch.Tensor = parameter  # views of the buffer, set by it
        self.gradient: torch.Tensor = parameter
        self.address = 0

    def part_of(self, flat: torch.Tensor) -> torch.Tensor:
        return flat[self.offset:self.offset + self.count].view(self.parameter.shape)


class Buffer:
    """Weights and gradients of parameters of one group and dtype, side by side in two arrays.

    The parameters become views of the weights, their gradients, once there are any, of the
    gradients. Between them are zeros, which stay zeros in a step.
    """

    def __init__(self, session: coconet.Session, group: int, parameters: Sequence[torch.Tensor]):
        self.group = group
        self.dtype = dtype_name(parameters[0].dtype)
        self.slots: List[Slot] = []
        end = 0
        for parameter in parameters:
            self.slots.append(Slot(parameter, end))
            end += parameter.numel()
            if parameter is not parameters[-1]:
                end += -end % _ALIGNMENT
        self.size = end
        self.weights = session.allocate(self.dtype, max(1, end))
        self.gradients = session.allocate(self.dtype, max(1, end))
        self.flat_weights, self.flat_gradients = self.weights.torch(), self.gradients.torch()
        for slot in self.slots:
            slot.weights = slot.part_of(self.flat_weights)
            slot.gradient = slot.part_of(self.flat_gradients)
            slot.address = slot.weights.data_ptr()
            slot.weights.copy_(slot.parameter.detach())
            slot.parameter.data = slot.weights
            if slot.parameter.grad is not None:
                attach(slot)
        self._hooks = [hook for hook in map(_hook, self.slots) if hook is not None]

    def remove(self) -> None:
        for hook in self._hooks:
            hook.remove()


def take_weights(slot: Slot) -> None:
    """Of a parameter whose `data` somebody has replaced: the new values, in place."""
    data = slot.parameter.data
    if data.shape != slot.weights.shape or data.dtype != slot.weights.dtype or \
            data.device != slot.weights.device:
        raise RuntimeError(
            f"a parameter is {_words(data)}, and was {_words(slot.weights)} when the optimizer "
            "was made; make the optimizer after the model is converted or moved")
    slot.weights.copy_(data)
    slot.parameter.data = slot.weights


def _words(tensor: torch.Tensor) -> str:
    return f"{tensor.dtype}{list(tensor.shape)} on {tensor.device}"


def attach(slot: Slot) -> None:
    """Makes a gradient that autograd made a view of the buffer."""
    gradient = slot.parameter.grad
    if gradient is None or gradient is slot.gradient:
        return
    if gradient.layout != torch.strided:
        raise ValueError("a sparse gradient; want a dense one (sparse=False)")
    if gradient.data_ptr() != slot.gradient.data_ptr() or \
            gradient.stride() != slot.gradient.stride():
        slot.gradient.copy_(gradient.detach())
    slot.parameter.grad = slot.gradient


def _hook(slot: Slot) -> Optional[Any]:
    """Attaches each gradient as soon as autograd has made it, so that no two copies live long."""
    register = getattr(slot.parameter, "register_post_accumulate_grad_hook", None)
    return None if register is None else register(lambda parameter: attach(slot))


def check_parameter(parameter: torch.Tensor) -> None:
    if parameter.device.type != "cpu":
        raise ValueError(f"a parameter on {parameter.device}: want parameters on the CPU")
    if parameter.dtype not in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        raise ValueError(f"a parameter of {parameter.dtype}: want float32, float64, bfloat16 or "
                         "float16")
    if parameter.layout != torch.strided:
        raise ValueError("a sparse parameter; want a dense one")


def buffers_of(session: coconet.Session, groups: Sequence[Any],
               by_tensor: bool) -> Tuple[List[Buffer], List[torch.Tensor]]:
    """Buffers of all parameters that are trained, and the parameters that are not."""
    buffers, frozen = [], []
    for number, group in enumerate(groups):
        trained: Dict[Any, List[torch.Tensor]] = {}
        for parameter in group["params"]:
            check_parameter(parameter)
            if parameter.requires_grad and parameter.numel():
                key = id(parameter) if by_tensor else parameter.dtype
                trained.setdefault(key, []).append(parameter)
            else:
                frozen.append(parameter)
        buffers += [Buffer(session, number, parameters) for parameters in trained.values()]
    return buffers, frozen
