"""Arrays of numbers that are known to lie in intervals.

A program's value is computed in NumPy's float64 from the mathematics, together with what a correct
implementation may differ by. That follows from the type and the number of roundings alone, as in
N. Higham, Accuracy and Stability of Numerical Algorithms, chapters 2 and 3:

- An operation of a type with unit roundoff u, that rounds k times, moves a result by at most k*u of
  its magnitude, and by k of the smallest subnormal. + - * / sqrt round once; a library function
  that is good to n units in the last place counts as 2n roundings. f16 and bf16 are computed in
  f32, and each result may be stored: k roundings of f32, and one of its own.
- A sum of n numbers in any order moves by at most (n - 1)*u of the sum of magnitudes, u being that
  of the type in which the sum is accumulated.
- What the operands of an operation may be off by is carried through: the function is evaluated at
  the ends of their intervals.

An interval without width is exact: so are infinities, and NaN (both ends are NaN). Where an end
lies beyond the greatest number of the type, it becomes infinite: whether such an element overflows
is decided by its rounding. [-inf, inf] is what may be anything, NaN included.
"""

import math

import numpy as np


class Type:
    """A floating-point type."""

    def __init__(self, name, digits, least, most):
        self.name = name
        self.roundoff = 2.0**-digits  # of one rounding, to nearest
        self.least = 2.0**least  # the smallest subnormal
        self.most = most  # the greatest finite number
        self.narrow = name in ("f16", "bf16")

    def errors(self, roundings):
        """What so many roundings move a result by: relative to it, and absolute."""
        own = 2.0**-53 * roundings  # of the float64 in which this module computes
        if not self.narrow:
            return roundings * self.roundoff + own, roundings * self.least
        relative, absolute = F32.errors(roundings)
        return relative + self.roundoff, absolute + self.least


F32 = Type("f32", 24, -149, float(np.finfo(np.float32).max))
F16 = Type("f16", 11, -24, 65504.0)
BF16 = Type("bf16", 8, -133, float.fromhex("0x1.fep127"))
F8E4M3 = Type("f8e4m3", 4, -9, 448.0)
F8E5M2 = Type("f8e5m2", 3, -16, 57344.0)
F64 = Type("f64", 53, -1074, float(np.finfo(np.float64).max))
TYPES = {t.name: t for t in (F32, F16, BF16, F8E4M3, F8E5M2, F64)}


def bf16_nearest(x):
    """float64 values rounded to bf16, to nearest even."""
    mantissa, exponent = np.frexp(x)
    with np.errstate(all="ignore"):
        quantum = np.ldexp(1.0, np.maximum(exponent - 8, -133))  # of 8 digits
        near = np.where(np.isfinite(x), np.rint(x / quantum) * quantum, x)
    return np.where(np.abs(near) > BF16.most, np.copysign(np.inf, near), near)


def nearest(type_, x):
    """float64 values rounded to a type, to nearest even."""
    if type_ is BF16:
        return bf16_nearest(x)
    storage = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[type_.name]
    with np.errstate(all="ignore"):
        return np.asarray(x, np.float64).astype(storage).astype(np.float64)


class Truth:
    """Booleans of which some are undecided: can be true, can be false, or both."""

    def __init__(self, can_be_true, can_be_false):
        self.can_be_true, self.can_be_false = np.broadcast_arrays(can_be_true, can_be_false)


