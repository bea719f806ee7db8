"""GradScaler over all ranks, as torch documents it for optimizers that scale themselves."""

from __future__ import annotations

import sys
from typing import Any, Dict, Optional

import torch


class Scaling:
    """A GradScaler's call of an optimizer's step: its scale, and where it keeps what it found."""

    def __init__(self, scaler: Any, optimizer: Any):
        state: Dict[str, Any] = scaler._per_optimizer_states[id(optimizer)]
        if getattr(state["stage"], "name", "") == "READY":
            self.scale = float(scaler._get_scale_async())
            if not state["found_inf_per_device"]:
                scaler._check_inf_per_device(optimizer)
        else:  # after unscale_
            self.scale = 1.0
        self._found: Dict[Any, torch.Tensor] = state["found_inf_per_device"]
        self._device = scaler._get_scale_async().device
        self.is_bad = any(found.item() for found in self._found.values())

    def tell(self, is_bad: bool) -> None:
        """What holds on all ranks, for the scaler's `update`."""
        if not self._found:  # this rank has no gradients
            self._found[self._device] = torch.zeros(1, device=self._device)
        for found in self._found.values():
            found.fill_(float(is_bad))


class ScaledByTorch:
    """The part of an optimizer that a GradScaler sees: it sets `grad_scale` and `found_inf` for the
    time of a step, or, of older PyTorch, passes itself to it."""

    _step_supports_amp_scaling = True
    _amp_scaler: Any = None
    _amp_found: Any = None

    @property
    def found_inf(self) -> Any:
        if self._amp_found is None:
            raise AttributeError("found_inf: only within a step that a GradScaler makes")
        return self._amp_found

    @found_inf.setter
    def found_inf(self, found: Any) -> None:
        # The scaler reads tensors of its own afterwards, and is known to its frame only.
        frame: Any = sys._getframe(1)
        while frame is not None:
            scaler = frame.f_locals.get("self")
            if hasattr(scaler, "_per_optimizer_states") and hasattr(scaler, "_get_scale_async"):
                break
            frame = frame.f_back
        else:
            raise RuntimeError(
                "found_inf was set by something that is no torch.amp.GradScaler, which could not be "
                "told what the other ranks found; use loss_scale='dynamic' instead")
        self._amp_scaler, self._amp_found = scaler, found

    @found_inf.deleter
    def found_inf(self) -> None:
        self._amp_scaler = self._amp_found = None

    def _scaling(self, scaler: Any) -> Optional[Scaling]:
        """The scaling of a step by `scaler`, or by the scaler that passed itself; None without."""
        scaler = self._amp_scaler if scaler is None else scaler
        if scaler is None or not scaler.is_enabled():
            return None
        return Scaling(scaler, self)
