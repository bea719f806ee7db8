"""The optimizers' steps as programs of the language: one step over all tensors.

Hyperparameters are scalars, so that another value needs no other program. A program is over one
tensor, over a list of tensors of one dtype (names end with ".0", ".1"), or, where dtypes differ,
written out (names end with "_0", "_1").
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import coconet
from coconet.program import Value


class Form(NamedTuple):
    """What the text of a program depends on."""

    kind: str  # "adam", "adamw", "adam_both" (some tensors as either), "lamb" or "sgd"
    dtypes: Tuple[str, ...]  # of each tensor
    is_shared: bool  # all tensors have one set of hyperparameters
    has_momentum: bool = True  # of sgd
    is_plain: bool = True  # of sgd with momentum: no tensor has another direction than its buffer
    is_clipped: bool = False
    is_checked: bool = False  # nothing changes where a gradient is inf or nan
    #: Parameters without a gradient keep their values, and steps are counted by parameter.
    is_masked: bool = False

    @property
    def is_written_out(self) -> bool:
        return len(set(self.dtypes)) > 1

    @property
    def is_list(self) -> bool:
        return len(self.dtypes) > 1 and not self.is_written_out

    @property
    def by_tensor(self) -> bool:
        """Whether a tensor is one parameter."""
        return self.kind == "lamb"

    def states(self) -> Tuple[str, ...]:
        if self.kind == "sgd":
            return ("momentum_buffer",) if self.has_momentum else ()
        return ("exp_avg", "exp_avg_sq")

    def step_scalars(self) -> Tuple[str, ...]:
        """Scalars that depend on how many steps a parameter has made."""
        if self.kind == "sgd":
            return ("fresh",) if self.has_momentum else ()
        return ("grow", "root") if self.kind == "lamb" else ("rate", "root")

    def name(self, base: str, tensor: int) -> str:
        """The name of what belongs to a tensor."""
        return base + (f"_{tensor}" if self.is_written_out else
                       f".{tensor}" if self.is_list else "")

    def scalar_name(self, base: str, tensor: int) -> str:
        return base if self.is_shared else self.name(base, tensor)


class _Tensor:
    """The declarations of a tensor (or of all tensors of a list), and its step."""

    def __init__(self, form: Form, program: coconet.Program, suffix: str, dtype: str,
                 shared: Dict[str, Value]):
        self.form, self.program, self.suffix, self.dtype = form, program, suffix, dtype
        self.math = "f64" if dtype == "f64" else "f32"
        self.shared = shared
        shape = ["N" + suffix]
        self.gradient = program.input("g" + suffix, dtype, shape, "local")
        self.weights = program.state("p" + suffix, dtype, shape, "replicated")
        self.states = {name: program.state(name + suffix, dtype, shape) for name in form.states()}
        self.present: Optional[Value] = None
        self.by_step = {}
        if not form.is_masked:
            self.by_step = {name: self.scalar(name) for name in form.step_scalars()}
        elif form.by_tensor:
            for name in (*form.step_scalars(), "present"):
                self.by_step[name] = program.scalar(name + suffix, self.math, each=form.is_list)
        else:
            index = program.input("index" + suffix, "i32", shape, "replicated")
            for name in (*form.step_scalars(), "present"):
                table = program.input(name + suffix, self.math, ["P" + suffix], "replicated")
                self.by_step[name] = coconet.gather(table, index, 0)
        if form.is_masked:
            self.present = self.by_step["present"] > 0.5
        x = self.gradient if dtype == self.math else coconet.cast(self.math, self.gradient)
        self.mean = coconet.all_reduce("sum", x) * self.scalar("scale")

    def scalar(self, name: str) -> Value:
        """A scalar of all tensors, or of each."""
        if self.form.is_shared:
            if name not in self.shared:  # of mixed dtypes f64, which each tensor casts
                self.shared[name] = self.program.scalar(
                    name, "f64" if self.form.is_written_out else self.math)
            number = self.shared[name]
            return coconet.cast(self.math, number) if self.form.is_written_out else number
        return self.program.scalar(name + self.suffix, self.math, each=self.form.is_list)

    def old(self, x: Value) -> Value:
        return x if self.dtype == self.math else coconet.cast(self.math, x)

    def set(self, state: Value, value: Value, ok: Optional[Value]) -> Value:
        """Updates a state, where it may change; returns the new value."""
        new = value if self.dtype == self.math else coconet.cast(self.dtype, value)
        for condition in (self.present, ok):
            if condition is not None:
                new = coconet.select(condition, new, state)
        self.program.update(state, new)
        return value

    def step(self, mean: Value, ok: Optional[Value]) -> None:
        step = self._sgd if self.form.kind == "sgd" else self._adam
        self.set(self.weights, step(mean, self.old(self.weights), ok), ok)

    def _adam(self, mean: Value, p: Value, ok: Optional[Value]) -> Value:
        kind = self.form.kind
        if kind in ("adam", "adam_both"):
            mean = self._decayed(mean, p)
        m, v = self.states["exp_avg"], self.states["exp_avg_sq"]
        m1 = self.set(m, self.scalar("keep1") * self.old(m) + self.scalar("take1") * mean, ok)
        v1 = self.set(v, self.scalar("keep2") * self.old(v) +
                      self.scalar("take2") * mean * mean, ok)
        root = coconet.sqrt(v1) * self.by_step["root"] + self.scalar("eps")
        if kind == "adam":
            return p - self.by_step["rate"] * m1 / root
        if kind in ("adamw", "adam_both"):
            return p * self.scalar("keep") - self.by_step["rate"] * m1 / root
        u = self._decayed(self.by_step["grow"] * m1 / root, p)
        size, by = coconet.norm(p), coconet.norm(u)
        ratio = coconet.select((size > 0) & (by > 0), size / by,
                               coconet.const(1, self.math))
        return p - self.scalar("lr") * ratio * u

    def _sgd(self, mean: Value, p: Value, ok: Optional[Value]) -> Value:
        mean = self._decayed(mean, p)
        if not self.form.has_momentum:
            return p - self.scalar("lr") * mean
        b = self.states["momentum_buffer"]
        momentum = self.scalar("momentum")
        moved = momentum * self.old(b) + self.by_step["fresh"] * mean
        if self.form.is_plain:
            return p - self.scalar("lr") * self.set(b, moved, ok)
        has_momentum = momentum != 0
        b1 = self.set(b, coconet.select(has_momentum, moved, self.old(b)), ok)
        b1 = coconet.select(self.scalar("nesterov") != 0, mean + momentum * b1, b1)
        return p - self.scalar("lr") * coconet.select(has_momentum, b1, mean)

    def _decayed(self, x: Value, p: Value) -> Value:
        """With weight decay. Without it infinite weights are none of x's concern, as in torch."""
        decay = self.scalar("decay")
        return coconet.select(decay != 0, x + decay * p, x)