class Interval:
    """An array of intervals, [low, high] each, of values of a type."""

    __array_ufunc__ = None  # NumPy's operators leave an operand of this class to its own

    def __init__(self, type_, low, high=None):
        self.type = type_
        self.low = np.asarray(low, np.float64)
        self.high = self.low if high is None else np.asarray(high, np.float64)

    @property
    def unknown(self):
        return np.isneginf(self.low) & np.isposinf(self.high)

    @property
    def shape(self):
        return self.low.shape

    def map_ends(self, f):
        """Moves elements: f takes one array to another."""
        return Interval(self.type, f(self.low), f(self.high))

    def __getitem__(self, index):
        return self.map_ends(lambda x: x[index])

    def exact(self, f, other):
        """A function of two whose results need no rounding, of numbers that are known exactly."""
        with np.errstate(all="ignore"):
            return Interval(self.type, f(self.low, other.low))

    def swap(self, a, b):
        return self.map_ends(lambda x: np.swapaxes(x, a, b))

    @staticmethod
    def stack(intervals):
        low, high = np.stack([x.low for x in intervals]), np.stack([x.high for x in intervals])
        return Interval(intervals[0].type, low, high)

    @staticmethod
    def join(intervals, axis):
        low, high = (np.concatenate(x, axis) for x in zip(*((x.low, x.high) for x in intervals)))
        return Interval(intervals[0].type, low, high)

    def of(self, other):
        """Another operand as an interval of this type."""
        if isinstance(other, Interval):
            assert other.type is self.type, (other.type.name, self.type.name)
            return other
        return Interval(self.type, nearest(self.type, np.asarray(other, np.float64)))

    def __add__(self, other):
        return rounded(self.type, *ends(np.add, self, self.of(other)))

    def __sub__(self, other):
        return rounded(self.type, *ends(np.subtract, self, self.of(other)))

    def __mul__(self, other):
        if other is self:  # the ends move together
            return square(self)
        return rounded(self.type, *ends(np.multiply, self, self.of(other)))

    def __truediv__(self, other):
        other = self.of(other)
        low, high = ends(np.divide, self, other)
        through_zero = (other.low <= 0) & (other.high >= 0) & (other.low != other.high)
        return rounded(self.type, *forget(through_zero & ~np.isnan(low), low, high))

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other):
        return self.of(other) - self

    def __rtruediv__(self, other):
        return self.of(other) / self

    def __neg__(self):
        return Interval(self.type, -self.high, -self.low)

    def __lt__(self, other):
        other = self.of(other)
        return Truth(self.low < other.high, ~(self.high < other.low))

    def __le__(self, other):
        other = self.of(other)
        return Truth(self.low <= other.high, ~(self.high <= other.low))

    def __gt__(self, other):
        return self.of(other) < self

    def __ge__(self, other):
        return self.of(other) <= self

    def equals(self, other):
        other = self.of(other)
        overlap = (self.low <= other.high) & (other.low <= self.high)
        same = (self.low == self.high) & (other.low == other.high) & (self.low == other.low)
        return Truth(overlap, ~same)

    def sum(self, axis, parts=1, keepdims=False):
        """A fold over elements, accumulated in float64; each of `parts` ranks may sum a part of its
        own, which it rounds to the type (to f32, of a narrower one) before these are added."""
        return self.fold(axis, parts, keepdims, 1)

    def mean(self, axis, parts=1, keepdims=False):
        """The same, divided before it is rounded to the type."""
        return self.fold(axis, parts, keepdims, self.count(axis))

    def count(self, axis):
        return math.prod(self.shape[a] for a in np.atleast_1d(axis))

    def fold(self, axis, parts, keepdims, divisor):
        roundoff = min(F32.roundoff, self.type.roundoff)
        relative = 2 * self.count(axis) * F64.roundoff + (parts * roundoff if parts > 1 else 0)
        may_overflow = parts > 1 or self.type is F64  # else float64 holds what is added up
        return self.total(axis, relative, may_overflow, keepdims, divisor=divisor)

    def sum_over_ranks(self):
        """The sum over axis 0, in any order, in the type (in f32 if that is narrower)."""
        roundoff = min(F32.roundoff, self.type.roundoff)
        return self.total(0, (self.shape[0] - 1) * (roundoff + F64.roundoff), True)

    def total(self, axis, relative, may_overflow, keepdims=False, absolute=0.0, divisor=1):
        """A sum whose additions are off by `relative` of the sum of magnitudes, and by `absolute`.
        `may_overflow`: so may what is added up, before the rest or the divisor brings it back."""
        fold = dict(axis=tuple(np.atleast_1d(axis)), keepdims=keepdims)
        most = F32.most if self.type.narrow else self.type.most

        def finite_sum(x):
            return np.where(np.isfinite(x), x, 0).sum(**fold) * (1 + relative) + absolute

        with np.errstate(all="ignore"):
            low, high = settle(self.low.sum(**fold), self.high.sum(**fold))
            unknown = self.unknown.any(**fold)
            up, down = finite_sum(np.maximum(self.high, 0)), finite_sum(np.maximum(-self.low, 0))
            off = finite_sum(np.maximum(np.abs(self.low), np.abs(self.high))) * relative + absolute
            low = np.where(np.isfinite(low), low - off, low)
            high = np.where(np.isfinite(high), high + off, high)
            if may_overflow:
                low, high = np.where(down < most, low, np.minimum(low, -np.inf)), np.where(
                    up < most, high, np.maximum(high, np.inf)
                )
        low, high = forget(unknown & ~np.isnan(low), low, high)
        return rounded(self.type, low / divisor, high / divisor, 1 if np.all(divisor == 1) else 2)

    def max(self, axis, keepdims=False):
        fold = dict(axis=axis, keepdims=keepdims)
        low, high = np.max(self.low, **fold), np.max(self.high, **fold)
        return Interval(self.type, *forget(self.unknown.any(**fold) & ~np.isnan(low), low, high))

    def min(self, axis, keepdims=False):
        return -((-self).max(axis, keepdims))


