"""What torch's optimizers make of gradients that are averaged over ranks, in f64, with bounds of
how far a step of another precision may be from that."""

import math

import numpy as np
import torch

STATES = {"sgd": ("momentum_buffer",), "adam": ("exp_avg", "exp_avg_sq"),
          "adamw": ("exp_avg", "exp_avg_sq"), "lamb": ("exp_avg", "exp_avg_sq")}
_ROUNDINGS = 8  # of one quantity in a step, at most
# The unit roundoff of what is kept, and the least number, of dtypes whose steps are those of f32.
_NARROW = {torch.bfloat16: (2.0**-8, 0.0), torch.float16: (2.0**-11, 2.0**-24)}


class Lamb(torch.optim.AdamW):
    """docs/language.md's `lamb`, in NumPy."""

    def step(self, closure=None):
        loss = None if closure is None else closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._step_of(p, group)
        return loss

    def _step_of(self, p, group):
        state = self.state[p]
        if not state:
            state.update(step=torch.tensor(0.0), exp_avg=torch.zeros_like(p.detach()),
                         exp_avg_sq=torch.zeros_like(p.detach()))
        state["step"] += 1
        t, (b1, b2) = float(state["step"]), group["betas"]
        g = p.grad.numpy() * (-1 if group["maximize"] else 1)
        m, v, w = (x.numpy() for x in (state["exp_avg"], state["exp_avg_sq"], p.detach()))
        m[...] = b1 * m + (1 - b1) * g
        v[...] = b2 * v + (1 - b2) * g * g
        u = m / (1 - b1**t) / (np.sqrt(v / (1 - b2**t)) + float(group["eps"]))
        u = u + float(group["weight_decay"]) * w
        of_w, of_u = np.linalg.norm(w), np.linalg.norm(u)
        ratio = of_w / of_u if of_w > 0 and of_u > 0 else 1.0
        w[...] = w - float(group["lr"]) * ratio * u


OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW,
              "lamb": Lamb}


