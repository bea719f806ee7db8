"""The options of parameter groups: what a fused step does with each, and their values as numbers.

Every option of torch's SGD, Adam and AdamW has a row in OPTIONS. An option that torch adds later
has none, and must keep the value that torch gives it by default. Other keys of a group belong to
the caller, as with torch.
"""

from __future__ import annotations

import numbers
from typing import Any, Callable, Dict, List, Mapping

import torch

Group = Dict[str, Any]


def number(name: str, value: Any) -> float:
    """What a hyperparameter is now: a number, or a tensor of one element, which others may fill."""
    if type(value) is float:
        return value
    if isinstance(value, torch.Tensor) and (value.numel() != 1 or value.is_complex() or
                                            value.device.type == "meta"):
        raise ValueError(f"{name} is a tensor of {value.dtype}{list(value.shape)} on {value.device}"
                         ": want a number, or a tensor with one element")
    if not hasattr(value, "__float__"):
        raise TypeError(f"{name}={value!r}: want a number, or a tensor with one element")
    return float(value.detach() if isinstance(value, torch.Tensor) else value)


def constant(name: str, value: Any) -> float:
    """What a number is that is read once; not what may change afterwards."""
    if not isinstance(value, numbers.Real):
        raise TypeError(f"{name} is a {type(value).__name__}: want a number, which is read once")
    return float(value)


def _betas(name: str, value: Any) -> Any:
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise ValueError(f"{name}={value!r}: want two numbers")
    both = type(value)(number(f"{name}[{i}]", beta) for i, beta in enumerate(value))
    for i, beta in enumerate(both):
        if not 0 <= beta < 1:
            raise ValueError(f"{name}[{i}]={beta}: want at least 0, and less than 1")
    # The same object, if it cannot change: that it has not is seen at once.
    is_kept = type(value) is tuple and all(new is old for new, old in zip(both, value))
    return value if is_kept else both


def _switch(name: str, value: Any) -> Any:
    return bool(value)


def _off(name: str, value: Any) -> Any:
    if value:
        raise ValueError(f"{name}={value!r}: want False, which is all that fused steps have")
    return value


def _any(name: str, value: Any) -> Any:
    return value


#: What reads an option's value, or refuses it.
OPTIONS: Dict[str, Callable[[str, Any], Any]] = {
    "lr": number, "betas": _betas, "eps": number, "weight_decay": number, "momentum": number,
    "dampening": number, "nesterov": _switch, "maximize": _switch,
    "decoupled_weight_decay": _switch,
    "amsgrad": _off, "capturable": _off, "differentiable": _off,
    "foreach": _any, "fused": _any,  # they choose among torch's implementations
}
#: The options by which steps differ.
_READ = [name for name, reader in OPTIONS.items() if reader in (number, _betas, _switch)]
_NOT_NEGATIVE = ("lr", "eps", "weight_decay", "momentum")


class _Same:
    """Equal to a list of the same objects."""

    def __init__(self, objects: List[Any]):
        self.objects = list(objects)
        # Lists compare identity first. Other tensors cannot be compared, but those of one element.
        self._ids = list(map(id, objects)) if any(x.numel() == 1 for x in objects) else None

    def __eq__(self, other: Any) -> bool:
        if self._ids is not None:
            return list(map(id, other)) == self._ids
        return bool(other == self.objects)


def read_group(group: Group, defaults: Mapping[str, Any], fixed: Mapping[str, Any], where: str,
               last: Mapping[str, Any]) -> Group:
    """The group with its options as numbers, checked; equal to the group as long as nothing in it
    has changed. `fixed` has options with one value each; `last` is what was read before, of which
    the same values are taken over."""
    read = dict(group)
    for name in [name for name, value in group.items() if last.get(name, last) is not value]:
        value = group[name]
        if name == "params":
            read[name] = last[name] if _is_equal(value, last.get(name)) else _Same(value)
        elif name in defaults or name in OPTIONS:
            try:
                read[name] = _read(name, value, defaults, fixed)
            except (TypeError, ValueError) as failure:
                raise type(failure)(f"{where}: {failure}") from None
    return read


def _is_equal(parameters: List[Any], last: Any) -> bool:
    try:
        return bool(parameters == last)
    except RuntimeError:  # other tensors
        return False


def _read(name: str, value: Any, defaults: Mapping[str, Any], fixed: Mapping[str, Any]) -> Any:
    if name in fixed:
        if value is not fixed[name] and value != fixed[name]:
            raise ValueError(f"{name}={value!r}: want {fixed[name]!r}, which is all that fused "
                             "steps have")
        return value
    reader = OPTIONS[name]
    return (reader if name in defaults or reader is _any else _off)(name, value)


def check_made(group: Group, where: str) -> None:
    """What torch requires of the defaults when an optimizer is made, of every group."""
    for name in _NOT_NEGATIVE:
        if name in group and not group[name] >= 0:
            raise ValueError(f"{where}: {name}={group[name]}: want at least 0")
    check_choice(group, where)


def check_choice(options: Mapping[str, Any], where: str) -> None:
    """Checks the choice among torch's implementations."""
    if options.get("foreach") and options.get("fused"):
        raise ValueError(f"{where}: foreach and fused are True; want one of them at most")


def values_of(read: Group) -> List[Any]:
    """What steps depend on in a group that was read; the same on all ranks, and its `repr`, too."""
    return [tuple(read[name]) if name == "betas" else read[name] for name in _READ if name in read]
