"""Parameters and gradients as views of memory that peers reach."""

from __future__ import annotations

import contextlib
import sys
import weakref
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

import torch

import coconet
from coconet._dlpack import dtype_name
from coconet._session import warn_caller

_ALIGNMENT = 16  # elements: views begin at cache lines
_use_count: Any = getattr(torch._C, "_storage_Use_Count", None)  # from torch 2.1 on
HAS_ACCUMULATE_HOOKS = hasattr(torch.Tensor, "register_post_accumulate_grad_hook")  # from 2.1 on
HAS_REFERENCE_COUNTS = _use_count is not None and hasattr(torch.Tensor, "_use_count")


class Slot:
    """A parameter's place in a buffer."""

    def __init__(self, parameter: torch.Tensor, group: int, offset: int):
        self.parameter = parameter
        self.group = group
        self.offset, self.count = offset, parameter.numel()
        self.dtype = parameter.dtype
        self.shape, self.strides = parameter.shape, dense_strides(parameter)
        #: Views of the buffer, and their memory.
        self.weights: torch.Tensor = parameter
        self.gradient: torch.Tensor = parameter
        self.address = self.gradient_address = 0
        #: The reference counts of `gradient` when nobody but this object refers to it.
        self.gradient_counts = (0, 0, 0)
        #: That of `gradient` after the last backward pass; None where none is known.
        self.version: Optional[int] = None

    def place(self, weights: coconet.Array, gradients: coconet.Array) -> None:
        """Moves the parameter into a buffer's arrays of weights and gradients."""
        self._gradients = gradients
        self.weights = self.view_of(weights)
        self.address = self.weights.data_ptr()
        self.weights.copy_(self.parameter.detach())
        self.parameter.data = self.weights
        self._weights_count = _storage_count(self.weights)
        self._renew_gradient()

    def _renew_gradient(self) -> None:
        self.gradient = self.view_of(self._gradients)
        self.gradient_address = self.gradient.data_ptr()
        self.gradient_counts = _reference_counts(self, "gradient")

    def has_aliased_weights(self) -> bool:
        """Whether another tensor shares the storage of the weights; False where this version of
        torch does not count that."""
        return _storage_count(self.weights) > self._weights_count

    def has_gradient(self) -> bool:
        """Whether the parameter's gradient is the view of the buffer."""
        mine = self.gradient
        return self.parameter.grad is mine and mine.data_ptr() == self.gradient_address and \
            mine.stride() == self.strides

    def release_gradient(self, is_held: bool = False) -> None:
        """Is called before other values are written to the buffer, while the parameter's gradient
        is another tensor. Where the caller still refers to `gradient`, that tensor gets memory of
        its own, with its values, and a new view takes its place. `is_held`: the caller does."""
        mine = self.gradient
        is_placed = mine.data_ptr() == self.gradient_address and mine.stride() == self.strides
        del mine
        if is_placed:
            held = _reference_counts(self, "gradient")
            if held[-1] > self.gradient_counts[-1]:
                warn_caller(
                    "a view of a gradient is kept, and shows the next one, since gradients lie in "
                    "memory that peers reach: keep a clone(), or the gradient itself")
            if not is_held and held[:-1] == self.gradient_counts[:-1]:
                return
        self.gradient.data = _apart(self.gradient.detach())
        self._renew_gradient()

    def part_of(self, flat: torch.Tensor) -> torch.Tensor:
        return flat.as_strided(self.shape, self.strides, self.offset)

    def view_of(self, array: coconet.Array) -> torch.Tensor:
        """This part of an array as a tensor with a storage of its own, so that to save the tensor
        is not to save the array."""
        begin = self.offset * (array.nbytes // array.size)
        part = torch.frombuffer(array._buffer(), dtype=self.dtype, count=self.count, offset=begin)
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
            slot.place(self.weights, self.gradients)
        take_gradients(slot for slot in self.slots if slot.parameter.grad is not None)
        self._hooks = [hook for hook in map(_hook, self.slots) if hook is not None]
        _buffers.add(self)

    def has(self, address: int) -> bool:
        return any(begin <= address < begin + self.weights.nbytes for begin in
                   (self.flat_weights.data_ptr(), self.flat_gradients.data_ptr()))

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


def take_weights(slots: Iterable[Slot]) -> None:
    """Copies the new values of parameters whose `data` was replaced, in place."""
    slots = list(slots)
    for slot in slots:
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
    del data
    for parameter in shared_with_others([slot.parameter for slot in slots]):
        warn_caller(
            f"the data of a parameter, {_words(parameter)}, was replaced by memory that another "
            "tensor shares; that tensor keeps the values of now, since the optimizer keeps "
            "parameters where they are: make the optimizer afterwards, or copy_() between the two")
    values = [_apart(slot.parameter.data) for slot in slots]
    for slot in slots:
        slot.parameter.data = slot.weights
    for slot, data in zip(slots, values):
        if slot.has_aliased_weights():
            warn_caller(
                f"the data of a parameter, {_words(data)}, was replaced while another tensor lies "
                "in its former memory; that tensor shows the parameter's values, since the "
                "optimizer keeps parameters where they are: exchange values by copy_()")
        slot.weights.copy_(data)


def distinct(tensor: torch.Tensor) -> torch.Tensor:
    """One of each that share memory along expanded dimensions."""
    for d in reversed(range(tensor.dim())):
        if not tensor.stride(d) and tensor.shape[d] > 1:
            tensor = tensor.select(d, 0)
    return tensor


def _words(tensor: torch.Tensor) -> str:
    return f"{tensor.dtype}{list(tensor.shape)} on {tensor.device}"


def _apart(source: torch.Tensor) -> torch.Tensor:
    """The source, copied if it lies in a buffer."""
    source = source.resolve_neg()
    is_inside = any(buffer.has(source.data_ptr()) for buffer in _buffers)
    return source.clone() if is_inside else source


def take_gradients(slots: Iterable[Slot]) -> None:
    """Copies gradients that are not views of the buffer into it. The view takes the place of each
    gradient that is replaceable."""
    slots = list(slots)
    values = list(map(_value_of_gradient, slots))
    held = {id(slot.parameter.grad) for slot in slots}
    for slot in slots:
        slot.release_gradient(id(slot.gradient) in held)
        slot.gradient.copy_(values.pop(0))
        if _is_replaceable(slot.parameter):
            slot.parameter.grad = slot.gradient


def _is_replaceable(parameter: torch.Tensor) -> bool:
    """Whether the view of the buffer may take the place of the parameter's gradient: nothing else
    refers to it, or it is expanded, so that torch could not add to it."""
    gradient = parameter.grad
    assert gradient is not None
    if gradient.requires_grad:
        return False
    if distinct(gradient).numel() < gradient.numel():
        return True
    del gradient
    return HAS_REFERENCE_COUNTS and _reference_counts(parameter, "grad") == _GRADIENT_COUNTS


def _value_of_gradient(slot: Slot) -> torch.Tensor:
    gradient = slot.parameter.grad
    assert gradient is not None
    if gradient.layout != torch.strided:
        raise ValueError("a sparse gradient; want a dense one (sparse=False)")
    if gradient.dtype != slot.parameter.dtype:
        raise ValueError(f"a gradient of {gradient.dtype}, of a parameter of "
                         f"{slot.parameter.dtype}; want one dtype")
    return _apart(gradient.detach())


def _storage_count(tensor: torch.Tensor) -> int:
    """The reference count of a tensor's storage: it grows with each view. 0: not known."""
    return _use_count(tensor.untyped_storage()._cdata) if HAS_REFERENCE_COUNTS else 0


def _reference_counts(owner: Any, name: str) -> Tuple[int, int, int]:
    """The reference counts of the tensor that is `owner`'s attribute: of the Python object, of the
    C++ object, and of the storage. They are compared with counts that this function has given of a
    tensor to which only its owner refers."""
    tensor = getattr(owner, name)
    of_object = tensor._use_count() if HAS_REFERENCE_COUNTS else 0
    return sys.getrefcount(tensor), of_object, _storage_count(tensor)


def _counts_of_a_gradient() -> Tuple[int, int, int]:
    parameter = torch.nn.Parameter(torch.zeros(1))
    parameter.grad = torch.zeros(1)
    return _reference_counts(parameter, "grad")


_GRADIENT_COUNTS = _counts_of_a_gradient()  # of a gradient to which only its parameter refers


def _hook(slot: Slot) -> Optional[Any]:
    """Attaches each gradient as soon as autograd has made it, so that no two copies live long; as
    long as the optimizer lives."""
    place = weakref.ref(slot)

    def attach_now(parameter: torch.Tensor) -> None:
        slot = place()
        if slot is None:
            return
        gradient = parameter.grad
        if gradient is None:  # another hook has taken it
            return
        if gradient is slot.gradient:
            if not slot.has_gradient():
                take_gradients([slot])
        elif gradient.shape == slot.shape and parameter.dtype == slot.dtype:
            is_usual = gradient.layout == torch.strided and gradient.dtype == parameter.dtype and \
                not gradient.requires_grad
            del gradient
            # The same as take_gradients, in less time.
            if HAS_REFERENCE_COUNTS and is_usual and \
                    _reference_counts(parameter, "grad") == _GRADIENT_COUNTS and \
                    _reference_counts(slot, "gradient") == slot.gradient_counts:
                slot.gradient.copy_(parameter.grad)
                parameter.grad = slot.gradient
            else:
                take_gradients([slot])
        slot.version = slot.gradient._version

    if not HAS_ACCUMULATE_HOOKS:
        return None
    with unfrozen(slot.parameter):
        return slot.parameter.register_post_accumulate_grad_hook(attach_now)


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
    """Checks parameters whose memory may overlap, by marking the bytes of each."""
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
            if cluster[found - 1][2] is p:
                raise ValueError(f"{names[id(p)]} is there twice; want each parameter once")
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