class Reference:
    """Parameters in f64 that torch's optimizer, or Lamb, trains by the mean of the ranks'
    gradients, which have the dtypes that the ranks' parameters have."""

    def __init__(self, kind, ranks, groups, **options):
        """`groups`: lists of tensors, with the values and dtypes that the parameters begin with."""
        self.kind, self.ranks = kind, ranks
        self.ps, self.dtypes, self.errors = [], [], []
        self.gradients = [[] for _ in range(ranks)]
        self.optimizer = OPTIMIZERS[kind](
            [{"params": [self.take(x) for x in group]} for group in groups], **options)

    def take(self, tensor):
        """A parameter with those values."""
        values = tensor.detach().clone(memory_format=torch.contiguous_format)
        p = torch.nn.Parameter(values.double())
        self.ps.append(p)
        self.dtypes.append(tensor.dtype)
        self.errors.append({name: torch.zeros_like(p.detach())
                            for name in ("p", *STATES[self.kind])})
        for of_rank in self.gradients:
            of_rank.append(None)
        return p

    def add(self, rank, i, gradient):
        """As a backward pass does."""
        before = self.gradients[rank][i]
        self.gradients[rank][i] = gradient.clone() if before is None else before + gradient

    def zero(self, set_to_none):
        for of_rank in self.gradients:
            for i, gradient in enumerate(of_rank):
                if gradient is not None:
                    of_rank[i] = None if set_to_none else torch.zeros_like(gradient)

    def clip(self, function, limit):
        """One of torch.nn.utils, on each rank's gradients."""
        for of_rank in self.gradients:
            ps = [torch.nn.Parameter(torch.zeros_like(x)) for x in of_rank if x is not None]
            for p, x in zip(ps, (x for x in of_rank if x is not None)):
                p.grad = x
            function(ps, limit)

    def step(self, scale=1.0, max_norm=None, is_checked=False, scaler=None, is_scaled=False,
             closure=None):
        """The norm of the mean gradients, which have that loss scale, or a GradScaler's where
        `is_scaled`; None where no step is made."""
        of_norm = 0.0  # its relative error: that of the least precise gradients
        sizes = self._average(scale * (scaler.get_scale() if is_scaled else 1))
        found = [p for p in self.ps if p.grad is not None]
        is_bad = any(not bool(p.grad.isfinite().all()) for p in found)
        arguments = () if closure is None else (closure,)
        if not found:
            self.optimizer.step(*arguments)
            return None
        if is_bad and is_checked and scaler is None:
            return None
        if scaler is not None:
            for p in found:
                p.grad.mul_(scaler.get_scale())
            scaler.unscale_(self.optimizer)
        every = torch.cat([p.grad.reshape(-1) for p in found])
        # Torch's sum of many equal squares has an error of its own, beyond the bounds of a step.
        norm = float(every.norm()) if is_bad else math.hypot(*every.tolist())
        if max_norm is not None:
            factor = min(max_norm / (norm + 1e-6), 1.0)
            of_norm = max(self._unit(i) for i, p in enumerate(self.ps) if p.grad is not None)
            for i, p in enumerate(self.ps):
                if p.grad is not None:
                    p.grad.mul_(factor)
                    sizes[i] *= factor
        before = [self._snapshot(p) for p in self.ps]
        if scaler is not None:
            scaler.step(self.optimizer, *arguments)
        else:
            self.optimizer.step(*arguments)
        if is_bad:
            return None
        for group in self.optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    i = self.number(p)
                    self._widen(i, group, before[i], sizes[i], of_norm)
                    self.round(i)
        return norm

    def _average(self, scale):
        """Sets the mean gradients; the means of their magnitudes."""
        sizes = []
        for i, p in enumerate(self.ps):
            parts = [of_rank[i].double() / (self.ranks * scale) for of_rank in self.gradients
                     if of_rank[i] is not None]
            p.grad = sum(parts) if parts else None
            sizes.append(sum(part.abs() for part in parts))
        return sizes

    def number(self, p):
        return next(i for i, each in enumerate(self.ps) if each is p)

    def states(self, p):
        state = self.optimizer.state.get(p, {})
        zero = torch.zeros_like(p.detach())
        return [zero if state.get(name) is None else state[name] for name in STATES[self.kind]]

    def _snapshot(self, p):
        return [x.clone() for x in (p.detach(), *self.states(p))]

    def round(self, i):
        """To what the ranks can keep."""
        if self.dtypes[i] in _NARROW:
            for x in (self.ps[i].data, *self.states(self.ps[i])):
                x.copy_(x.to(self.dtypes[i]).double())

    def moved(self, i):
        """A parameter or its states were changed, or went through a tensor of the ranks' dtype."""
        self.round(i)
        for name, x in zip(self.errors[i], (self.ps[i].detach(), *self.states(self.ps[i]))):
            self.errors[i][name] += self._kept(i, x)

    def _unit(self, i):
        return 2.0**-53 if self.dtypes[i] == torch.float64 else 2.0**-24

    def _kept(self, i, x):
        """An error by rounding to the ranks' dtype, which may go the other way."""
        unit, least = _NARROW.get(self.dtypes[i], (self._unit(i), 0.0))
        return 2 * unit * x.abs() + least

    def _widen(self, i, group, before, size, of_norm):
        """Adds a step's errors of rounding to the bounds, to first order: each operation has an
        error of its result, and hands on those of its operands."""
        p, errors, unit = self.ps[i].detach(), self.errors[i], _ROUNDINGS * self._unit(i)
        lr, decay, w = float(group["lr"]), float(group["weight_decay"]), before[0].abs()
        is_coupled = self.kind == "sgd" or self.kind == "adam" and \
            not group.get("decoupled_weight_decay")
        x = size + decay * w if is_coupled else size
        error = unit * x + _ROUNDINGS * of_norm * size  # of the gradient
        if is_coupled:
            error = error + decay * errors["p"]
        after = self.states(self.ps[i])
        widen = self._widen_sgd if self.kind == "sgd" else self._widen_adam
        u, error = widen(i, group, x, error, before, after, unit)
        kept = 1.0
        if self.kind == "lamb":
            error = error + decay * errors["p"] + unit * (u.abs() + decay * w)
            u = u + decay * before[0]
            u, error = _times_ratio(before[0], errors["p"], u, error, unit)
        elif not is_coupled:
            kept += lr * decay
        errors["p"] = kept * errors["p"] + lr * error + unit * (w + lr * u.abs())
        if self.dtypes[i] in _NARROW:
            errors["p"] += self._kept(i, p)

    def _widen_sgd(self, i, group, x, error, before, after, unit):
        """A bound of the direction, and that of its error."""
        momentum, old = float(group["momentum"]), before[1].abs()
        if not momentum:
            return x, error
        errors = self.errors[i]
        errors["momentum_buffer"] = momentum * errors["momentum_buffer"] + error + \
            unit * (momentum * old + x)
        size, of_it = momentum * old + x, errors["momentum_buffer"].clone()
        if self.dtypes[i] in _NARROW:
            errors["momentum_buffer"] += self._kept(i, after[0])
        return (x + momentum * size, error + momentum * of_it + unit * x) if group["nesterov"] \
            else (size, of_it)

    def _widen_adam(self, i, group, x, error, before, after, unit):
        """The direction, and a bound of its error."""
        (b1, b2), errors = map(float, group["betas"]), self.errors[i]
        t = float(self.optimizer.state[self.ps[i]]["step"])
        m, v = errors["exp_avg"], errors["exp_avg_sq"]
        m = b1 * m + (1 - b1) * error + unit * (b1 * before[1].abs() + (1 - b1) * x)
        v = b2 * v + (1 - b2) * (2 * x + error) * error + unit * after[1]
        root = after[1].sqrt()
        of_root = torch.minimum(v / root.clamp(min=1e-300), v.sqrt())
        correction = (1 - b2**t)**0.5
        below = root / correction + float(group["eps"])
        of_below = of_root / correction + unit * below
        least = (below - of_below).clamp(min=float(group["eps"]))
        u = after[0] / (1 - b1**t) / below
        of_u = m / (1 - b1**t) / least + u.abs() * (of_below / least + unit)
        errors["exp_avg"], errors["exp_avg_sq"] = m, v
        if self.dtypes[i] in _NARROW:
            errors["exp_avg"] = m + self._kept(i, after[0])
            errors["exp_avg_sq"] = v + self._kept(i, after[1])
        return u, of_u


def _times_ratio(p, of_p, u, of_u, unit):
    """LAMB's direction |p| / |u| u, and its error; norms are sums of rounded squares."""
    sizes = float(p.norm()), float(u.norm())
    if not all(size > 0 for size in sizes):
        return u, of_u
    ratio = sizes[0] / sizes[1]
    of_ratio = ratio * (float(of_p.norm()) / sizes[0] + float(of_u.norm()) / sizes[1] +
                        unit * p.numel())
    return ratio * u, ratio * of_u + of_ratio * u.abs()
