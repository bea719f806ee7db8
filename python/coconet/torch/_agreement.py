"""What the ranks of an optimizer agree on before each step, so that no two batches are paired."""

from __future__ import annotations

import weakref
import zlib
from typing import Any, Callable, List, NoReturn, Optional, Set, Tuple

import torch

import coconet
from coconet._numbers import count_of
from coconet.torch._buffers import HAS_ACCUMULATE_HOOKS, unfrozen

# Numbers are compared in two digits, which are exact in f32; the second one has a modulus, a prime.
_DIGIT, _MODULUS = 1 << 20, 16777213

# What identifies a step: how many batches had none, a scale of gradients, a digest of
# hyperparameters, whether a gradient is inf or nan, and Batches.take_gradients.
Key = Tuple[int, float, int, bool, Optional[bool]]


class Batches:
    """Counts the batches that this rank has taken gradients of, whether or not it made a step."""

    def __init__(self) -> None:
        self.number = 0  # of the batch whose step has begun last
        self._with_gradient: Set[int] = set()  # parameters with a gradient of the next batch
        self._is_first: List[bool] = []  # by parameter: it had no gradient before the last one
        self._is_fresh = False  # the step that has begun has new gradients
        self._hooks: List[Any] = []
        # The gradients of the last step, but those that are views of buffers, and their versions.
        self._seen: List[Tuple[Any, int]] = []

    def watch(self, parameters: List[torch.Tensor]) -> None:
        """Counts backward passes that reach these parameters from now on, and no others. Their
        gradients, which may lie in other memory now, are new to the next step."""
        self._seen = [(None, -1)] * len(parameters)
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        self._is_first = [False] * len(parameters)
        for key, parameter in enumerate(parameters):
            with unfrozen(parameter):
                before, after = self._hooks_of(key, weakref.ref(parameter))
                self._hooks.append(parameter.register_hook(before))
                if HAS_ACCUMULATE_HOOKS:
                    self._hooks.append(parameter.register_post_accumulate_grad_hook(after))

    def _hooks_of(self, key: int, parameter: Any) -> Tuple[Callable[[torch.Tensor], None], ...]:
        """One for before autograd adds to a gradient, and one for after; torch.autograd.grad, which
        adds to none, calls the first one only."""

        def before(_: torch.Tensor) -> None:
            reached = parameter()
            self._is_first[key] = reached is not None and reached.grad is None
            if not HAS_ACCUMULATE_HOOKS:
                after(_)

        def after(_: torch.Tensor) -> None:
            if key in self._with_gradient and self._is_first[key]:
                self.drop()
            self._with_gradient.add(key)

        return before, after

    def drop(self) -> None:
        """The gradients since the last step, if there are any, are given up."""
        if self._with_gradient:
            self.number += 1
            self._with_gradient.clear()

    def begin(self, number: Optional[int]) -> None:
        """A step begins, of the batch that the caller says, or of the next."""
        self.number = self.number + 1 if number is None else count_of("step", number)
        if self._with_gradient:
            self._with_gradient.clear()
            self._is_fresh = True

    def take(self, slots: List[Any]) -> Optional[bool]:
        """In a step, after its closure: whether any gradient is another than in the step before;
        None if there are no gradients."""
        is_fresh = self._is_fresh or bool(self._with_gradient)
        self._is_fresh = False
        self._with_gradient.clear()
        if is_fresh:
            return True
        found = None
        for slot, (before, version) in zip(slots, self._seen):
            gradient = slot.parameter.grad
            if gradient is not None:
                last = slot.gradient if before is None else before()
                if gradient is not last or gradient._version != version:
                    return True
                found = False
        return found

    def keep(self, slots: List[Any]) -> None:
        """The gradients are no others in the next step."""
        self._seen = []
        for slot in slots:
            gradient = slot.parameter.grad
            if gradient is None or gradient is slot.gradient:
                self._seen.append((None, slot.gradient._version))
            else:
                self._seen.append((weakref.ref(gradient), gradient._version))