def forget(where, low, high):
    """[-inf, inf] there."""
    return np.where(where, -np.inf, low), np.where(where, np.inf, high)


def settle(low, high):
    """What is NaN at some ends only may be anything."""
    return forget(np.isnan(low) != np.isnan(high), low, high)


def ends(f, *operands):
    """The least and the greatest value of f at the ends of its operands."""
    with np.errstate(all="ignore"):
        values = [f(*at) for at in _corners([(x.low, x.high) for x in operands])]
    values = np.stack(np.broadcast_arrays(*values))
    is_nan = np.isnan(values)
    low, high = np.fmin.reduce(values), np.fmax.reduce(values)
    surely_nan = False
    unknown = is_nan.any(0) & ~is_nan.all(0)
    for x in operands:
        surely_nan = surely_nan | np.isnan(x.low)
        unknown = unknown | x.unknown
    return forget(unknown & ~surely_nan, low, high)


def _corners(pairs):
    if not pairs:
        return [()]
    return [(end, *rest) for end in pairs[0] for rest in _corners(pairs[1:])]


def rounded(type_, low, high, roundings=1, magnitude=None):
    """What an operation gives whose exact result lies in [low, high]; its roundings are relative to
    the result, or to `magnitude`."""
    relative, absolute = type_.errors(roundings)
    with np.errstate(all="ignore"):
        down = relative * (np.abs(low) if magnitude is None else magnitude) + absolute
        up = relative * (np.abs(high) if magnitude is None else magnitude) + absolute
        least = np.where(np.isfinite(low), low - down, low)
        most = np.where(np.isfinite(high), high + up, high)
    if magnitude is None:  # rounding keeps the sign, and 0
        least = np.where((low >= 0) & (least < 0), np.copysign(0.0, low), least)
        most = np.where((high <= 0) & (most > 0), np.copysign(0.0, high), most)
    # A result of a narrow type may be kept in f32 by what uses it next.
    kept = F32 if type_.narrow else type_
    least = np.where(least > kept.most, np.inf, np.where(least < -type_.most, -np.inf, least))
    most = np.where(most < -kept.most, -np.inf, np.where(most > type_.most, np.inf, most))
    return Interval(type_, least, most)


def square(x):
    low, high = ends(lambda a: a * a, x)
    through_zero = (x.low < 0) & (x.high > 0) & ~x.unknown
    return rounded(x.type, np.where(through_zero, 0, low), high)


def constant(type_, value):
    return Interval(type_, nearest(type_, value))


def rising(f, roundings):
    """An elementwise function that nowhere falls."""

    def apply(x):
        return rounded(x.type, *ends(f, x), roundings)

    return apply


def absolute(x):
    low, high = ends(np.abs, x)
    through_zero = (x.low < 0) & (x.high > 0) & ~x.unknown
    return Interval(x.type, np.where(through_zero, 0, low), high)


def maximum(x, y):
    return Interval(x.type, *ends(np.maximum, x, x.of(y)))


def minimum(x, y):
    return Interval(x.type, *ends(np.minimum, x, x.of(y)))


def below_greatest(x, axis):
    """x - max(x): never above 0, and 0 where x is greatest, however wide the intervals are."""
    below = x - x.max(axis, keepdims=True)
    first, second = (np.sort(x.high, axis).take([-1 - k], axis) for k in (0, 1))
    greatest = np.isfinite(x.low) & (x.low >= np.where(x.high == first, second, first))
    low, high = np.where(greatest, 0, below.low), np.where(greatest, 0, np.minimum(below.high, 0))
    known = ~below.unknown
    return Interval(x.type, np.where(known, low, below.low), np.where(known, high, below.high))


def logistic(x):
    return np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x)))


# The errors that the f32 libraries of CUDA and glibc state, or greater: exp and log 2 units in the
# last place, tanh 4, pow 8. The others are made of these, of erf (2), and of arithmetic.
sqrt = rising(np.sqrt, 1)
exp = rising(np.exp, 4)
log = rising(np.log, 4)
log1p = rising(np.log1p, 4)
expm1 = rising(np.expm1, 4)
tanh = rising(np.tanh, 8)
sigmoid = rising(logistic, 8)


def of_exact(f, x):
    """A function that rises and falls, of numbers that are known exactly."""
    with np.errstate(all="ignore"):
        value = f(x.low)
    return rounded(x.type, value, value, 4)


def power(x, y):
    return rounded(x.type, *ends(np.power, x, x.of(y)), 16)


