"""The operations of the language as functions, for programs written in Python.

Operands are values of one program (`coconet.Value`) or numbers; layouts and rules are in
docs/language.md, which `coconet.call` reaches as well. An axis is a number, or a symbol that one
dimension has.
"""

from __future__ import annotations

from typing import Any, Optional, Sequence, Union

from coconet import _elementwise
from coconet._dlpack import dtype_name
from coconet._elementwise import *
from coconet.program import Extent, Operand, Value, call

__all__ = [
    "const", "world_as", "rank", "count", "extent", "iota", "cast", "bit_cast", "round_stochastic",
    "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "all_to_all", "shard",
    "send", "sum", "mean", "amax", "amin", "argmax", "total", "norm", "softmax", "layer_norm",
    "rms_norm", "cross_entropy", "dropout", "matmul", "grad", "stop_gradient", "transpose",
    "reshape", "expand", "reverse", "slice", "concat", "keep_rows", "gather", "embedding_bag",
    "scatter_add", "opaque"
]
__all__ += _elementwise.__all__

Axis = Union[int, str]


def _call(name: str, *arguments: Any) -> Value:
    """Without the arguments that are None."""
    return call(name, *(argument for argument in arguments if argument is not None))


# Numbers that a program knows.


def const(value: Union[int, float, str], dtype: Any) -> Value:
    """A number of that dtype; "inf" and "-inf" are infinite."""
    return call("const", value, dtype_name(dtype))


def world_as(dtype: Any) -> Value:
    """The number of ranks of a stage, as a scalar of that dtype."""
    return call("world", dtype_name(dtype))


def rank(dtype: Any) -> Value:
    """This rank's number in its stage, from 0: a local scalar."""
    return call("rank", dtype_name(dtype))


def count(dtype: Any, shape: Sequence[Extent]) -> Value:
    """The number of elements of a tensor of that shape."""
    return call("count", dtype_name(dtype), list(shape))


def extent(dtype: Any, x: Value, axis: Axis) -> Value:
    """The extent of a dimension of the global tensor."""
    return call("extent", dtype_name(dtype), x, axis)


def iota(dtype: Any, x: Value, axis: int) -> Value:
    """Each element's index along a dimension of the global tensor; "i32" or "i64"."""
    return call("iota", dtype_name(dtype), x, axis)


# Dtypes.


def cast(dtype: Any, x: Value) -> Value:
    """x in another dtype: floats rounded to nearest even, integers truncated and saturated."""
    return call("cast", dtype_name(dtype), x)


def bit_cast(dtype: Any, x: Value) -> Value:
    """The number that x's bits are in a dtype of as many bits."""
    return call("bit_cast", dtype_name(dtype), x)


def round_stochastic(x: Value, seed: Value, stream: Optional[int] = None) -> Value:
    """bf16 of f32: one of the two numbers around x, at random, so that the mean is x."""
    return _call("round_stochastic", x, seed, stream)


# Communication over the ranks. `span`: "node" or "across"; None: all ranks.


def all_reduce(kind: str, x: Value, span: Optional[str] = None) -> Value:
    """x reduced over the ranks by "sum", "max" or "min": local -> replicated."""
    return _call("all_reduce", kind, x, span)


def reduce_scatter(kind: str, x: Value, dim: Union[int, str], span: Optional[str] = None) -> Value:
    """This rank's part of the reduction: local -> sliced(dim), flat, or "owned(by L)"."""
    return _call("reduce_scatter", kind, x, dim, span)


def all_gather(x: Value, span: Optional[str] = None) -> Value:
    """The parts of all ranks: sliced, owned -> replicated."""
    return _call("all_gather", x, span)


def broadcast(x: Value, root: int) -> Value:
    """The root's values: local -> replicated."""
    return call("broadcast", x, root)


def reduce(kind: str, x: Value, root: int) -> Value:
    """The reduction on the root, zeros on the other ranks."""
    return call("reduce", kind, x, root)


def all_to_all(x: Value, dim: Union[int, str], counts: Optional[Value] = None) -> Value:
    """The same tensor, sliced over another dimension, or owned; with counts, rows in use only."""
    return call("all_to_all", x, dim) if counts is None else call("all_to_all", x, counts, dim)


def shard(x: Value, dim: Union[int, str]) -> Value:
    """This rank's own part; nothing moves: replicated -> sliced, owned."""
    return call("shard", x, dim)


def send(x: Value, direction: str) -> Value:
    """x of the pipeline stage before ("next") or after ("previous"); zeros where there is none."""
    return call("send", x, direction)


# Folds.


def sum(x: Value, *axes: Axis) -> Value:
    """Over the dimensions named, which keep extent 1; over all without: a scalar."""
    return call("sum", x, *axes)


