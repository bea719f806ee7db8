"""SGD, Adam, AdamW and LAMB."""

from __future__ import annotations

import inspect
import math
from typing import Any, Callable, Dict, Optional, Sequence, Union

import torch

import coconet
from coconet.torch._optimizer import FusedOptimizer
from coconet.torch._options import OPTIONS, Group, check_choice


def _defaults_of(optimizer: Any, arguments: Dict[str, Any]) -> Dict[str, Any]:
    """The defaults of torch's optimizer for these arguments, which it checks."""
    arguments = {name: value for name, value in arguments.items()
                 if name not in ("fused", "foreach")}
    parameter = torch.nn.Parameter(torch.zeros(1, dtype=torch.float32, device="cpu"))
    return dict(optimizer([parameter], **arguments).defaults)


def _unknown(optimizer: Any, defaults: Dict[str, Any]) -> Dict[str, Any]:
    """Options of torch's optimizer that have no row, with torch's values."""
    parameters = inspect.signature(optimizer).parameters
    return {name: parameters[name].default if name in parameters else value
            for name, value in defaults.items() if name not in OPTIONS}


class _FusedLikeTorch(FusedOptimizer):
    """Takes the arguments of the torch optimizer `_torch`, by position or name, and ours."""

    _torch: Any = None
    _newer: Dict[str, Any] = {}  # options that older versions of torch lack, with their defaults

    def __init__(self, params: Any, *arguments: Any, group: Any = None,
                 session: Optional[coconet.Session] = None, max_grad_norm: Optional[float] = None,
                 loss_scale: Union[float, str, None] = None, policy: Optional[str] = None,
                 budget: Optional[float] = None, progress: Optional[Callable[[str], None]] = None,
                 **named: Any) -> None:
        names = ("lr", "betas", "eps", "weight_decay", "amsgrad")
        if self._kind == "sgd":
            names = ("lr", "momentum", "dampening", "weight_decay", "nesterov")
        if len(arguments) > len(names):
            raise TypeError(f"{type(self).__name__}: want at most {len(names)} arguments by "
                            f"position, have {len(arguments)}")
        named.update(zip(names, arguments))
        if self._kind == "sgd":
            named.setdefault("lr", 1e-3)
        for name, value in named.items():
            if name in OPTIONS:
                OPTIONS[name](f"{type(self).__name__}: {name}", value)
        check_choice(named, type(self).__name__)
        newer = {name: named.pop(name) for name in self._newer if name in named and
                 name not in inspect.signature(self._torch).parameters}
        defaults = _defaults_of(self._torch, named)
        for name, value in self._newer.items():
            defaults.setdefault(name, newer.get(name, value))
        super().__init__(params, defaults, group=group, session=session,
                         max_grad_norm=max_grad_norm, loss_scale=loss_scale, policy=policy,
                         budget=budget, progress=progress, fixed=_unknown(self._torch, defaults))


class FusedSGD(_FusedLikeTorch):
    """torch.optim.SGD over all ranks; see `coconet.torch`."""

    _kind = "sgd"
    _state_names = ("momentum_buffer",)
    _torch = torch.optim.SGD

    def _counts(self, group: Group) -> bool:
        return bool(group["momentum"])

    def _group_scalars(self, group: Group) -> Dict[str, float]:
        return {"lr": group["lr"], "decay": group["weight_decay"], "momentum": group["momentum"],
                "nesterov": float(group["nesterov"])}

    def _step_scalars(self, group: Group, step: int) -> Dict[str, float]:
        if not group["momentum"]:
            return {"fresh": 0.0}
        return {"fresh": 1.0 if step == 1 else 1 - group["dampening"]}


class _FusedAdaptive(_FusedLikeTorch):
    """Optimizers with two moments."""

    _state_names = ("exp_avg", "exp_avg_sq", "step")
    _newer = {"decoupled_weight_decay": False}

    def _program_kind(self, groups: Sequence[Group]) -> str:
        kinds = {"adamw" if group["decoupled_weight_decay"] else "adam" for group in groups}
        return kinds.pop() if len(kinds) == 1 else "adam_both"

    def _group_scalars(self, group: Group) -> Dict[str, float]:
        (beta1, beta2), lr, decay = group["betas"], group["lr"], group["weight_decay"]
        is_decoupled = group["decoupled_weight_decay"]
        return {"keep1": beta1, "take1": 1 - beta1, "keep2": beta2, "take2": 1 - beta2,
                "eps": group["eps"], "decay": 0.0 if is_decoupled else decay, "lr": lr,
                "keep": 1 - lr * decay if is_decoupled else 1.0}

    def _step_scalars(self, group: Group, step: int) -> Dict[str, float]:
        beta1, beta2 = group["betas"]
        correction = 1 - beta1**step
        return {"rate": group["lr"] / correction, "grow": 1 / correction,
                "root": 1 / math.sqrt(1 - beta2**step)}


class FusedAdam(_FusedAdaptive):
    """torch.optim.Adam over all ranks; see `coconet.torch`."""

    _kind = "adam"
    _torch = torch.optim.Adam


class FusedAdamW(_FusedAdaptive):
    """torch.optim.AdamW over all ranks; see `coconet.torch`."""

    _kind = "adamw"
    _torch = torch.optim.AdamW
    _newer = {"decoupled_weight_decay": True}

    def _fixed_by_class(self) -> Dict[str, Any]:
        return {"decoupled_weight_decay": True}


class FusedLAMB(_FusedAdaptive):
    """LAMB (You et al., ICLR 2020) over all ranks; see `coconet.torch`.

    m and v as Adam's; u = (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay p;
    p -= lr (|p| / |u|) u, with 1 for the quotient unless both norms are above 0, which a NaN is
    not. Norms are of each parameter.
    """

    _kind = "lamb"

    def __init__(self, params: Any, lr: float = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-6,
                 weight_decay: float = 0.01, *, maximize: bool = False, group: Any = None,
                 session: Optional[coconet.Session] = None, max_grad_norm: Optional[float] = None,
                 loss_scale: Union[float, str, None] = None, policy: Optional[str] = None,
                 budget: Optional[float] = None,
                 progress: Optional[Callable[[str], None]] = None) -> None:
        defaults = _defaults_of(torch.optim.AdamW, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "maximize": maximize})
        defaults["decoupled_weight_decay"] = True
        FusedOptimizer.__init__(
            self, params, defaults, group=group, session=session, max_grad_norm=max_grad_norm,
            loss_scale=loss_scale, policy=policy, budget=budget, progress=progress,
            fixed={**_unknown(torch.optim.AdamW, defaults), "decoupled_weight_decay": True})

    def _program_kind(self, groups: Sequence[Group]) -> str:
        return self._kind

    def _group_scalars(self, group: Group) -> Dict[str, float]:
        return {**super()._group_scalars(group), "decay": group["weight_decay"]}
