"""Parameters and gradients as views of memory that peers reach."""

from __future__ import annotations

import contextlib
import weakref
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import torch

import coconet
from coconet._dlpack import dtype_name

_ALIGNMENT = 16  # elements: views begin at cache lines
_use_count = getattr(torch._C, "_storage_Use_Count", None)  # from torch 2.1 on


class Slot:
    """A parameter's place in a buffer."""

    def __init__(self, parameter: torch.Tensor, group: int, offset: int):
        self.parameter = parameter
        self.group = group
        self.offset, self.count = offset, parameter.numel()
        self.shape, self.strides = parameter.shape, dense_strides(parameter)
        self.weights: torch.Tensor = parameter  # views of the buffer, set by it
        self.gradient: torch.Tensor = parameter
        self.address = 0
        #: That of `gradient` after the last backward pass; None where none is known.
        self.version: Optional[int] = None

    def part_of(self, flat: torch.Tensor) -> torch.Tensor:
        return flat.as_strided(self.shape, self.strides, self.offset)

    def view_of(self, array: coconet.Array, dtype: torch.dtype) -> torch.Tensor:
        """This part of an array as a tensor with a storage of its own, so that to save the tensor
        is not to save the array."""
        begin = self.offset * (array.nbytes // array.size)
        part = torch.frombuffer(array._buffer(), dtype=dtype, count=self.count, offset=begin)
        return part.as_strided(self.shape, self.strides)


class Buffer:
    """Weights and gradients of parameters of one group and dtype, side by side in two arrays.

    The parameters become views of the weights, their gradients, once there are any, of the
    gradients, with the order of dimensions in memory that they had (channels_last). Between them
    are zeros, which stay zeros in a step.
    """

    def __init__(self, session: coconet.Session, group: int, parameters: Sequence[torch.Tensor]):
        self.group = group
        self.dtype = dtype_name(parameters[0].dtype)
        self.slots: List[Slot] = []
        end = 0
        for parameter in parameters:
            self.slots.append(Slot(parameter, group, end))
            end += parameter.numel()
            if parameter is not parameters[-1]:
                end += -end % _ALIGNMENT
        self.size = end
        self.weights = session.allocate(self.dtype, max(1, end))
        self.gradients = session.allocate(self.dtype, max(1, end))
        self.flat_weights, self.flat_gradients = self.weights.torch(), self.gradients.torch()
        for slot in self.slots:
            slot.weights = slot.view_of(self.weights, self.flat_weights.dtype)
            slot.gradient = slot.view_of(self.gradients, self.flat_weights.dtype)
            slot.address = slot.weights.data_ptr()
            slot.weights.copy_(slot.parameter.detach())
            slot.parameter.data = slot.weights
            if slot.parameter.grad is not None:
                attach(slot)
        self._hooks = [hook for hook in map(_hook, self.slots) if hook is not None]
        _buffers.add(self)

    def has(self, address: int) -> bool:
        begin = self.flat_weights.data_ptr()
        return begin <= address < begin + self.weights.nbytes

    def remove(self) -> None:
        for hook in self._hooks:
            hook.remove()


_buffers: "weakref.WeakSet[Buffer]" = weakref.WeakSet()


def dense_strides(tensor: torch.Tensor) -> Tuple[int, ...]:
    """Strides without gaps, with the tensor's order of dimensions in memory."""
    strides, stride = [0] * tensor.dim(), 1
    order = sorted(range(tensor.dim()), key=lambda d: (tensor.stride(d), -d))
    for d in order:
        strides[d] = stride
        stride *= tensor.shape[d]
    return tuple(strides)


def take_weights(slot: Slot) -> None:
    """Of a parameter whose `data` somebody has replaced: the new values, in place."""
    data = slot.parameter.data
    if slot.weights.data_ptr() != slot.address:
        raise RuntimeError(
            f"the memory of a parameter, {_words(data)}, was moved to other processes, by "
            "share_memory_() or a queue of torch.multiprocessing; share a clone, or make the "
            "optimizer afterwards")
    if data.shape != slot.weights.shape or data.dtype != slot.weights.dtype or \
            data.device != slot.weights.device:
        raise RuntimeError(
            f"a parameter is {_words(data)}, and was {_words(slot.weights)} when the optimizer "
            "was made; make the optimizer after the model is converted or moved")
    slot.weights.copy_(_apart(data, slot.weights))
    slot.parameter.data = slot.weights


def _words(tensor: torch.Tensor) -> str:
    return f"{tensor.dtype}{list(tensor.shape)} on {tensor.device}"


def _apart(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The source, copied if it lies in the target's memory in another form."""
    source = source.resolve_neg()
    begin = target.data_ptr()
    is_inside = begin <= source.data_ptr() < begin + target.numel() * target.element_size()
    return source.clone() if is_inside else source


def attach(slot: Slot) -> None:
    """Makes a gradient that autograd made a view of the buffer."""
    gradient = slot.parameter.grad
    if gradient is None or gradient is slot.gradient:
        return
    if gradient.layout != torch.strided:
        raise ValueError("a sparse gradient; want a dense one (sparse=False)")
    if gradient.dtype != slot.gradient.dtype:
        raise ValueError(f"a gradient of {gradient.dtype}, of a parameter of "
                         f"{slot.gradient.dtype}; want one dtype")
    check_form(slot)
    if gradient.data_ptr() != slot.gradient.data_ptr() or \
            gradient.stride() != slot.gradient.stride() or gradient.is_neg():
        slot.gradient.copy_(_apart(gradient.detach(), slot.gradient))
    slot.parameter.grad = slot.gradient


def check_form(slot: Slot) -> None:
    """Takes the values of a parameter that became another view of its own memory."""
    parameter = slot.parameter
    if parameter.stride() != slot.strides or parameter.is_neg():
        take_weights(slot)


def _hook(slot: Slot) -> Optional[Any]:
    """Attaches each gradient as soon as autograd has made it, so that no two copies live long; as
    long as the optimizer lives."""
    place = weakref.ref(slot)

    def attach_now(parameter: torch.Tensor) -> None:
        slot = place()
        if slot is not None:
            attach(slot)
            slot.version = slot.gradient._version

    register = getattr(slot.parameter, "register_post_accumulate_grad_hook", None)
    if register is None:
        return None
    with unfrozen(slot.parameter):
        return register(attach_now)


@contextlib.contextmanager
def unfrozen(parameter: torch.Tensor) -> Iterator[None]:
    """For hooks, which torch takes then only; they stay while the parameter is frozen."""
    was_trained = parameter.requires_grad
    parameter.requires_grad_(True)
    try:
        yield
    finally:
        parameter.requires_grad_(was_trained)


# What can be trained, and what is left alone.


def names_of(groups: Sequence[Any]) -> Dict[int, str]:
    """By the parameter's id, for messages."""
    names: Dict[int, str] = {}
    for number, group in enumerate(groups):
        given = group.get("param_names", [])
        for i, parameter in enumerate(group["params"]):
            name = f"parameter {i} of group {number}"
            names.setdefault(id(parameter),
                             f"{name} ({given[i]})" if i < len(given) else name)
    return names


def is_trained(parameter: torch.Tensor) -> bool:
    """Whether steps change it: torch's optimizers heed its gradient, although it is frozen."""
    return bool((parameter.requires_grad or parameter.grad is not None) and parameter.numel())


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether its elements are bytes in the host's memory."""
    return tensor.device.type == "cpu" and tensor.layout == torch.strided and \
        not tensor.is_quantized and type(tensor) in (torch.Tensor, torch.nn.Parameter)


def check_parameters(groups: Sequence[Any]) -> None:
    """ValueError for what cannot be trained; changes nothing."""
    names = names_of(groups)
    for group in groups:
        for parameter in group["params"]:
            if is_trained(parameter):
                try:
                    _check_parameter(parameter)
                except ValueError as failure:
                    raise ValueError(f"{names[id(parameter)]} is {failure}") from None
    _check_apart([p for group in groups for p in group["params"]], names)


def _check_parameter(parameter: torch.Tensor) -> None:
    if parameter.device.type != "cpu":
        raise ValueError(f"on {parameter.device}: want parameters on the CPU")
    if parameter.dtype not in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        raise ValueError(f"of {parameter.dtype}: want float32, float64, bfloat16 or float16")
    if parameter.layout != torch.strided:
        raise ValueError("sparse; want a dense one")


def _extent(tensor: torch.Tensor) -> int:
    """Bytes from the first element to the end of the last."""
    last = sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride()))
    return (last + 1) * tensor.element_size()


