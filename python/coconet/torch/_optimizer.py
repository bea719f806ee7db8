"""What the fused optimizers share: buffers, the program, its scalars and states."""

from __future__ import annotations

import contextlib
import copy
import inspect
import math
import types
from typing import Any, Callable, Dict, Iterator, List, NoReturn, Optional, Sequence, Tuple, Union

import torch
from torch.optim import optimizer as torch_optimizer

import coconet
from coconet._session import warn_caller
from coconet.torch._agreement import Agreement, Batches, digest
from coconet.torch._amp import ScaledByTorch, Scaling
from coconet.torch._buffers import (Buffer, buffers_of, check_parameters, dense_strides, is_plain,
                                    is_trained, names_of, shared_with_others, take_gradients,
                                    take_weights)
from coconet.torch._options import Group, check_made, constant, number, read_group, values_of
from coconet.torch._programs import Form, program_of
from coconet.torch._ranks import (broadcast, check_equal, check_near, checksum, meeting_of,
                                  number_in)

_SET_TO_NONE = inspect.signature(torch.optim.Optimizer.zero_grad).parameters["set_to_none"].default
_HALVE, _DOUBLE, _GOOD_STEPS = 0.5, 2.0, 2000  # of a dynamic loss scale
_LEAST_SCALE, _MOST_SCALE = 2.0**-16, 2.0**100

# From torch 2.0 on; the second from 2.1 on.
_NO_HOOKS: Dict[Any, Any] = {}
_global_pre_hooks = getattr(torch_optimizer, "_global_optimizer_pre_hooks", _NO_HOOKS)
_global_post_hooks = getattr(torch_optimizer, "_global_optimizer_post_hooks", _NO_HOOKS)
_profiler: Any = torch.autograd.profiler
if not hasattr(_profiler, "_is_profiler_enabled"):
    _profiler = types.SimpleNamespace(_is_profiler_enabled=False)
_increment_version = getattr(torch._C, "_increment_version", None)


class _Running:
    """A program that is bound to the buffers."""

    def __init__(self, form: Form, program: coconet.TunedProgram, buffers: List[Buffer]):
        self.form = form
        arrays: Dict[str, Any] = {}
        self.tables: List[Dict[str, torch.Tensor]] = []  # of a masked program, per buffer
        for i, buffer in enumerate(buffers):
            arrays[form.name("g", i)] = buffer.gradients
            arrays[form.name("p", i)] = buffer.weights
            if form.is_masked and not form.by_tensor:
                tables = self._tables(program.session, form, buffer)
                self.tables.append({name: table.torch() for name, table in tables.items()})
                arrays.update((form.name(name, i), table) for name, table in tables.items())
        self.norm = torch.zeros(1, dtype=torch.float64, device="cpu")
        self.bad = torch.zeros(1, dtype=torch.float32, device="cpu")
        for name, is_there in (("norm", form.is_clipped), ("bad", form.is_checked)):
            if is_there:
                arrays[name] = getattr(self, name)
        self.binding = program.bind(arrays)
        self.counts_steps = bool(form.step_scalars())
        self.setters: Dict[str, Callable[[float], None]] = {
            name: self.binding.scalar(name).set for name, tensor in program.tensors.items()
            if tensor.role == "input" and not tensor.shape}
        # What scalars were set to: by name, and without the tensor's suffix by tensor.
        self.values: Dict[str, float] = {}
        self.values_of: List[Dict[str, float]] = [{} for _ in buffers]

    @staticmethod
    def _tables(session: coconet.Session, form: Form, buffer: Buffer) -> Dict[str, coconet.Array]:
        tables = {"index": session.allocate("i32", max(1, buffer.size))}
        index = tables["index"].torch()
        for number, slot in enumerate(buffer.slots):
            index[slot.offset:slot.offset + slot.count] = number
        for name in (*form.step_scalars(), "present"):
            tables[name] = session.allocate("f64" if buffer.dtype == "f64" else "f32",
                                            len(buffer.slots))
        return tables

    def set(self, name: str, value: float) -> None:
        set_to = self.setters.get(name)
        if set_to is not None and self.values.get(name) != value:
            set_to(value)
            self.values[name] = value

    def set_of(self, tensor: int, values: Dict[str, float]) -> None:
        """Sets a tensor's scalars, or those of all; the program may lack some of them."""
        last = self.values_of[tensor]
        for name, value in values.items():
            if last.get(name) != value:
                set_to = self.setters.get(self.form.scalar_name(name, tensor))
                if set_to is not None:
                    set_to(value)
                last[name] = value