def rsqrt(x):
    low, high = ends(lambda a: 1 / np.sqrt(a), x)
    through_zero = (x.low <= 0) & (x.high >= 0) & (x.low != x.high)
    return rounded(x.type, *forget(through_zero, low, high), 4)


def with_valley(f, lowest_at):
    """An elementwise function that falls up to a point and rises from it on. It is a product by a
    difference of numbers near 1: its roundings are relative to its argument."""

    def apply(x):
        low, high = ends(f, x)
        low = np.where((x.low < lowest_at) & (x.high > lowest_at) & ~x.unknown, f(lowest_at), low)
        with np.errstate(all="ignore"):
            argument = np.maximum(np.abs(x.low), np.abs(x.high))
        return rounded(x.type, low, high, 8, np.where(np.isfinite(argument), argument, 0))

    return apply


_erf = np.vectorize(math.erf, otypes=[np.float64])
erf = rising(_erf, 4)
gelu = with_valley(lambda x: x / 2 * (1 + _erf(x / math.sqrt(2))), np.float64(-0.7517915246935645))
silu = with_valley(lambda x: x * logistic(x), np.float64(-1.2784645427610738))


def select(condition, x, y):
    y = x.of(y)
    if not isinstance(condition, Truth):
        condition = Truth(condition, ~np.asarray(condition))
    both = condition.can_be_true & condition.can_be_false
    low = np.where(condition.can_be_true, x.low, y.low)
    high = np.where(condition.can_be_true, x.high, y.high)
    low = np.where(both, np.minimum(x.low, y.low), low)
    high = np.where(both, np.maximum(x.high, y.high), high)
    maybe_nan = both & (np.isnan(x.low) != np.isnan(y.low))
    unknown = both & (x.unknown | y.unknown)
    return Interval(x.type, *forget(maybe_nan | unknown, low, high))


def cast(type_, x):
    """To another float type, to nearest even."""
    return Interval(type_, nearest(type_, x.low), nearest(type_, x.high))


def or_zero(x, least):
    """The same, or 0 where that is nearer to 0 than `least`."""
    low = np.where(np.abs(x.low) < least, np.minimum(x.low, 0), x.low)
    high = np.where(np.abs(x.high) < least, np.maximum(x.high, 0), x.high)
    return Interval(x.type, low, high)


def summed_in_f32(terms, axis, most, parts=1, divisor=1):
    """Sums of at most so many terms that are not 0, in f32 in any order, with or without a rounding
    of each; they may lie in parts, whose sums are rounded and added. What they are divided by, an
    array that fits the sums, may divide each part before these are added."""
    relative = (most + 2 * parts) * (F32.roundoff + F64.roundoff)
    absolute = (most + parts * divisor) * F32.least
    return terms.total(axis, relative, True, absolute=absolute, divisor=divisor)


def added_rows(updates, index, rows, weight=None, parts=1):
    """Updates summed by index, in f32 in any order, with or without a rounding of each product by a
    weight; the updates may lie in parts, whose sums are rounded and added. `updates` and `index`
    have their dimensions in common merged to one."""
    hit = index == np.arange(rows)[:, None]
    terms = Interval(F32, updates.low, updates.high)
    if weight is not None:
        terms = Interval(F32, *ends(np.multiply, terms, weight))
    zero = constant(F32, 0)
    terms = select(hit.reshape(hit.shape + (1,) * (len(terms.shape) - 1)), terms[None], zero)
    return summed_in_f32(terms, 1, int(hit.sum(1).max(initial=0)), parts)


def scaled(x, scales):
    """Elements of 8-bit floats times the f32 scales of their blocks, in f32."""
    for axis, (extent, count) in enumerate(zip(x.shape, scales.shape)):
        scales = scales.map_ends(lambda s, a=axis, n=extent // count: np.repeat(s, n, a))
    return rounded(F32, *ends(np.multiply, x, scales))


def matmul(x, y, parts=1):
    """Products of the last two dimensions, summed in f32 in any order, with or without a rounding
    of each product; the summed dimension may be cut in parts, whose sums are rounded and added. Of
    bf16, numbers below the normal ones may be taken as 0, as processors' instructions do."""
    least = F32.least
    if x.type is BF16:
        least = 2.0**-126
        x, y = or_zero(x, least), or_zero(y, least)
    columns = Interval(F32, x.low[..., :, :, None], x.high[..., :, :, None])
    rows = Interval(F32, y.low[..., None, :, :], y.high[..., None, :, :])
    products = Interval(F32, *ends(np.multiply, columns, rows))
    count = x.shape[-1]
    relative = (count + parts - 1) * (F32.roundoff + F64.roundoff)
    product = products.total(-2, relative, True, absolute=count * least)
    return product if x.type is F32 else rounded(x.type, product.low, product.high, 0)
