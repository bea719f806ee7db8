"""Programs written in Python, with the words of the language.

>>> import coconet
>>> p = coconet.Program("momentum")
>>> g = p.input("g", "f32", ["N"], "local")
>>> w = p.state("p", "f32", ["N"], "replicated")
>>> m = p.state("m", "f32", ["N"])
>>> lr = p.scalar("lr")
>>> mean = coconet.all_reduce("sum", g) / coconet.world
>>> m1 = p.update(m, 0.9 * m + mean)
>>> _ = p.update(w, w - lr * m1)
>>> print(p)
coconet 1
program momentum
input g : f32[N] local
state p : f32[N] replicated
state m : f32[N]
input lr : f32[]
%4 = all_reduce(sum, g)
%5 = div(%4, world)
%6 = mul(0.9, m)
%7 = add(%6, %5)
%8 = update(m, %7)
%9 = mul(lr, %8)
%10 = sub(p, %9)
%11 = update(p, %10)

A program is a list of operations, in the order in which they are called; `str(program)` is its
text, which `Session.compile` takes. `coconet.call("name", ...)` reaches every operation of the
language, and the module has a function for each. What is wrong with types and layouts is said by
`Session.compile`, with the line of Python that wrote the operation.
"""

from __future__ import annotations

import math
import os
import re
import sys
from types import FrameType
from typing import Any, List, Optional, Sequence, Set, Tuple, Union

from coconet._dlpack import dtype_name
from coconet._numbers import exact

Extent = Union[int, str]
Operand = Union["Value", int, float]

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\Z")
_WORD = re.compile(r"[A-Za-z0-9_.,+*/() -]*\Z")


def _place() -> str:
    """The line of Python, outside of this package, that is being run."""
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _number(value: Union[int, float]) -> str:
    if isinstance(value, bool):
        raise TypeError(f"{value}: want a number; a bool is x == x, say, or a comparison")
    value = exact("a constant", value)
    if not math.isfinite(value):
        raise ValueError(f"{value}: want a finite number; infinity is coconet.const('inf', dtype)")
    return repr(value)


def _shape(shape: Sequence[Extent]) -> str:
    if isinstance(shape, (str, int)):
        raise TypeError(f"shape {shape!r}: want a list of extents, [{shape!r}]")
    return "[" + ", ".join(_word(extent) for extent in shape) + "]"


def _word(word: Union[str, int]) -> str:
    if not isinstance(word, str):
        return str(word.__index__())
    if not _WORD.match(word):
        raise ValueError(f"{word!r}: want a name, a number or an attribute of the language")
    return word


class Value:
    """A value of a program: a tensor or scalar that an operation gives.

    Operators and comparisons give operations: `+ - * / ** @`, `< <= > >= == !=`, `& | ~` (the
    language's and, or, not), `abs`, and `x[a:b]`.
    """

    __slots__ = ("program", "text")

    def __init__(self, program: Optional["Program"], text: str):
        #: None where the value belongs to any program, as `coconet.world` does.
        self.program = program
        self.text = text

    def __repr__(self) -> str:
        return f"coconet.Value({self.text})"

    def __bool__(self) -> bool:
        raise TypeError(f"{self.text} has no value while the program is written; use "
                        "coconet.select for a choice, & | ~ for and, or, not")

    __hash__ = object.__hash__

    def __iter__(self) -> Any:
        raise TypeError(f"{self.text} cannot be iterated over; use x[a:b]")

    def __add__(self, other: Operand) -> "Value":
        return call("add", self, other)

    def __radd__(self, other: Operand) -> "Value":
        return call("add", other, self)

    def __sub__(self, other: Operand) -> "Value":
        return call("sub", self, other)

    def __rsub__(self, other: Operand) -> "Value":
        return call("sub", other, self)

    def __mul__(self, other: Operand) -> "Value":
        return call("mul", self, other)

    def __rmul__(self, other: Operand) -> "Value":
        return call("mul", other, self)

    def __truediv__(self, other: Operand) -> "Value":
        return call("div", self, other)

    def __rtruediv__(self, other: Operand) -> "Value":
        return call("div", other, self)

    def __pow__(self, other: Operand) -> "Value":
        return call("pow", self, other)

    def __rpow__(self, other: Operand) -> "Value":
        return call("pow", other, self)

    def __matmul__(self, other: "Value") -> "Value":
        return call("matmul", self, other)

    def __neg__(self) -> "Value":
        return call("neg", self)

    def __abs__(self) -> "Value":
        return call("abs", self)

    def __lt__(self, other: Operand) -> "Value":
        return call("lt", self, other)

    def __le__(self, other: Operand) -> "Value":
        return call("le", self, other)

    def __gt__(self, other: Operand) -> "Value":
        return call("gt", self, other)

    def __ge__(self, other: Operand) -> "Value":
        return call("ge", self, other)

    def __eq__(self, other: Any) -> "Value":  # type: ignore[override]
        return call("eq", self, other)

    def __ne__(self, other: Any) -> "Value":  # type: ignore[override]
        return call("ne", self, other)

    def __and__(self, other: "Value") -> "Value":
        return _infix("and", self, other)

    def __or__(self, other: "Value") -> "Value":
        return _infix("or", self, other)

    def __invert__(self) -> "Value":
        return _operation([self], f"not {self.text}")

    def __getitem__(self, ranges: Union[slice, Tuple[slice, ...]]) -> "Value":
        texts = []
        for each in ranges if isinstance(ranges, tuple) else (ranges,):
            if not isinstance(each, slice) or each.step not in (None, 1):
                raise TypeError(f"{self.text}[{each}]: want ranges a:b, one per dimension")
            begin, end = ("" if x is None else str(x.__index__()) for x in (each.start, each.stop))
            texts.append(f"{begin}:{end}")
        return _operation([self], f"{self.text}[{', '.join(texts)}]")


