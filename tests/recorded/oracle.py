"""What operations of the language make of integers (docs/language.md), in NumPy: to the bit, at
every width. Arrays have one dimension at least, so that NumPy promotes nothing."""

import numpy as np

INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
FLOATS = ("f32", "f16", "bf16", "f64")
# How arrays hold them: elements of bf16 are their bits.
HELD = {"bool": np.dtype("?"), "bf16": np.dtype("u2"), "f16": np.dtype("f2"), "f32": np.dtype("f4"),
        "f64": np.dtype("f8")}
HELD.update({name: np.dtype(name[0] + str(int(name[1:]) // 8)) for name in INTEGERS})


def bits_of(dtype):
    return HELD[dtype].itemsize * 8


def least(dtype):
    return int(np.iinfo(HELD[dtype]).min)


def greatest(dtype):
    return int(np.iinfo(HELD[dtype]).max)


def is_signed(dtype):
    return dtype[0] == "i"


def unsigned(a):
    """The unsigned numbers of the same bits."""
    return a.astype("u" + str(a.dtype.itemsize))


def divide(a, b):
    by_zero = b == 0
    if a.dtype.kind == "u":
        return np.where(by_zero, 0, a // np.where(by_zero, 1, b)).astype(a.dtype)
    size_a = unsigned(np.where(a < 0, -a, a))
    size_b = unsigned(np.where(b < 0, -b, b))
    quotient = size_a // np.where(by_zero, 1, size_b).astype(size_a.dtype)
    turned = np.where((a < 0) != (b < 0), 0 - quotient, quotient)
    return np.where(by_zero, 0, turned.astype(a.dtype)).astype(a.dtype)


def remainder(a, b):
    return np.where(b == 0, 0, a - b * divide(a, b)).astype(a.dtype)


def shift(a, b, left, logical):
    bits = a.dtype.itemsize * 8
    leaves_some = (b >= 0) & (b < bits)
    places = np.where(leaves_some, b, 0).astype(a.dtype)
    if left:
        return np.where(leaves_some, a << places, 0).astype(a.dtype)
    if logical:
        moved = (unsigned(a) >> unsigned(places)).astype(a.dtype)
        return np.where(leaves_some, moved, 0).astype(a.dtype)
    return np.where(leaves_some, a >> places, np.where(a < 0, -1, 0).astype(a.dtype))


def is_nan(a):
    return a != a


def pick(a, b, chosen):
    """a where it is NaN or chosen, else b."""
    return np.where(is_nan(a) | chosen, a, b)


def select(c, a, b):
    return np.where(c, a, b)


# By name: how it is written, and the kinds of its operands: i integers, n numbers that are no bf16,
# b bools.
ELEMENTWISE = {
    "add": ("$ + $", "ii", lambda a, b: a + b),
    "sub": ("$ - $", "ii", lambda a, b: a - b),
    "mul": ("$ * $", "ii", lambda a, b: a * b),
    "div": ("$ / $", "ii", divide),
    "rem": ("rem($, $)", "ii", remainder),
    "neg": ("neg($)", "n", lambda a: -a),
    "minus": ("-$", "n", lambda a: -a),
    "abs": ("abs($)", "n", lambda a: np.where(a < 0, -a, np.abs(a))),
    "sign": ("sign($)", "i", np.sign),
    "min": ("min($, $)", "nn", lambda a, b: pick(a, b, a < b)),
    "max": ("max($, $)", "nn", lambda a, b: pick(a, b, a > b)),
    "relu": ("relu($)", "i", lambda a: np.where(a < 0, 0, a).astype(a.dtype)),
    "lt": ("$ < $", "nn", lambda a, b: a < b),
    "le": ("$ <= $", "nn", lambda a, b: a <= b),
    "gt": ("$ > $", "nn", lambda a, b: a > b),
    "ge": ("$ >= $", "nn", lambda a, b: a >= b),
    "eq": ("$ == $", "nn", lambda a, b: a == b),
    "ne": ("$ != $", "nn", lambda a, b: a != b),
    "and": ("$ and $", "bb", lambda a, b: a & b),
    "or": ("$ or $", "bb", lambda a, b: a | b),
    "not": ("not $", "b", lambda a: ~a),
    "bit_and": ("bit_and($, $)", "ii", lambda a, b: a & b),
    "bit_or": ("bit_or($, $)", "ii", lambda a, b: a | b),
    "bit_xor": ("bit_xor($, $)", "ii", lambda a, b: a ^ b),
    "bit_not": ("bit_not($)", "i", lambda a: ~a),
    "shift_left": ("shift_left($, $)", "ii", lambda a, b: shift(a, b, True, False)),
    "shift_right": ("shift_right($, $)", "ii", lambda a, b: shift(a, b, False, False)),
    "shift_right_logical": ("shift_right_logical($, $)", "ii",
                            lambda a, b: shift(a, b, False, True)),
}
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def bf16_from(reals):
    """The bits of numbers of f32, rounded to nearest even."""
    bits = reals.astype("f4").view("u4")
    rounded = ((bits.astype("u8") + 0x7fff + (bits >> 16 & 1)) >> 16).astype("u2")
    return np.where(is_nan(reals), 0x7fc0, rounded).astype("u2")


def real(dtype, a):
    """In f64, exactly, but for wide integers."""
    return (a.astype("u4") << 16).view("f4").astype("f8") if dtype == "bf16" else a.astype("f8")


def f32_to_odd(reals):
    """f64 as f32, exact or the neighbour whose last bit is odd: rounding that again, to 16 bits, is
    rounding once."""
    nearest = reals.astype("f4")
    bits = nearest.view("u4").copy()
    exact = (nearest.astype("f8") == reals) | is_nan(reals)
    bits -= (~exact & (np.abs(nearest.astype("f8")) > np.abs(reals))).astype("u4")
    bits |= (~exact).astype("u4")
    return bits.view("f4")


def integers_to_odd(a):
    """Integers as f32: exact, or of 24 bits the last of which says that others were cut off."""
    negative = a < 0
    size = unsigned(np.where(negative, -a, a)).astype("u8")
    cut = np.maximum(np.frexp(size.astype("f8"))[1] - 24, 0).astype("u8")
    kept = size >> cut
    odd = (kept << cut != size).astype("u8")
    reals = np.ldexp((kept | odd).astype("f8"), cut.astype("i4"))
    return np.where(negative, -reals, reals).astype("f4")


def cast(old, new, a):
    if new == "bool":
        return real(old, a) != 0 if old in FLOATS else a != 0
    if old == "bool":
        a, old = a.astype("i4"), "i32"
    if new in INTEGERS and old in INTEGERS:
        low = max(least(old), least(new))
        high = min(greatest(old), greatest(new))
        return np.clip(a, HELD[old].type(low), HELD[old].type(high)).astype(HELD[new])
    if new in INTEGERS:
        reals = np.trunc(real(old, a))
        above = float(greatest(new) + 1)
        fits = (reals < above) & (reals > float(least(new)))
        held = np.where(fits, reals, 0).astype(HELD[new])
        held = np.where(reals >= above, HELD[new].type(greatest(new)), held)
        return np.where(reals <= float(least(new)), HELD[new].type(least(new)), held)
    if old in INTEGERS:
        if new == "bf16":
            return bf16_from(integers_to_odd(a))
        return a.astype("f8").astype("f2") if new == "f16" else a.astype(HELD[new])
    if new == "bf16":
        return bf16_from(f32_to_odd(real(old, a)))
    return real(old, a).astype(HELD[new])


def bit_cast(new, a):
    return np.ascontiguousarray(a).view(HELD[new])


def fold(kind, a, dims, dtype):
    """Folded dimensions keep the extent 1. Folds of nothing are 0, or the end of the type."""
    if kind == "sum":
        return np.sum(a, axis=dims, dtype=a.dtype, keepdims=True)
    if kind == "max":
        return np.max(a, axis=dims, keepdims=True, initial=least(dtype))
    return np.min(a, axis=dims, keepdims=True, initial=greatest(dtype))


def argmax(a, dim, dtype):
    """The index of the greatest element; the greatest integer if there are no elements."""
    extents = tuple(1 if d == dim else n for d, n in enumerate(a.shape))
    if a.size == 0:
        return np.full(extents, greatest(dtype), HELD[dtype])
    return np.argmax(a, axis=dim, keepdims=True).astype(HELD[dtype])


def reduce_ranks(kind, parts):
    result = parts[0]
    for part in parts[1:]:
        result = {"sum": np.add, "max": np.maximum, "min": np.minimum}[kind](result, part)
    return result


def gather(table, indices, dim):
    extent = table.shape[dim]
    inside = (indices >= 0) & (indices < extent)
    if extent == 0:
        shape = table.shape[:dim] + indices.shape + table.shape[dim + 1:]
        return np.zeros(shape, table.dtype)
    rows = np.take(table, np.where(inside, indices, 0), axis=dim)
    known = inside.reshape((1,) * dim + inside.shape + (1,) * (table.ndim - dim - 1))
    return np.where(known, rows, np.zeros((), table.dtype))


def part_bounds(extent, ranks):
    """Where the ranks' parts of a sliced extent begin, and the end."""
    per = -(-extent // ranks)
    multiple = 1
    while multiple < 64 and multiple * 2 * 16 <= per:
        multiple *= 2
    per = -(-per // multiple) * multiple
    return [min(rank * per, extent) for rank in range(ranks + 1)]
