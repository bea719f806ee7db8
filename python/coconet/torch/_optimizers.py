"""SGD, Adam, AdamW and LAMB."""

from __future__ import annotations

import math
from typing import Any, Dict

import torch

from coconet.torch._optimizer import FusedOptimizer

_OURS = ("group", "session", "max_grad_norm", "loss_scale")


def _defaults_of(optimizer: Any, arguments: Dict[str, Any]) -> Dict[str, Any]:
    """The defaults of torch's optimizer for these arguments, which it checks."""
    arguments = {name: value for name, value in arguments.items()
                 if name not in ("fused", "foreach")}
    return dict(optimizer([torch.nn.Parameter(torch.zeros(1))], **arguments).defaults)


class _FusedLikeTorch(FusedOptimizer):
    """Takes the arguments of the torch optimizer `_torch`, by position or name, and ours."""

    _torch: Any = None

    def __init__(self, params: Any, *arguments: Any, **named: Any) -> None:
        ours = {name: named.pop(name) for name in _OURS if name in named}
        names = ("lr", "betas", "eps", "weight_decay", "amsgrad")
        if self._kind == "sgd":
            names = ("lr", "momentum", "dampening", "weight_decay", "nesterov")
        if len(arguments) > len(names):
            raise TypeError(f"{type(self).__name__}: want at most {len(names)} arguments by "
                            f"position, have {len(arguments)}")
        named.update(zip(names, arguments))
        if self._kind == "sgd":
            named.setdefault("lr", 1e-3)
        defaults = _defaults_of(self._torch, named)
        self._check_group(defaults)
        super().__init__(params, defaults, **ours)


class FusedSGD(_FusedLikeTorch):
    """torch.optim.SGD over all ranks; see `coconet.torch`."""

    _kind = "sgd"
    _torch = torch.optim.SGD

    def _group_scalars(self, group: Dict[str, Any]) -> Dict[str, float]:
        momentum = group["momentum"]
        return {"lr": float(group["lr"]), "decay": group["weight_decay"], "momentum": momentum,
                # The direction: the gradient without momentum, both with Nesterov's.
                "direct": float(not momentum or group["nesterov"]),
                "through": (momentum if group["nesterov"] else 1.0) if momentum else 0.0}

    def _step_scalars(self, group: Dict[str, Any], step: int) -> Dict[str, float]:
        return {"fresh": 1.0 if step == 1 else 1 - group["dampening"]}


class _FusedAdaptive(_FusedLikeTorch):
    """Optimizers with two moments."""

    def _group_scalars(self, group: Dict[str, Any]) -> Dict[str, float]:
        beta1, beta2 = map(float, group["betas"])
        lr, decay = float(group["lr"]), group["weight_decay"]
        return {"keep1": beta1, "take1": 1 - beta1, "keep2": beta2, "take2": 1 - beta2,
                "eps": group["eps"], "decay": decay, "lr": lr, "keep": 1 - lr * decay}

    def _step_scalars(self, group: Dict[str, Any], step: int) -> Dict[str, float]:
        beta1, beta2 = map(float, group["betas"])
        correction = 1 - beta1**step
        return {"rate": float(group["lr"]) / correction, "grow": 1 / correction,
                "root": 1 / math.sqrt(1 - beta2**step)}


class FusedAdam(_FusedAdaptive):
    """torch.optim.Adam over all ranks; see `coconet.torch`."""

    _kind = "adam"
    _torch = torch.optim.Adam


class FusedAdamW(_FusedAdaptive):
    """torch.optim.AdamW over all ranks; see `coconet.torch`."""

    _kind = "adamw"
    _torch = torch.optim.AdamW


class FusedLAMB(_FusedAdaptive):
    """LAMB (You et al., ICLR 2020) over all ranks; see `coconet.torch`.

    m and v as Adam's; u = (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay p;
    p -= lr (|p| / |u|) u, with 1 for the quotient where a norm is 0. Norms are of each parameter.
    """

    _kind = "lamb"

    def __init__(self, params: Any, lr: float = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-6,
                 weight_decay: float = 0.01, *, maximize: bool = False, **ours: Any) -> None:
        unknown = set(ours) - set(_OURS)
        if unknown:
            raise TypeError(f"FusedLAMB: no argument {', '.join(sorted(unknown))}")
        defaults = _defaults_of(torch.optim.AdamW, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "maximize": maximize})
        FusedOptimizer.__init__(self, params, defaults, **ours)