class FusedOptimizer(ScaledByTorch, torch.optim.Optimizer):
    """The base of the fused optimizers; see `coconet.torch`."""

    _kind = ""
    _state_names: Tuple[str, ...] = ()
    _optimizer_step_pre_hooks = _optimizer_step_post_hooks = _NO_HOOKS  # of versions without them

    def __init__(self, params: Any, defaults: Dict[str, Any], *, group: Any = None,
                 session: Optional[coconet.Session] = None, max_grad_norm: Optional[float] = None,
                 loss_scale: Union[float, str, None] = None, policy: Optional[str] = None,
                 budget: Optional[float] = None, progress: Optional[Callable[[str], None]] = None,
                 fixed: Optional[Dict[str, Any]] = None) -> None:
        self._ready = False
        self._fixed = fixed or {}
        super().__init__(params, defaults)
        self.max_grad_norm = max_grad_norm
        self._is_dynamic = loss_scale == "dynamic"
        self._is_checked = loss_scale is not None
        self._loss_scale = 65536.0
        if not self._is_dynamic:
            self._loss_scale = 1.0 if loss_scale is None else _scale_of(loss_scale)
        self._good_steps = 0
        self._grad_norm = float("nan")
        self._group, self._session = meeting_of(group, session, (policy, budget, progress))
        if isinstance(params, (set, frozenset)) and self._session.ranks > 1:
            raise TypeError(f"{type(self).__name__}: parameters in a set have another order on each "
                            "rank; want a list, or model.parameters()")
        self._begin()
        self._read_groups()

    def _begin(self) -> None:
        """Without buffers, which the first call of _read_groups makes."""
        self._ranks = self._session.ranks
        self._is_watching = self._ranks > 1
        self._number = 0  # among the session's optimizers; 0: all ranks have not met for it yet
        self._steps: Dict[torch.Tensor, int] = {}  # that each parameter has made
        self._even: Optional[List[int]] = []  # of all parameters of a group, by group; else None
        self._counted: List[int] = []  # groups whose steps are counted
        self._read: List[Group] = []  # the groups, as they were read last
        self._base: Any = None  # of _skipped
        self._settings = 0  # a digest of the options that steps depend on
        self._batches = Batches()
        self._places: List[Any] = []  # each slot, its parameter, and where that lies
        self._amp_scale = 1.0  # of the last step's gradients, by a GradScaler
        self._is_scaled = False  # a GradScaler made the last step
        self._is_set = False  # the running program has the values of all these
        self._compiled: Dict[Form, coconet.TunedProgram] = {}
        self._running: Optional[_Running] = None
        self._is_shown = True  # self._state has all states; else the running program has
        self._shown: Any = []
        self._to_push = True  # self._state is newer than the running program's states
        self._buffers: List[Buffer] = []
        self._slots: List[Any] = []
        self._weights: List[torch.Tensor] = []
        self._dtypes: Tuple[str, ...] = ()  # of the buffers
        self._frozen: List[torch.Tensor] = []
        self._agreement: Optional[Agreement] = None
        self._is_built = False
        self._ready = True

    @property
    def max_grad_norm(self) -> Optional[float]:
        return self._max_grad_norm

    @max_grad_norm.setter
    def max_grad_norm(self, value: Optional[float]) -> None:
        if value is not None:
            value = constant("max_grad_norm", value)
            if not value > 0:
                raise ValueError(f"max_grad_norm={value}: want a positive number or None")
        self._max_grad_norm, self._is_set = value, False

    # Copies.

    def __deepcopy__(self, memo: Dict[int, Any]) -> "FusedOptimizer":
        """An optimizer of the copied parameters, with the same session. Collective. The parameters
        lie in memory of their own until its first step, which makes buffers."""
        self._gather("copy.deepcopy()")
        copied = type(self).__new__(type(self))
        memo[id(self)] = copied
        copied._ready = False
        copied._fixed = self._fixed
        state = {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}
        torch.optim.Optimizer.__setstate__(copied, {
            name: copy.deepcopy(value, memo) for name, value in state.items()})
        copied._state = copied.__dict__.pop("state")
        for name in ("_max_grad_norm", "_is_dynamic", "_is_checked", "_loss_scale", "_good_steps",
                     "_grad_norm", "_group", "_session"):
            setattr(copied, name, getattr(self, name))
        copied._begin()
        copied._batches.number = self._batches.number
        copied._watch([p for group in copied.param_groups for p in group["params"]
                       if is_trained(p)])
        copied._take_states()
        return copied

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(f"{type(self).__name__} belongs to this process's session and cannot be "
                        "pickled: save state_dict(), or use copy.deepcopy for a copy here")

    # Groups.

    def _read_group(self, position: int, group: Group, last: Optional[Group] = None) -> Group:
        return read_group(group, self.defaults, self._fixed,
                          f"{type(self).__name__}: group {position}", last or {})

    def _read_groups(self) -> None:
        """Takes the options and parameters that the groups have now."""
        read = [self._read_group(i, group, self._read[i] if i < len(self._read) else None)
                for i, group in enumerate(self.param_groups)]
        is_same = len(read) == len(self._read) and all(
            [now["params"] is before["params"] for now, before in zip(read, self._read)])
        if not is_same or not self._is_built:
            self._build()
        self._read, self._is_set = read, False
        self._counted = [i for i, group in enumerate(read) if self._counts(group)]
        self._base = None

    def _counts(self, group: Group) -> bool:
        """Whether a step of the group is one that states count."""
        return True

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        """Collective once the optimizer is made."""
        position = len(self.param_groups)
        if isinstance(param_group, dict):
            given: Group = {**self.defaults, **param_group, "params": []}
            check_made(self._read_group(position, given),
                       f"{type(self).__name__}: group {position}")
        super().add_param_group(param_group)
        if self._ready:
            try:
                check_parameters(self.param_groups)
            except ValueError:
                self.param_groups.pop()
                raise
            self._meet("add_param_group()")
            self._read_groups()

    # Buffers.

    def _build(self) -> None:
        """Moves all parameters into buffers, with rank 0's values."""
        if self._ranks > 1:
            self._session.meet(f"a {type(self).__name__} takes its parameters{self._which()}")
            self._number = self._number or number_in(self._session, "optimizer")
        self._check_parameters()
        self._dismantle()
        trained = [p for group in self.param_groups for p in group["params"] if is_trained(p)]
        names = names_of(self.param_groups)
        others = [names[id(p)] for p in shared_with_others(trained)]
        if others:
            warn_caller(
                f"{type(self).__name__}: other tensors lie in the memory of {', '.join(others[:3])}"
                f"{' and others' if len(others) > 3 else ''}; they keep the values of now, since "
                "the optimizer moves its parameters")
        self._buffers, self._frozen = buffers_of(self._session, self.param_groups,
                                                 self._kind == "lamb")
        self._slots = [slot for buffer in self._buffers for slot in buffer.slots]
        self._weights = [slot.parameter for slot in self._slots]
        self._places = [(slot, slot.parameter, slot.address, slot.strides) for slot in self._slots]
        self._dtypes = tuple(buffer.dtype for buffer in self._buffers)
        if self._ranks > 1:
            for tensor in [buffer.flat_weights for buffer in self._buffers] + \
                    [p.data for p in self._frozen if is_plain(p)]:
                broadcast(self._group, self._session, tensor)
        for slot in self._slots:
            self._steps.setdefault(slot.parameter, 0)
        self._is_built = True
        self._read_steps()
        self._compiled = {}
        self._watch(self._weights)
        self._agreement = Agreement(self._session, type(self).__name__, len(self._slots)) \
            if self._ranks > 1 else None

    def _watch(self, parameters: List[torch.Tensor]) -> None:
        if self._ranks > 1:
            self._batches.watch(parameters)

    def _check_parameters(self) -> None:
        """ValueError, on all ranks, for parameters that cannot be trained, or differ."""
        failure = None
        try:
            check_parameters(self.param_groups)
        except ValueError as mistake:
            failure = mistake
        try:
            if self._ranks > 1:
                check_equal(self._group, self._session, "the optimizer's parameters", [
                    str(failure), *([_form_of(p) for p in group["params"]] +
                                    list(group.get("param_names", []))
                                    for group in self.param_groups)])
        finally:
            if failure is not None:
                raise failure

    def _dismantle(self) -> None:
        """Takes the states out of the program, and lets go of the buffers."""
        if not self._is_built:
            return
        self._write_steps()
        self._pull()
        self._stop()
        for buffer in self._buffers:
            buffer.remove()
        if self._agreement is not None:
            self._agreement.close()
        self._to_push = True

    # Programs.

    def _form(self, is_masked: bool) -> Form:
        numbers = {buffer.group for buffer in self._buffers}
        groups = [self._read[number_of_group] for number_of_group in numbers]
        momenta = [group.get("momentum", 0) for group in groups]
        return Form(
            kind=self._program_kind(groups), dtypes=self._dtypes, is_shared=len(numbers) == 1,
            has_momentum=any(momenta) or self._kind == "sgd" and any(
                self._steps[slot.parameter] for slot in self._slots),
            is_plain=all(momenta) and not any(group.get("nesterov") for group in groups),
            is_clipped=self.max_grad_norm is not None,
            is_checked=self._is_checked or self._is_scaled, is_masked=is_masked)

    def _program_kind(self, groups: Sequence[Group]) -> str:
        return self._kind

    def _start(self, is_masked: bool) -> _Running:
        """The program of that form; states move from the one that ran before."""
        form = self._form(is_masked)
        if self._running is not None and self._running.form != form:
            self._pull()
            self._stop()
            self._to_push = True
        if self._running is None:
            if form not in self._compiled:
                sizes = [max(1, buffer.size) for buffer in self._buffers]
                slots = [len(buffer.slots) for buffer in self._buffers]
                symbols = {"N": sizes}
                if form.is_masked and not form.by_tensor:
                    symbols["P"] = slots
                if form.is_list:
                    bound: Dict[str, Any] = dict(symbols)
                else:
                    bound = {form.name(symbol, i): count for symbol, counts in symbols.items()
                             for i, count in enumerate(counts)}
                self._compiled[form] = self._session.compile(program_of(form), bound)
            self._running = _Running(form, self._compiled[form], self._buffers)
        if self._to_push:
            self._push(self._running)
        return self._running

    def _stop(self) -> None:
        if self._running is not None:
            self._running.binding.close()
            self._running = None

    def explain(self) -> str:
        """`coconet.explain` of the program that runs; "" before the first step."""
        return "" if self._running is None else self._running.binding.program.explain()

    # Steps.

    def step(self, closure: Optional[Callable[[], Any]] = None, *,  # type: ignore[override]
             step: Optional[int] = None, **scaler: Any) -> Any:
        """Averages the gradients of all ranks and updates the weights, in one program. Collective.

        The first step tunes the program, unless the tuning cache has it. Parameters whose gradient
        is None on all ranks are left alone, as torch does; where some ranks have one, the others
        count as zeros.

        Ranks that are not at the same batch are an error on all of them (coconet.Aborted). Batches
        are counted by steps, and by gradients that are given up for those of another backward pass
        or for `zero_grad`; or they are `step`, an integer that is the same on all ranks and another
        one for each batch, whether or not a step was made.
        """
        try:
            if _global_pre_hooks or _global_post_hooks or self._optimizer_step_pre_hooks or \
                    self._optimizer_step_post_hooks or _profiler._is_profiler_enabled:
                given = () if closure is None else (closure,)
                if step is not None:
                    scaler["step"] = step
                return _observed_step(self, *given, **scaler)
            return self._step(closure, step, scaler)
        finally:
            if self._amp_found is not None:
                del self.found_inf  # which a scaler leaves after a step that fails

    step.hooked = True  # type: ignore[attr-defined]  # torch's wrapper takes longer than a step

    def _step(self, closure: Optional[Callable[[], Any]], step: Optional[int],
              scaler: Dict[str, Any]) -> Any:
        if scaler and set(scaler) != {"grad_scaler"}:
            raise TypeError(f"step: no argument {', '.join(sorted(scaler))}")
        if self._ranks > 1:
            self._batches.begin(step)
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._take_changes()
        if scaler or self._amp_scaler is not None:
            self._step_scaled(self._scaling(scaler.get("grad_scaler")))
        else:
            self._step_at(1.0, False)
        return loss

    def _take_changes(self) -> None:
        try:
            is_same = self.param_groups == self._read
        except (RuntimeError, TypeError, ValueError):  # from a tensor or array with several elements
            is_same = False
        if not is_same:
            self._read_groups()
        for parameter in self._frozen:
            if is_trained(parameter):
                self._build()
                return

    def _step_scaled(self, scaling: Optional[Scaling]) -> None:
        """A step of gradients that a GradScaler has scaled."""
        if scaling is None:
            self._step_at(1.0, False)
            return
        if self._is_dynamic or self._loss_scale != 1:
            raise ValueError("step: the gradients have a GradScaler's scale and loss_scale; want "
                             "one of them")
        scaling.tell(self._step_at(scaling.scale, scaling.is_bad, is_scaled=True))

    def _step_at(self, scale: float, is_bad: bool, is_scaled: bool = False) -> bool:
        """Makes a step that all ranks are at; whether it was not made, because a gradient is bad.
        The gradients have that scale, of a GradScaler where `is_scaled`."""
        if self._is_shown:
            self._take_shown()
        agreement = self._agreement
        is_fresh = None if agreement is None else self._batches.take(self._slots)
        missing = self._collect()
        if scale != self._amp_scale or is_scaled != self._is_scaled:
            self._amp_scale, self._is_scaled, self._is_set = scale, is_scaled, False
        if agreement is not None:
            self._batches.keep(self._slots)
            if not self._is_set:
                self._settings = digest([*map(values_of, self._read), self._loss_scale,
                                         self._max_grad_norm, is_scaled])
            batch = self._batches.number
            missing, is_bad = agreement.agree(missing, batch, (
                self._skipped(batch), scale, self._settings, is_bad, is_fresh))
        if not is_bad and self._slots and len(missing) < len(self._slots):
            return self._run(missing)
        return is_bad

    def _skipped(self, batch: int) -> int:
        """Tells how many steps the parameters have made; the same while each batch has one."""
        if self._even is None:
            return digest([self._steps[slot.parameter] for slot in self._slots])
        if self._base is None:
            groups = sorted({slot.group for slot in self._slots})
            counted = [i for i in groups if i in self._counted]
            first = counted[0] if counted else None
            before = 0 if first is None else self._even[first]
            self._base = first, digest([self._even[i] - (before if i in counted else 0)
                                        for i in groups])
        first, others = self._base
        return others if first is None else (batch - self._even[first] + others) & 0xFFFFFF

    def _collect(self) -> List[int]:
        """Brings all gradients into the buffers; the numbers of parameters that have none."""
        missing, replaced, given = [], [], []
        for number_of_slot, (slot, parameter, address, strides) in enumerate(self._places):
            if parameter.data_ptr() != address or parameter.stride() != strides or \
                    parameter.is_neg():
                replaced.append(slot)
            gradient = parameter.grad
            if gradient is None:
                missing.append(number_of_slot)
            elif gradient is not slot.gradient or gradient.stride() != strides or \
                    gradient.data_ptr() != slot.gradient_address:
                given.append(slot)
        gradient = None  # none is held here
        if replaced:
            take_weights(replaced)
        if given:
            take_gradients(given)
        for number_of_slot in missing:
            self._slots[number_of_slot].release_gradient()
            self._slots[number_of_slot].gradient.zero_()
        if self._is_watching and self._slots:
            slot = self._slots[0]
            if slot.version is not None and slot.gradient._version != slot.version:
                self._warn_of_changes()
        return missing

    def _warn_of_changes(self) -> None:
        self._is_watching = False
        warn_caller(
            f"{type(self).__name__}: gradients were changed between backward() and step(), when "
            "they are this rank's and not averaged yet. Scaling and masking them does no harm; "
            "clip_grad_norm_ clips by another norm on each rank: use max_grad_norm instead. Nor "
            "is DistributedDataParallel needed around the model, which averages them too.")

    def _run(self, missing: List[int]) -> bool:
        """Runs the program; whether a gradient is bad, so that nothing has changed."""
        is_even = not missing and self._even is not None
        running = self._running
        is_same = self._is_set and running is not None and not self._to_push and \
            is_even != running.form.is_masked
        if not is_same or running is None:
            self._write_steps()
            running = self._start(not is_even)
        if self._is_shown:
            self._hide()
        if is_even:
            if running.counts_steps or not is_same:
                self._set_scalars(running, is_same)
        else:
            self._write_steps()
            self._set_tables(running, {self._slots[i].parameter for i in missing})
        self._is_set = True
        running.binding.run()
        if running.form.is_clipped:
            self._grad_norm = running.norm.item()
        if running.form.is_checked and not self._take_check(running.bad.item() > 0.5):
            return True
        self._bump_versions()
        if is_even and self._even is not None:
            for group in self._counted:
                self._even[group] += 1
            return False
        absent = set(missing)
        for number_of_slot, slot in enumerate(self._slots):
            if number_of_slot not in absent and slot.group in self._counted:
                self._steps[slot.parameter] += 1
        self._read_steps()
        return False

    def _bump_versions(self) -> None:
        """So that autograd refuses a graph that has saved the weights before the step."""
        if _increment_version is not None:
            _increment_version(self._weights)
            return
        with torch.no_grad():
            torch._foreach_zero_([weights.detach()[:0] if weights.dim() else
                                  weights.detach().view(1)[:0] for weights in self._weights])

    def _read_steps(self) -> None:
        """Finds whether all parameters of a group have made as many steps: then one number counts
        them."""
        counts: List[Any] = [set() for _ in self.param_groups]
        for slot in self._slots:
            counts[slot.group].add(self._steps[slot.parameter])
        self._even = self._base = None
        if all(len(of_group) <= 1 for of_group in counts):
            self._even = [of_group.pop() if of_group else 0 for of_group in counts]

    def _write_steps(self) -> None:
        """Brings the count of each parameter up to date."""
        if self._even is not None:
            for slot in self._slots:
                self._steps[slot.parameter] = self._even[slot.group]

    def _take_check(self, is_bad: bool) -> bool:
        """Adjusts a dynamic loss scale; returns whether the step was made."""
        if self._is_dynamic:
            self._good_steps = 0 if is_bad else self._good_steps + 1
            if is_bad:
                self._change_scale(self._loss_scale * _HALVE)
            elif self._good_steps == _GOOD_STEPS:
                self._change_scale(min(self._loss_scale * _DOUBLE, _MOST_SCALE))
                self._good_steps = 0
        return not is_bad

    def _change_scale(self, scale: float) -> None:
        if scale < _LEAST_SCALE:
            raise FloatingPointError(
                f"{type(self).__name__}: gradients are inf or nan at a loss scale of "
                f"{self._loss_scale}, the least: it is not the scale that makes them so; the "
                "weights are those of the last good step")
        self._loss_scale, self._is_set = scale, False

    def _set_scalars(self, running: _Running, is_same: bool) -> None:
        """Sets the scalars of an even step; if `is_same`, only those that depend on its number."""
        for i in range(1 if running.form.is_shared else len(self._buffers)):
            number_of_group = self._buffers[i].group
            group = self._read[number_of_group]
            if not is_same:
                self._set_group(running, i, group)
            step = self._even[number_of_group] + 1  # type: ignore[index]
            running.set_of(i, self._step_scalars(group, step))

    def _set_group(self, running: _Running, tensor: int, group: Dict[str, Any]) -> None:
        form = running.form
        sign = -1 if group.get("maximize") else 1
        running.set_of(tensor, {
            "scale": sign / (self._ranks * self._loss_scale * self._amp_scale),
            **self._group_scalars(group)})
        if form.is_clipped:
            running.set("max_norm", self.max_grad_norm or 0)

    def _set_tables(self, running: _Running, absent: Any) -> None:
        form = running.form
        for i, buffer in enumerate(self._buffers):
            group = self._read[buffer.group]
            self._set_group(running, i, group)
            for number_of_slot, slot in enumerate(buffer.slots):
                values = self._step_scalars(group, self._steps[slot.parameter] + 1)
                values["present"] = float(slot.parameter not in absent)
                for name, value in values.items():
                    if form.by_tensor:
                        running.set(form.name(name, i), value)
                    elif name in running.tables[i]:
                        running.tables[i][name][number_of_slot] = value

    def _group_scalars(self, group: Dict[str, Any]) -> Dict[str, float]:
        """Values of the scalars that do not depend on a parameter's step."""
        raise NotImplementedError

    def _step_scalars(self, group: Dict[str, Any], step: int) -> Dict[str, float]:
        """Values of those that do."""
        raise NotImplementedError

    # Gradients.

    def zero_grad(self, set_to_none: bool = _SET_TO_NONE) -> None:  # type: ignore[override]
        """As torch's: gradients become None, or zeros in place."""
        self._batches.drop()
        if set_to_none:
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.grad = None
            return
        is_done = set()
        if all(slot.has_gradient() for slot in self._slots):
            for buffer in self._buffers:
                buffer.flat_gradients.zero_()
            is_done = set(map(id, self._weights))
        for group in self.param_groups:
            for parameter in group["params"]:
                gradient = parameter.grad
                if gradient is not None and id(parameter) not in is_done:
                    if gradient.grad_fn is not None:
                        gradient.detach_()
                    gradient.requires_grad_(False).data.zero_()  # of no other version

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """For code that is written for DDP: ranks meet in `step` only, so gradients of several
        backward passes accumulate with or without it."""
        yield

    @property
    def loss_scale(self) -> float:
        """What the loss is to be multiplied by before `backward`."""
        return self._loss_scale

    @property
    def grad_norm(self) -> float:
        """With max_grad_norm: the norm of all averaged gradients of the last step, unclipped."""
        return self._grad_norm

    # States.

    def _slices(self, form: Form) -> Iterator[Tuple[str, int, Buffer]]:
        for state in form.states():
            for i, buffer in enumerate(self._buffers):
                yield state, i, buffer

    @property
    def state(self) -> Any:  # type: ignore[override]
        """By parameter, as torch's optimizer has it. Collective, as `state_dict` is; what is
        changed in it is taken up by the next step."""
        if self._ready:
            self._gather("state")
        return self._state

    @state.setter
    def state(self, value: Any) -> None:
        self._state = value
        if self._ready:
            self._check_states(self.param_groups, value)
            self._take_states()

    def _meet(self, call: str, advice: str = "") -> None:
        """All ranks make this call, having taken as many batches; else Aborted on all."""
        if self._ranks > 1:
            self._session.meet(f"{type(self).__name__}.{call} after batch {self._batches.number}"
                               f"{self._which()}{advice}")

    def _which(self) -> str:
        return f" of optimizer {self._number}" if self._number > 1 else ""

    def _gather(self, call: str) -> None:
        """Gathers the states that `call` shows. Collective, unless they were gathered already."""
        if not self._is_shown and self._running is not None:
            self._meet(call, "; on all ranks, or after consolidate_state_dict() on all")
            self._check_weights(call)
            self._pull()

    def _check_weights(self, call: str) -> None:
        """ValueError on all ranks if their weights differ by more than roundings."""
        if self._ranks > 1:
            names = names_of(self.param_groups)
            check_near(self._group, self._session, f"{type(self).__name__}.{call}",
                       {names[id(p)]: p for p in self._weights})

    def _pull(self) -> None:
        """Copies the program's states into self._state, for every parameter that made a step."""
        if self._is_shown or self._running is None:
            return
        self._write_steps()
        form = self._running.form
        for state, i, buffer in self._slices(form):
            flat = torch.zeros_like(buffer.flat_weights)
            self._running.binding.read(form.name(state, i), flat)
            for slot in buffer.slots:
                if self._steps[slot.parameter]:
                    self._state[slot.parameter][state] = slot.part_of(flat).clone()
        if self._kind != "sgd":
            for slot in self._slots:
                if self._steps[slot.parameter]:
                    self._state[slot.parameter]["step"] = torch.tensor(
                        float(self._steps[slot.parameter]), dtype=torch.float32, device="cpu")
        self._is_shown, self._shown = True, self._marks()

    def _marks(self) -> Any:
        """What differs after a change of self._state."""
        return [(id(p), name, id(value), getattr(value, "_version", value))
                for p, of_p in self._state.items() if isinstance(of_p, dict)
                for name, value in of_p.items()]

    def _take_shown(self) -> None:
        """Before the program goes on: takes up what the caller has changed in self._state."""
        if self._marks() != self._shown:
            self._check_states(self.param_groups, self._state)
            states = [self._state.get(p, {}) for group in self.param_groups
                      for p in group["params"]]
            self._meet("step() with another optimizer.state, whose checksum is "
                       f"{checksum(states):08x},")
            self._take_states()

    def _take_states(self) -> None:
        """Makes self._state the newest."""
        for group in self.param_groups:
            for parameter in group["params"]:
                self._steps[parameter] = self._steps_of(self._state.get(parameter, {}))
        if self._is_built:
            self._read_steps()
        self._is_shown, self._shown, self._to_push = True, self._marks(), True

    def _hide(self) -> None:
        """The program's states are newer than self._state from now on."""
        for slot in self._slots:
            self._state.pop(slot.parameter, None)
        self._is_shown = False

    def _push(self, running: _Running) -> None:
        """Copies self._state into the program's states."""
        for state, i, buffer in self._slices(running.form):
            flat = torch.zeros_like(buffer.flat_weights)
            for slot in buffer.slots:
                value = self._state.get(slot.parameter, {}).get(state)
                if value is not None:
                    slot.part_of(flat).copy_(value)
            running.binding.write(running.form.name(state, i), flat)
        self._to_push = False

    def consolidate_state_dict(self) -> None:
        """Gathers the states of all ranks, so that `state_dict` works on any of them alone, until
        the next step. Collective."""
        self._meet("consolidate_state_dict()")
        self._check_weights("consolidate_state_dict()")
        self._pull()

    def state_dict(self) -> Dict[str, Any]:  # type: ignore[override]
        """As torch's optimizer writes it. Collective, unless `consolidate_state_dict` has been
        called since the last step: states are spread over the ranks."""
        self._gather("state_dict()")
        packed = super().state_dict()
        if self._is_dynamic:
            packed["loss_scale"] = {"scale": self._loss_scale, "good_steps": self._good_steps}
        return packed

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Loads a state of this optimizer or of torch's, also from another number of ranks. A state
        that does not fit changes nothing. Collective."""
        states = state_dict.get("state") if isinstance(state_dict, dict) else None
        self._meet(f"load_state_dict() of states whose checksum is {checksum(states):08x}")
        state_dict = dict(state_dict)
        scale = state_dict.pop("loss_scale", None)
        if scale is not None:
            scale = _scale_of(scale["scale"]), int(scale["good_steps"])
        super().load_state_dict(state_dict)
        if self._is_dynamic and scale is not None:
            (self._loss_scale, self._good_steps), self._is_set = scale, False

    def __setstate__(self, state: Dict[str, Any]) -> None:
        """What torch's load_state_dict calls with its result."""
        groups, states = state["param_groups"], state["state"]
        for i, group in enumerate(groups):
            for name, value in self.defaults.items():
                group.setdefault(name, value)
            group.update(self._fixed_by_class())
            self._read_group(i, group)
        self._check_states(groups, states)
        super().__setstate__({"param_groups": groups})
        self._state = states
        self._take_states()

    def _fixed_by_class(self) -> Dict[str, Any]:
        """Options that a checkpoint does not change."""
        return {}

    def _check_states(self, groups: Sequence[Group], states: Any) -> None:
        """ValueError unless each parameter's state is one of this optimizer, of its shape."""
        names = names_of(groups)
        for group in groups:
            for parameter in group["params"]:
                state = states.get(parameter)
                if not state:
                    continue
                where = f"{type(self).__name__}: the state of {names[id(parameter)]}"
                self._check_state(parameter, state, where)

    def _check_state(self, parameter: torch.Tensor, state: Dict[str, Any], where: str) -> None:
        missing = [name for name in self._state_names if name not in state]
        if missing:
            raise ValueError(f"{where} has no {', '.join(missing)}: want that of the same kind of "
                             f"optimizer; it has {', '.join(map(str, state))}")
        for name in self._state_names:
            value = state[name]
            if name == "step":
                steps = number(f"{where}: step", value)
                if not (steps >= 0 and steps == math.floor(steps)):
                    raise ValueError(f"{where}: step={steps}: want how many steps were made")
            elif value is not None and (not isinstance(value, torch.Tensor) or
                                        value.shape != parameter.shape):
                found = list(value.shape) if isinstance(value, torch.Tensor) else value
                raise ValueError(f"{where}: want {name} of shape {list(parameter.shape)}, have "
                                 f"{found}")

    def _steps_of(self, state: Dict[str, Any]) -> int:
        """How many steps a state has made; where it does not say, 1 stands for some."""
        if "step" in state:
            return int(state["step"])
        return int(state.get("momentum_buffer") is not None)


def _plain_observed_step(optimizer: FusedOptimizer, closure: Optional[Callable[[], Any]] = None, *,
                         step: Optional[int] = None, **scaler: Any) -> Any:
    return optimizer._step(closure, step, scaler)


#: With hooks and in a profile, as torch's optimizers.
_observed_step: Callable[..., Any] = getattr(
    torch.optim.Optimizer, "profile_hook_step", lambda step: step)(_plain_observed_step)


def _scale_of(value: Any) -> float:
    if not isinstance(value, str):
        scale = constant("loss_scale", value)
        if 0 < scale < math.inf:
            return scale
    raise ValueError(f"loss_scale={value!r}: want a positive number, 'dynamic' or None")


def _form_of(parameter: torch.Tensor) -> Any:
    """What ranks must have in common."""
    form: List[Any] = [str(parameter.dtype), list(parameter.shape), is_trained(parameter),
                       is_plain(parameter)]
    if is_trained(parameter) and is_plain(parameter):
        form.append([stride for n, stride in zip(parameter.shape, dense_strides(parameter))
                     if n > 1])
    return form