def digest(value: Any) -> int:
    """A digest of the `repr` of a value; exact in f32."""
    return zlib.crc32(repr(value).encode()) & 0xFFFFFF


class Agreement:
    """The exchange before a step: whether all ranks are at the same one, and which parameters have
    a gradient on any of them."""

    _FIELDS = 6
    _NONE = -2.0  # of both values of a field to which this rank has nothing to say

    def __init__(self, session: coconet.Session, name: str, parameters: int):
        self._session, self._name, self._count = session, name, parameters
        program = coconet.Program(name + "_step")
        mine = program.input("mine", "f32", ["N"], "local")
        program.output("any", coconet.all_reduce("max", mine))
        # By parameter 1 where it has a gradient; the fields; what they are less than 0, so that
        # the maximum is that of the least; whether a gradient is bad.
        self._low, self._below = parameters, parameters + self._FIELDS
        tuned = session.compile(program, N=self._below + self._FIELDS + 1)
        mine_array, any_array = (tuned.allocate(name) for name in ("mine", "any"))
        self._mine_bytes = memoryview(mine_array._buffer()).cast("B")
        self._any_bytes = memoryview(any_array._buffer()).cast("B")
        self._mine: Any = self._mine_bytes.cast("f")
        self._any: Any = self._any_bytes.cast("f")
        for number in range(parameters):
            self._mine[number] = 1
        self._binding = tuned.bind(mine=mine_array, any=any_array)
        self._missing: List[int] = []
        self._high = 0
        self._key: Optional[Key] = None

    def agree(self, missing: List[int], batch: int, key: Key) -> Tuple[List[int], bool]:
        """The parameters that no rank has a gradient of, and whether any is bad. Aborted, on all
        ranks, if they are not at the same step."""
        mine = self._mine
        if missing != self._missing:
            for number in self._missing:
                mine[number] = 1
            for number in missing:
                mine[number] = 0
            self._missing = missing
        high, low = divmod(batch, _DIGIT)
        mine[self._low], mine[self._below] = low, 0 - low
        if key != self._key or high != self._high:
            self._write(high, key)
        self._binding.run()
        if self._any_bytes.tobytes() == self._mine_bytes.tobytes():
            return missing, key[3]
        if any(map(self._differs, range(self._FIELDS))):
            self._differ(batch, key)
        return ([number for number in range(self._count) if self._any[number] < 0.5],
                self._any[self._below + self._FIELDS] > 0.5)

    def _write(self, high: int, key: Key) -> None:
        skipped, scale, settings, is_bad, is_fresh = key
        fields = (high % _MODULUS, skipped & 0xFFFFFF, scale, settings, is_fresh)
        for i, value in enumerate(fields, 1):
            self._mine[self._low + i] = self._NONE if value is None else value
            self._mine[self._below + i] = self._NONE if value is None else 0 - value
        self._mine[self._below + self._FIELDS] = is_bad
        self._high, self._key = high, key

    def _differs(self, field: int) -> bool:
        most = self._any[self._low + field]
        return most != -self._any[self._below + field] and most != self._NONE

    def _differ(self, batch: int, key: Key) -> NoReturn:
        """Lets all ranks say what they are at, which ends the session."""
        skipped, scale, settings, _, is_fresh = key
        words = (f"{skipped:06x} for the steps made", f"gradients scaled by {scale:g}",
                 f"{settings:06x} for the hyperparameters",
                 {True: "new gradients", False: "the gradients of the step before",
                  None: "no gradients"}[is_fresh])
        said = [word for i, word in enumerate(words, 2) if self._differs(i)]
        self._session.meet(f"{self._name}.step() of batch {batch}" +
                           (f" with {', '.join(said)}" if said else ""))
        raise coconet.Internal(f"{self._name}.step(): ranks differ, but in nothing that they say")

    def close(self) -> None:
        self._binding.close()