def _check_apart(parameters: Sequence[torch.Tensor], names: Dict[int, str]) -> None:
    """Parameters that are trained share no element with any other, and none with itself."""
    placed = sorted(((p.data_ptr(), _extent(p), p) for p in parameters
                     if is_plain(p) and p.numel()), key=lambda place: place[0])
    cluster: List[Any] = []
    end = 0
    for place in placed:
        if cluster and place[0] >= end:
            _check_cluster(cluster, names)
            cluster, end = [], 0
        cluster.append(place)
        end = max(end, place[0] + place[1])
    _check_cluster(cluster, names)


def _check_cluster(cluster: Sequence[Any], names: Dict[int, str]) -> None:
    """Of parameters whose memory may overlap: marks the bytes of each."""
    is_one = len(cluster) == 1 and cluster[0][1] == cluster[0][2].numel() * \
        cluster[0][2].element_size()
    if is_one or not any(is_trained(p) for _, _, p in cluster):
        return
    begin = cluster[0][0]
    end = max(at + extent for at, extent, _ in cluster)
    marks = torch.zeros(end - begin, dtype=torch.int32, device="cpu")
    for i in sorted(range(len(cluster)), key=lambda i: not is_trained(cluster[i][2])):
        at, _, p = cluster[i]
        size = p.element_size()
        bytes_of_p = marks.as_strided((*p.shape, size), (*(s * size for s in p.stride()), 1),
                                      at - begin)
        found = int(bytes_of_p.max())
        if found:
            raise ValueError(
                f"{names[id(p)]} shares memory with {names[id(cluster[found - 1][2])]}: an "
                "optimizer moves its parameters, which would part them; tie weights by one "
                "parameter in both places")
        if not is_trained(p):
            continue
        is_expanded = any(n > 1 and not stride for n, stride in zip(p.shape, p.stride()))
        if not is_expanded:
            bytes_of_p.fill_(i + 1)
        if is_expanded or int((marks == i + 1).sum()) != p.numel() * size:
            raise ValueError(f"{names[id(p)]} has elements that share memory (expand): want one "
                             "place for each; use clone()")