def mean(x: Value, *axes: Axis) -> Value:
    """As `sum`, over the number of elements."""
    return call("mean", x, *axes)


def amax(x: Value, *axes: Axis) -> Value:
    """The greatest, as `sum`."""
    return call("amax", x, *axes)


def amin(x: Value, *axes: Axis) -> Value:
    """The least, as `sum`."""
    return call("amin", x, *axes)


def argmax(dtype: Any, x: Value, axis: Axis) -> Value:
    """The index of the greatest element along a dimension; "i32" or "i64"."""
    return call("argmax", dtype_name(dtype), x, axis)


def total(x: Value, kind: str = "sum") -> Value:
    """Over the tensors of a list: one scalar of one scalar per tensor; "sum", "max" or "min"."""
    return call("total", kind, x)


def norm(x: Value) -> Value:
    """sqrt(sum(x * x)) of all elements."""
    return call("norm", x)


# Layers and losses.


def softmax(x: Value) -> Value:
    """Over the last dimension."""
    return call("softmax", x)


def layer_norm(x: Value, eps: Operand) -> Value:
    """(x - mean) / sqrt(var + eps) over the last dimension."""
    return call("layer_norm", x, eps)


def rms_norm(x: Value, eps: Operand) -> Value:
    """x / sqrt(mean(x * x) + eps) over the last dimension."""
    return call("rms_norm", x, eps)


def cross_entropy(x: Value, targets: Value) -> Value:
    """-log softmax(x)[target] of x [..., V] and i32 targets [...]: [..., 1]."""
    return call("cross_entropy", x, targets)


def dropout(x: Value, seed: Value, rate: float, stream: Optional[int] = None) -> Value:
    """x / (1 - rate), or 0 for elements drawn with that rate; the seed is an i64 scalar."""
    return _call("dropout", x, seed, rate, stream)


def matmul(a: Value, b: Value, scale_a: Optional[Value] = None, scale_b: Optional[Value] = None, *,
           transpose_a: bool = False, transpose_b: bool = False) -> Value:
    """Products of the last two dimensions, summed in f32; dimensions before them broadcast.

    8-bit floats may have f32 scales, by which they are multiplied: each extent of a scale divides
    that of its operand before transposing, and the quotient is the extent of a block that shares
    one.
    """
    return _call("matmul", a, b, scale_a, scale_b, "transpose_a" if transpose_a else None,
                 "transpose_b" if transpose_b else None)


# Gradients.


def grad(loss: Value, x: Value) -> Value:
    """The gradient of a scalar with respect to x, in x's type."""
    return call("grad", loss, x)


def stop_gradient(x: Value) -> Value:
    """x, a constant for gradients."""
    return call("stop_gradient", x)


# Shapes.


def transpose(x: Value, *axes: Axis) -> Value:
    """Dimension k of the result is the k-th named."""
    return call("transpose", x, *axes)


def reshape(x: Value, shape: Sequence[Extent]) -> Value:
    """The same elements in row-major order."""
    return call("reshape", x, list(shape))


def expand(x: Value, shape: Sequence[Extent]) -> Value:
    """x repeated along extents of 1, and along dimensions that it lacks in front."""
    return call("expand", x, list(shape))


def reverse(x: Value, *axes: Axis) -> Value:
    """The elements along the dimensions from the last to the first."""
    return call("reverse", x, *axes)


def slice(x: Value, dim: int, begin: int, end: int) -> Value:
    """A range of one dimension."""
    return call("slice", x, dim, begin, end)


def concat(parts: Sequence[Value], dim: int) -> Value:
    """Tensors joined along a dimension."""
    return call("concat", *parts, dim)


def keep_rows(x: Value, counts: Value) -> Value:
    """x with zeros in the rows of the next dimension from the count on."""
    return call("keep_rows", x, counts)


# Look-ups.


def gather(table: Value, indices: Value, dim: int) -> Value:
    """Rows of a table by i32 index; zeros for an index out of range."""
    return call("gather", table, indices, dim)


def embedding_bag(table: Value, indices: Value, kind: str, offsets: Optional[Value] = None,
                  weights: Optional[Value] = None) -> Value:
    """Sums or means ("sum", "mean") of rows by index, in f32. Ragged bags have i32 offsets."""
    return _call("embedding_bag", table, indices, offsets, weights, kind)


def scatter_add(updates: Value, indices: Value, shape: Sequence[Extent],
                weights: Optional[Value] = None) -> Value:
    """Sums of updates by index, in f32."""
    return _call("scatter_add", updates, indices, weights, list(shape))


def opaque(name: str, dtype: Any, shape: Sequence[Extent], operations: float, sent_bytes: float,
           *operands: Value) -> Value:
    """An operation of which only the costs are known: it can be planned, not run."""
    return call("opaque", name, dtype_name(dtype), list(shape), operations, sent_bytes, *operands)