def _operation(operands: Sequence[Any], text: str) -> Value:
    program: Optional[Program] = None
    for operand in operands:
        if isinstance(operand, Value) and operand.program is not None:
            if program is not None and operand.program is not program:
                raise ValueError(f"{text}: operands of two programs, {program.name} and "
                                 f"{operand.program.name}")
            program = operand.program
    return Value(None, text) if program is None else program._add(text)


def _infix(word: str, a: Value, b: Value) -> Value:
    if not isinstance(a, Value) or not isinstance(b, Value):
        raise TypeError(f"{word}: want two values of dtype bool; have {a!r} and {b!r}")
    return _operation([a, b], f"({a.text} {word} {b.text})")


def _argument(argument: Any) -> str:
    if isinstance(argument, Value):
        return argument.text
    if isinstance(argument, (int, float)) or hasattr(argument, "__float__"):
        return _number(argument)
    if isinstance(argument, str):
        return _word(argument)
    if isinstance(argument, (list, tuple)):
        return _shape(argument)
    raise TypeError(f"an operand of type {type(argument).__name__}: want a coconet.Value, a "
                    "number, a word, or a list of extents")


def call(name: str, *arguments: Any) -> Value:
    """The operation `name` of the language, with operands and attributes in the language's order.

    Values and numbers are operands; strings are attributes ("sum", "f32", "next", "owned(by L)", a
    symbol), lists are shapes: `call("expand", x, ["B", "N", 4])`.
    """
    if not isinstance(name, str) or not _NAME.match(name):
        raise ValueError(f"{name!r}: want the name of an operation")
    return _operation(arguments, f"{name}({', '.join(map(_argument, arguments))})")


class Program:
    """A program of the language, written in Python (see `coconet.program`)."""

    def __init__(self, name: str = "program"):
        self._check_name(name)
        self.name = name
        self._lines = ["coconet 1", f"program {name}"]
        self._places = ["", ""]  # the line of Python that wrote each line
        self._names: Set[str] = set()

    @staticmethod
    def _check_name(name: str) -> None:
        if not isinstance(name, str) or not _NAME.match(name):
            raise ValueError(f"{name!r}: want a name of letters, digits, _ and .")

    @property
    def text(self) -> str:
        """The program as text of the language."""
        return "\n".join(self._lines) + "\n"

    def __str__(self) -> str:
        return "\n".join(self._lines)

    def __repr__(self) -> str:
        return f"coconet.Program({self.name!r}, {len(self._lines)} lines)"

    def _append(self, line: str) -> None:
        self._lines.append(line)
        self._places.append(_place())

    def _add(self, expression: str) -> Value:
        name = f"%{len(self._lines) - 2}"
        self._append(f"{name} = {expression}")
        return Value(self, name)

    def _declare(self, word: str, name: str, dtype: Any, shape: Sequence[Extent],
                 layout: Optional[str], each: bool) -> Value:
        self._check_name(name)
        if name in self._names:
            raise ValueError(f"{name}: the program has an input or state of this name")
        self._append(f"{word} {name} : {dtype_name(dtype)}{_shape(shape)}" +
                     (f" {_word(layout)}" if layout else "") + (" each" if each else ""))
        self._names.add(name)
        return Value(self, name)

    def input(self, name: str, dtype: Any, shape: Sequence[Extent] = (),
              layout: Optional[str] = None, each: bool = False) -> Value:
        """A tensor that each step reads.

        `shape` has numbers and symbols, whose sizes `Session.compile` takes: ["N", 1024]. `layout`
        is "local", "replicated", "sliced(0)", "owned(by L)", ... `each`: a scalar per tensor of a
        list.
        """
        return self._declare("input", name, dtype, shape, layout, each)

    def state(self, name: str, dtype: Any, shape: Sequence[Extent] = (),
              layout: Optional[str] = None, each: bool = False) -> Value:
        """A tensor that steps read and update. Without a layout a schedule may slice it."""
        return self._declare("state", name, dtype, shape, layout, each)

    def scalar(self, name: str, dtype: Any = "f32", each: bool = False) -> Value:
        """A number that each step may change: `bound.set(lr=1e-3)`."""
        return self._declare("input", name, dtype, (), None, each)

    def update(self, state: Value, value: Operand) -> Value:
        """Gives a state its value after the step; returns that value."""
        return _operation([state, value], f"update({_argument(state)}, {_argument(value)})")

    def output(self, name: str, value: Value) -> None:
        """A tensor that each step writes."""
        self._check_name(name)
        if not isinstance(value, Value):
            raise TypeError(f"output {name}: want a coconet.Value, have {type(value).__name__}")
        if value.program not in (None, self):
            raise ValueError(f"output {name}: a value of another program")
        self._append(f"output {name} = {value.text}")

    def constant(self, value: Union[int, float], dtype: Any) -> Value:
        """`coconet.const` as an operation of this program."""
        return self._add(f"const({_argument(value)}, {dtype_name(dtype)})")

    @property
    def world(self) -> Value:
        """The number of ranks: `coconet.world`."""
        return world

    def _with_place(self, words: str) -> str:
        """An error of the library, with the line of Python that its line of text came from."""
        found = re.search(r"\bline (\d+)", words)
        number = int(found.group(1)) if found else 0
        if not 0 < number <= len(self._lines) or not self._places[number - 1]:
            return words
        return f"{words}\n  at {self._places[number - 1]}: {self._lines[number - 1]}"


#: The number of ranks of a stage, in the dtype of what it meets.
world = Value(None, "world")