def shared_with_others(parameters: Sequence[torch.Tensor]) -> Iterator[torch.Tensor]:
    """Parameters over whose memory somebody holds another tensor, as far as this version of torch
    can tell."""
    if _use_count is None:
        return
    holders: Dict[int, List[torch.Tensor]] = {}
    for parameter in parameters:
        holders.setdefault(parameter.untyped_storage()._cdata, []).append(parameter)
    for mine in holders.values():
        storage = mine[0].untyped_storage()
        # The storage itself, as Python has it, is one of those who use it.
        if _use_count(storage._cdata) > len(mine) + 1 and \
                not any(buffer.has(mine[0].data_ptr()) for buffer in _buffers):
            yield mine[0]


def buffers_of(session: coconet.Session, groups: Sequence[Any],
               by_tensor: bool) -> Tuple[List[Buffer], List[torch.Tensor]]:
    """Buffers of all parameters that are trained, and the parameters that are not."""
    buffers, frozen = [], []
    for number, group in enumerate(groups):
        trained: Dict[Any, List[torch.Tensor]] = {}
        for parameter in group["params"]:
            if is_trained(parameter):
                key = id(parameter) if by_tensor else parameter.dtype
                trained.setdefault(key, []).append(parameter)
            else:
                frozen.append(parameter)
        buffers += [Buffer(session, number, parameters) for parameters in trained.values()]
    return buffers, frozen
