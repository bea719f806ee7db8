"""What the fused optimizers share: buffers, the program, its scalars and states."""

from __future__ import annotations

import contextlib
import inspect
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, Union

import torch

import coconet
from coconet.torch._buffers import Buffer, attach, buffers_of, take_weights
from coconet.torch._programs import Form, program_of
from coconet.torch._ranks import broadcast, check_equal, group_of, session_of

_SET_TO_NONE = inspect.signature(torch.optim.Optimizer.zero_grad).parameters["set_to_none"].default
_HYPERPARAMETERS = ("lr", "betas", "eps", "weight_decay", "maximize", "momentum", "dampening",
                    "nesterov")
_HALVE, _DOUBLE, _GOOD_STEPS = 0.5, 2.0, 2000  # of a dynamic loss scale

_NO_HOOKS: Dict[Any, Any] = {}


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
                tables = self._tables(form, buffer)
                self.tables.append(tables)
                arrays.update((form.name(name, i), table) for name, table in tables.items())
        self.norm, self.bad = torch.zeros(1), torch.zeros(1)
        for name, is_there in (("norm", form.is_clipped), ("bad", form.is_checked)):
            if is_there:
                arrays[name] = getattr(self, name)
        self.binding = program.bind(arrays)
        self.names = set(program.tensors)
        self.values: Dict[str, float] = {}  # scalars as they are set

    @staticmethod
    def _tables(form: Form, buffer: Buffer) -> Dict[str, torch.Tensor]:
        index = torch.zeros(max(1, buffer.size), dtype=torch.int32)
        for number, slot in enumerate(buffer.slots):
            index[slot.offset:slot.offset + slot.count] = number
        dtype = torch.float64 if buffer.dtype == "f64" else torch.float32
        return {"index": index, **{name: torch.zeros(len(buffer.slots), dtype=dtype)
                                   for name in (*form.step_scalars(), "present")}}

    def set(self, name: str, value: float) -> None:
        if self.values.get(name) != value and name in self.names:
            self.binding.scalar(name).set(value)
            self.values[name] = value


