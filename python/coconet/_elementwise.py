"""Elementwise functions, made from their rows (bazel run //tests:update_goldens)."""

from __future__ import annotations

from coconet.program import Operand, Value, call

__all__ = [
    "rem",
    "neg",
    "abs",
    "sign",
    "min",
    "max",
    "pow",
    "sqrt",
    "rsqrt",
    "exp",
    "log",
    "log1p",
    "expm1",
    "sin",
    "cos",
    "floor",
    "ceil",
    "round",
    "tanh",
    "erf",
    "sigmoid",
    "relu",
    "gelu",
    "silu",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bit_not",
    "shift_left",
    "shift_right",
    "shift_right_logical",
    "select",
]


def rem(a: Operand, b: Operand) -> Value:
    """What a - b * q leaves, with the quotient q truncated towards zero."""
    return call("rem", a, b)


def neg(a: Operand) -> Value:
    """-a."""
    return call("neg", a)


def abs(a: Operand) -> Value:
    """The absolute value."""
    return call("abs", a)


def sign(a: Operand) -> Value:
    """1, -1 or 0; NaN stays NaN."""
    return call("sign", a)


def min(a: Operand, b: Operand) -> Value:
    """The lesser; NaN if an operand is NaN."""
    return call("min", a, b)


def max(a: Operand, b: Operand) -> Value:
    """The greater; NaN if an operand is NaN."""
    return call("max", a, b)


def pow(a: Operand, b: Operand) -> Value:
    """a to the power of b: a ** b."""
    return call("pow", a, b)


def sqrt(a: Operand) -> Value:
    """The square root."""
    return call("sqrt", a)


def rsqrt(a: Operand) -> Value:
    """1 / sqrt(a)."""
    return call("rsqrt", a)


def exp(a: Operand) -> Value:
    """e to the power of a."""
    return call("exp", a)


def log(a: Operand) -> Value:
    """The natural logarithm."""
    return call("log", a)


def log1p(a: Operand) -> Value:
    """log(1 + a)."""
    return call("log1p", a)


def expm1(a: Operand) -> Value:
    """exp(a) - 1."""
    return call("expm1", a)


def sin(a: Operand) -> Value:
    """The sine."""
    return call("sin", a)


def cos(a: Operand) -> Value:
    """The cosine."""
    return call("cos", a)


def floor(a: Operand) -> Value:
    """The next integer below."""
    return call("floor", a)


def ceil(a: Operand) -> Value:
    """The next integer above."""
    return call("ceil", a)


def round(a: Operand) -> Value:
    """The nearest integer; of two the even one."""
    return call("round", a)


def tanh(a: Operand) -> Value:
    """The hyperbolic tangent."""
    return call("tanh", a)


def erf(a: Operand) -> Value:
    """The error function."""
    return call("erf", a)


def sigmoid(a: Operand) -> Value:
    """1 / (1 + exp(-a))."""
    return call("sigmoid", a)


def relu(a: Operand) -> Value:
    """0 where 0 > a, else a."""
    return call("relu", a)


def gelu(a: Operand) -> Value:
    """a / 2 * (1 + erf(a / sqrt(2)))."""
    return call("gelu", a)


def silu(a: Operand) -> Value:
    """a * sigmoid(a)."""
    return call("silu", a)


def bit_and(a: Operand, b: Operand) -> Value:
    """Bit by bit, of integers."""
    return call("bit_and", a, b)


def bit_or(a: Operand, b: Operand) -> Value:
    """Bit by bit, of integers."""
    return call("bit_or", a, b)


def bit_xor(a: Operand, b: Operand) -> Value:
    """Bit by bit, of integers."""
    return call("bit_xor", a, b)


def bit_not(a: Operand) -> Value:
    """Each bit of an integer inverted."""
    return call("bit_not", a)


def shift_left(a: Operand, b: Operand) -> Value:
    """By b bits."""
    return call("shift_left", a, b)


def shift_right(a: Operand, b: Operand) -> Value:
    """By b bits; copies of the sign come in."""
    return call("shift_right", a, b)


def shift_right_logical(a: Operand, b: Operand) -> Value:
    """By b bits; zeros come in."""
    return call("shift_right_logical", a, b)


def select(condition: Value, a: Operand, b: Operand) -> Value:
    """a where the condition is true, else b."""
    return call("select", condition, a, b)