def program_of(form: Form) -> coconet.Program:
    """The program of a step; outputs "norm" (of clipped ones) and "bad" (of checked ones)."""
    program = coconet.Program("fused_" + form.kind)
    shared: Dict[str, Value] = {}
    if form.is_written_out:
        tensors = [_Tensor(form, program, f"_{i}", dtype, shared)
                   for i, dtype in enumerate(form.dtypes)]
    else:
        tensors = [_Tensor(form, program, "", form.dtypes[0], shared)]
    ok, clip = None, None
    means = [tensor.mean for tensor in tensors]
    if form.is_checked:
        bad = _over_all(form, [
            coconet.amax(coconet.select(abs(x) < coconet.const("inf", tensor.math),
                                        coconet.const(0, "f32"), coconet.const(1, "f32")))
            for x, tensor in zip(means, tensors)], "max")
        program.output("bad", bad)
        ok = bad < 0.5
    if form.is_clipped:
        norm = coconet.sqrt(_over_all(form, [
            coconet.sum(x * x) for x in map(_as_f64, means, tensors)], "sum"))
        program.output("norm", norm)
        clip = coconet.min(program.scalar("max_norm", "f64") / (norm + 1e-6), 1)
    for x, tensor in zip(means, tensors):
        if clip is not None:
            x = x * (clip if tensor.math == "f64" else coconet.cast("f32", clip))
        tensor.step(x, ok)
    return program


def _as_f64(x: Value, tensor: _Tensor) -> Value:
    return x if tensor.math == "f64" else coconet.cast("f64", x)


def _over_all(form: Form, values: List[Value], kind: str) -> Value:
    if form.is_list:
        return coconet.total(values[0], kind)
    result = values[0]
    for value in values[1:]:
        result = result + value if kind == "sum" else coconet.max(result, value)
    return result