class FusedOptimizer(torch.optim.Optimizer):
    """The base of the fused optimizers; see `coconet.torch`."""

    _kind = ""

    def __init__(self, params: Any, defaults: Dict[str, Any], *, group: Any = None,
                 session: Optional[coconet.Session] = None, max_grad_norm: Optional[float] = None,
                 loss_scale: Union[float, str, None] = None) -> None:
        if max_grad_norm is not None and not max_grad_norm > 0:
            raise ValueError(f"max_grad_norm={max_grad_norm}: want a positive number or None")
        if isinstance(loss_scale, str) and loss_scale != "dynamic":
            raise ValueError(f"loss_scale={loss_scale!r}: want a number, 'dynamic' or None")
        self._ready = False
        super().__init__(params, defaults)
        self._group = group_of(group) if session is None else group
        self._session = session_of(self._group) if session is None else session
        self._ranks = self._session.ranks
        self.max_grad_norm = max_grad_norm
        self._is_dynamic = loss_scale == "dynamic"
        self._is_checked = loss_scale is not None
        self._loss_scale = 65536.0 if self._is_dynamic else float(loss_scale or 1)
        self._good_steps = 0
        self._grad_norm = float("nan")
        self._steps: Dict[torch.Tensor, int] = {}  # that each parameter has made
        self._even_steps: Optional[int] = 0  # that every one has made; else None
        self._last_values: Any = None  # hyperparameters of the last step
        self._hyperparameters = [name for name in self.defaults if name in _HYPERPARAMETERS]
        self._compiled: Dict[Form, coconet.TunedProgram] = {}
        self._running: Optional[_Running] = None
        self._to_push = False  # self.state is newer than the running program's states
        self._buffers: List[Buffer] = []
        self._ready = True
        self._build()

    # Buffers.

    def _build(self) -> None:
        """Moves all parameters into buffers, with rank 0's values."""
        if self._ranks > 1:
            check_equal(self._group, self._session, "the optimizer's parameters", [
                [(str(p.dtype), list(p.shape), p.requires_grad) for p in group["params"]]
                for group in self.param_groups])
        self._buffers, self._frozen = buffers_of(self._session, self.param_groups,
                                                 self._kind == "lamb")
        self._slots = [slot for buffer in self._buffers for slot in buffer.slots]
        if self._ranks > 1:
            for tensor in [buffer.flat_weights for buffer in self._buffers] + \
                    [p.data for p in self._frozen]:
                broadcast(self._group, self._session, tensor)
        for slot in self._slots:
            self._steps.setdefault(slot.parameter, 0)
        self._read_steps()
        self._compiled = {}
        self._presence = _Presence(self._session, len(self._slots)) if self._ranks > 1 else None

    def _dismantle(self) -> None:
        """Takes the states out of the program, and lets go of the buffers."""
        self._write_steps()
        self._pull()
        self._stop()
        for buffer in self._buffers:
            buffer.remove()
        if self._presence is not None:
            self._presence.close()
        self._to_push = True

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        """Collective once the optimizer is made."""
        super().add_param_group(param_group)
        if self._ready:
            self._dismantle()
            self._build()

    # Programs.

    def _form(self, is_masked: bool) -> Form:
        groups = [self.param_groups[buffer.group] for buffer in self._buffers]
        momenta = [group.get("momentum", 0) for group in groups]
        return Form(
            kind=self._kind, dtypes=tuple(buffer.dtype for buffer in self._buffers),
            is_shared=len({buffer.group for buffer in self._buffers}) == 1,
            has_momentum=any(momenta),
            is_plain=all(momenta) and not any(group.get("nesterov") for group in groups),
            is_clipped=self.max_grad_norm is not None, is_checked=self._is_checked,
            is_masked=is_masked)

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

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:  # type: ignore[override]
        """Averages the gradients of all ranks and updates the weights, in one program. Collective.

        The first step tunes the program, unless the tuning cache has it. Parameters whose gradient
        is None on all ranks are left alone, as torch does; where some ranks have one, the others
        count as zeros.
        """
        loss = None
        for hook in getattr(self, "_optimizer_step_pre_hooks", _NO_HOOKS).values():
            hook(self, (closure,), {})
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._take_changes()
        missing = self._collect()
        if self._presence is not None:
            missing = self._presence.agree(missing)
        if self._slots and len(missing) < len(self._slots):
            self._run(missing)
        for hook in getattr(self, "_optimizer_step_post_hooks", _NO_HOOKS).values():
            hook(self, (closure,), {})
        return loss

    step.hooked = True  # type: ignore[attr-defined]  # torch's wrapper takes longer than a step

    def _take_changes(self) -> None:
        for parameter in self._frozen:
            if parameter.requires_grad and parameter.numel():
                self._dismantle()
                self._build()
                return

    def _collect(self) -> List[int]:
        """Brings all gradients into the buffers; the numbers of parameters that have none."""
        missing = []
        for number, slot in enumerate(self._slots):
            if slot.parameter.data_ptr() != slot.address:
                take_weights(slot)
            gradient = slot.parameter.grad
            if gradient is not slot.gradient:
                if gradient is None:
                    missing.append(number)
                    slot.gradient.zero_()
                else:
                    attach(slot)
        return missing

    def _run(self, missing: List[int]) -> None:
        values = [[group[name] for name in self._hyperparameters] for group in self.param_groups]
        values.append([self._loss_scale, self.max_grad_norm])
        is_even = not missing and self._even_steps is not None
        running = self._running
        is_same = running is not None and values == self._last_values and not self._to_push and \
            is_even != running.form.is_masked
        if not is_same or running is None:
            self._write_steps()
            running = self._start(not is_even)
            self._last_values = values
        if self.state:
            self.state.clear()  # the program's are newer now
        if is_even:
            self._set_scalars(running, (self._even_steps or 0) + 1, is_same)
        else:
            self._write_steps()
            self._set_tables(running, {self._slots[number].parameter for number in missing})
        running.binding.run()
        if running.form.is_clipped:
            self._grad_norm = running.norm.item()
        if running.form.is_checked and not self._take_check(running.bad.item() > 0.5):
            return
        if is_even:
            self._even_steps = (self._even_steps or 0) + 1
            return
        absent = set(missing)
        for number, slot in enumerate(self._slots):
            if number not in absent:
                self._steps[slot.parameter] += 1
        self._read_steps()

    def _read_steps(self) -> None:
        """Finds whether all parameters have made as many steps: then one number counts them."""
        counts = {self._steps[slot.parameter] for slot in self._slots}
        self._even_steps = counts.pop() if len(counts) == 1 else None

    def _write_steps(self) -> None:
        """Brings the count of each parameter up to date."""
        if self._even_steps is not None:
            for slot in self._slots:
                self._steps[slot.parameter] = self._even_steps

    def _take_check(self, is_bad: bool) -> bool:
        """Adjusts a dynamic loss scale; returns whether the step was made."""
        if self._is_dynamic:
            self._good_steps = 0 if is_bad else self._good_steps + 1
            if is_bad:
                self._loss_scale *= _HALVE
            elif self._good_steps == _GOOD_STEPS:
                self._loss_scale *= _DOUBLE
                self._good_steps = 0
        return not is_bad

    def _set_scalars(self, running: _Running, step: int, is_same: bool) -> None:
        """Those of an even step; only what depends on its number where the others are set."""
        for i in range(1 if running.form.is_shared else len(self._buffers)):
            group = self.param_groups[self._buffers[i].group]
            if not is_same:
                self._set_group(running, i, group)
            for name, value in self._step_scalars(group, step).items():
                running.set(running.form.scalar_name(name, i), value)

    def _set_group(self, running: _Running, tensor: int, group: Dict[str, Any]) -> None:
        form = running.form
        sign = -1 if group.get("maximize") else 1
        running.set(form.scalar_name("scale", tensor), sign / (self._ranks * self._loss_scale))
        for name, value in self._group_scalars(group).items():
            running.set(form.scalar_name(name, tensor), value)
        if form.is_clipped:
            running.set("max_norm", float(self.max_grad_norm or 0))

    def _set_tables(self, running: _Running, absent: Any) -> None:
        form = running.form
        for i, buffer in enumerate(self._buffers):
            group = self.param_groups[buffer.group]
            self._set_group(running, i, group)
            for number, slot in enumerate(buffer.slots):
                values = self._step_scalars(group, self._steps[slot.parameter] + 1)
                values["present"] = float(slot.parameter not in absent)
                for name, value in values.items():
                    if form.by_tensor:
                        running.set(form.name(name, i), value)
                    elif name in running.tables[i]:
                        running.tables[i][name][number] = value

    def _group_scalars(self, group: Dict[str, Any]) -> Dict[str, float]:
        """Values of the scalars that do not depend on a parameter's step."""
        raise NotImplementedError

    def _step_scalars(self, group: Dict[str, Any], step: int) -> Dict[str, float]:
        """Values of those that do."""
        raise NotImplementedError

    # Gradients.

    def zero_grad(self, set_to_none: bool = _SET_TO_NONE) -> None:  # type: ignore[override]
        """As torch's: gradients become None, or zeros in place."""
        if set_to_none:
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.grad = None
            return
        for slot in self._slots:
            attach(slot)
        for buffer in self._buffers:
            buffer.flat_gradients.zero_()
        for parameter in self._frozen:
            if parameter.grad is not None:
                parameter.grad = torch.zeros_like(parameter.grad)

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

    def _pull(self) -> None:
        """Copies the program's states into self.state, for every parameter that made a step."""
        if self._running is None or self.state or self._to_push:
            return
        self._write_steps()
        form = self._running.form
        for state, i, buffer in self._slices(form):
            flat = torch.zeros_like(buffer.flat_weights)
            self._running.binding.read(form.name(state, i), flat)
            for slot in buffer.slots:
                if self._steps[slot.parameter]:
                    self.state[slot.parameter][state] = slot.part_of(flat).clone()
        if self._kind != "sgd":
            for slot in self._slots:
                if self._steps[slot.parameter]:
                    self.state[slot.parameter]["step"] = torch.tensor(
                        float(self._steps[slot.parameter]))

    def _push(self, running: _Running) -> None:
        """Copies self.state into the program's states."""
        for state, i, buffer in self._slices(running.form):
            flat = torch.zeros_like(buffer.flat_weights)
            for slot in buffer.slots:
                value = self.state.get(slot.parameter, {}).get(state)
                if value is not None:
                    slot.part_of(flat).copy_(value)
            running.binding.write(running.form.name(state, i), flat)
        self._to_push = False

    def consolidate_state_dict(self) -> None:
        """Gathers the states of all ranks, so that `state_dict` works on any of them alone, until
        the next step. Collective."""
        self._pull()

    def state_dict(self) -> Dict[str, Any]:  # type: ignore[override]
        """As torch's optimizer writes it. Collective, unless `consolidate_state_dict` has been
        called since the last step: states are spread over the ranks."""
        self._pull()
        packed = super().state_dict()
        if self._is_dynamic:
            packed["loss_scale"] = {"scale": self._loss_scale, "good_steps": self._good_steps}
        return packed

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Of this optimizer or of torch's, also from another number of ranks; on all ranks."""
        state_dict = dict(state_dict)
        scale = state_dict.pop("loss_scale", None)
        super().load_state_dict(state_dict)
        if self._is_dynamic and scale is not None:
            self._loss_scale, self._good_steps = scale["scale"], scale["good_steps"]
        for group in self.param_groups:
            for name, value in self.defaults.items():
                group.setdefault(name, value)
            self._check_group(group)
            for parameter in group["params"]:
                self._steps[parameter] = self._steps_of(self.state.get(parameter, {}))
        self._read_steps()
        self._to_push = True

    def _steps_of(self, state: Dict[str, Any]) -> int:
        """How many steps a loaded state has made; where it does not say, 1 stands for some."""
        if "step" in state:
            return int(state["step"])
        return int(state.get("momentum_buffer") is not None)

    def _check_group(self, group: Dict[str, Any]) -> None:
        for name in ("amsgrad", "differentiable", "capturable"):
            if group.get(name):
                raise ValueError(f"{name}=True: want False, which is all that fused steps have")


class _Presence:
    """Agrees on the parameters that no rank has a gradient of."""

    def __init__(self, session: coconet.Session, parameters: int):
        self._count = parameters
        program = coconet.Program("presence")
        mine = program.input("mine", "f32", ["N"], "local")
        program.output("any", coconet.all_reduce("max", mine))
        self._tuned = session.compile(program, N=max(1, parameters))
        mine_array, any_array = (self._tuned.allocate(name) for name in ("mine", "any"))
        self._mine, self._any = mine_array.torch(), any_array.torch()
        self._mine.fill_(1)
        self._bytes = memoryview(any_array._buffer()).cast("B")
        self._all = bytes(memoryview(mine_array._buffer()).cast("B"))  # of ones
        self._binding = self._tuned.bind(mine=mine_array, any=any_array)
        self._missing: List[int] = []

    def agree(self, missing: List[int]) -> List[int]:
        if missing != self._missing:
            self._mine.fill_(1)
            self._mine[missing] = 0
            self._missing = missing
        self._binding.run()
        if self._bytes == self._all:
            return []
        return [number for number in range(self._count) if self._any[number].item() < 0.5]

    def close(self) -> None:
        self._binding.close()
