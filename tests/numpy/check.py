"""Compares what a recording of programs found with what NumPy finds.

    check.py LIST DATA

tests/oracles/numpy_recording.h says what the files hold. Prints what was compared; ends with 1 where
something differs. Replicas must be equal to the bit, what is finite must lie in the interval that
intervals.py computes, and infinities and NaN must be where NumPy has them. Elements are undecided
where that interval reaches beyond the greatest number of their type; they may be infinite, too.
"""

import json
import math
import sys

try:
    import numpy as np
except ImportError:
    sys.exit("check.py: python3-numpy is missing: run ./setup.sh")

import programs
from intervals import TYPES, Interval, Truth
from slices import part_of

STORAGE = {
    "f32": "<f4", "f16": "<f2", "bf16": "<u2", "f64": "<f8",
    "i8": "i1", "i16": "<i2", "i32": "<i4", "i64": "<i8", "u8": "u1", "u16": "<u2", "u32": "<u4",
    "u64": "<u8", "bool": "?", "f8e4m3": "u1", "f8e5m2": "u1",
}  # fmt: skip
SHOWN = 5  # differences


class Differs(Exception):
    pass


class Tally:
    def __init__(self):
        self.schedules = set()
        self.steps = self.elements = self.nan = self.infinite = self.exact = self.undecided = 0
        self.tolerances = []  # of finite elements, relative to them

    def line(self):
        tolerances = np.concatenate([np.zeros(1), *self.tolerances])
        half, most = np.quantile(tolerances, (0.5, 0.99))
        return (
            f"{len(self.schedules)} schedules, {self.steps} steps, {self.elements} elements: "
            f"{self.nan} NaN, {self.infinite} infinite, {self.exact} exact, "
            f"{self.undecided} undecided; "
            f"tolerances of the others: half below {half:.1e}, 99 % below {most:.1e}"
        )


def float8(bits, digits, bias):
    """The numbers that bits of 8-bit floats stand for, with so many digits behind the point."""
    exponent = (bits.astype(np.int64) & 0x7F) >> digits
    fraction = (bits & ((1 << digits) - 1)) / (1 << digits)
    number = np.where(exponent > 0, 1 + fraction, fraction) * 2.0 ** (np.maximum(exponent, 1) - bias)
    if digits == 3:
        number = np.where(bits & 0x7F == 0x7F, np.nan, number)
    else:
        number = np.where(exponent == 31, np.where(fraction > 0, np.nan, np.inf), number)
    return np.where(bits & 0x80, -number, number)


def loaded(data, at, dtype, count):
    raw = np.frombuffer(data, STORAGE[dtype], count, at)
    if dtype == "f8e4m3":
        return float8(raw, 3, 7)
    if dtype == "f8e5m2":
        return float8(raw, 2, 15)
    return (raw.astype(np.uint32) << 16).view(np.float32) if dtype == "bf16" else raw


def given(data, tensor, ranks):
    """A tensor: an interval of a float type, else an array."""
    shape = ([ranks] if tensor["layout"] == "local" else []) + tensor["shape"]
    array = loaded(data, tensor["at"], tensor["dtype"], math.prod(shape)).reshape(shape)
    return as_operand(array, tensor["dtype"])


def as_operand(array, dtype):
    return Interval(TYPES[dtype], array) if dtype in TYPES else array


def indices_of(tensor, ranks, rank):
    """The elements that a rank holds, in its order, as indices of the whole tensor."""
    layout, shape = tensor["layout"], tensor["shape"]
    whole = np.arange(math.prod(shape)).reshape(shape)
    if not layout.startswith("sliced"):
        return whole.reshape(-1)
    dim = layout[len("sliced(") : -1]
    if dim == "flat":
        whole, dim = whole.reshape(-1), 0
    begin, end = part_of(whole.shape[int(dim)], ranks, rank)
    return whole.take(range(begin, end), int(dim)).reshape(-1)


class Step:
    """What one step of a variant left on all ranks."""

    def __init__(self, row, data):
        self.row = row
        self.ranks = row["ranks"]
        at = list(row["read"])
        self.parts = {}  # by name and rank: indices and values
        for tensor in row["found"]:
            for rank in range(self.ranks):
                indices = indices_of(tensor, self.ranks, rank)
                values = loaded(data, at[rank], tensor["dtype"], len(indices))
                at[rank] += len(indices) * np.dtype(STORAGE[tensor["dtype"]]).itemsize
                self.parts[tensor["name"], rank] = indices, values

    def whole(self, tensor):
        """A tensor of all ranks, as an operand of the next step."""
        name, shape = tensor["name"], tensor["shape"]
        if tensor["layout"] == "local":
            ranks = [self.parts[name, r][1] for r in range(self.ranks)]
            return as_operand(np.stack(ranks).reshape([self.ranks] + shape), tensor["dtype"])
        array = np.zeros(math.prod(shape), self.parts[name, 0][1].dtype)
        for r in range(self.ranks):
            indices, values = self.parts[name, r]
            array[indices] = values
        return as_operand(array.reshape(shape), tensor["dtype"])

    def where(self, name, rank, index):
        row = self.row
        return (
            f'{row["case"]}: "{name}"[{index}] on rank {rank} of {self.ranks}, step {row["step"]}, '
            f'data {row["data"]}, schedule: {row["schedule"]}'
        )

    def reproducer(self):
        row = self.row
        return (
            f'trace: {row["trace"]}\nconfig: {row["config"]}\nCOCONET_SEED={row["seed"]}\n'
            f'{row["program"]}'
        )

    def differs(self, name, rank, index, expected, found):
        where = self.where(name, rank, index)
        raise Differs(f"{where}\nexpected {expected}, found {found}\n{self.reproducer()}")

    def check_replicas(self, tensor):
        """The same bits on all ranks; NaNs may have any."""
        if tensor["layout"] == "local" or tensor["layout"].startswith("sliced"):
            return
        name = tensor["name"]
        first = self.parts[name, 0][1]
        for rank in range(1, self.ranks):
            mine = self.parts[name, rank][1]
            same = mine == first
            if first.dtype.kind == "f":
                same &= np.signbit(mine) == np.signbit(first)
                same |= np.isnan(mine) & np.isnan(first)
            for index in np.flatnonzero(~same)[:1]:
                self.differs(name, rank, index, f"{first[index]!r} as on rank 0", repr(mine[index]))

    def compare(self, tensor, expected, tally):
        self.check_replicas(tensor)
        name = tensor["name"]
        for rank in range(self.ranks):
            indices, values = self.parts[name, rank]
            mine = take(expected, rank if tensor["layout"] == "local" else None, indices)
            tally.elements += len(indices)
            if isinstance(mine, Interval):
                self.compare_floats(name, rank, indices, mine, values.astype(np.float64), tally)
                continue
            if isinstance(mine, Truth):
                fits = np.where(values, mine.can_be_true, mine.can_be_false)
                mine = mine.can_be_true
            else:
                fits = mine == values
                tally.exact += len(indices)
            for i in np.flatnonzero(~fits)[:1]:
                self.differs(name, rank, indices[i], mine[i], values[i])

    def compare_floats(self, name, rank, indices, mine, values, tally):
        low, high = mine.low, mine.high
        # What is stored in a narrow type overflows there.
        low = np.where(low > mine.type.most, np.inf, low)
        high = np.where(high < -mine.type.most, -np.inf, high)
        is_nan = np.isnan(low)
        fits = (low <= values) & (values <= high) | (is_nan & np.isnan(values)) | mine.unknown
        for i in np.flatnonzero(~fits)[:1]:
            exact = is_nan[i] or low[i] == high[i]
            want = repr(low[i]) if exact else f"{low[i]!r} to {high[i]!r}"
            self.differs(name, rank, indices[i], want, repr(values[i]))
        point = low == high
        finite = np.isfinite(low) & np.isfinite(high)
        tally.nan += int(is_nan.sum())
        tally.infinite += int((point & ~finite).sum())
        tally.exact += int((point & finite).sum())
        tally.undecided += int((~point & ~finite & ~is_nan).sum())
        some = finite & ~point
        width = (high[some] - low[some]) / 2
        tally.tolerances.append(width / np.maximum(np.abs(low[some]), np.abs(high[some])))


def take(expected, rank, indices):
    """The expected values of a rank's elements."""
    def chosen(array):
        return (array if rank is None else array[rank]).reshape(-1)[indices]

    if isinstance(expected, Interval):
        return expected.map_ends(chosen)
    if isinstance(expected, Truth):
        return Truth(chosen(expected.can_be_true), chosen(expected.can_be_false))
    return chosen(np.asarray(expected))


def main(list_path, data_path):
    with open(list_path) as text, open(data_path, "rb") as file:
        rows, data = json.load(text), file.read()
    tally, differences = Tally(), []
    before = None
    for row in rows:
        step, ranks = Step(row, data), row["ranks"]
        tensors = {t["name"]: given(data, t, ranks) for t in row["given"]}
        if row["step"] > 0:
            tensors.update({t["name"]: before.whole(t) for t in before.row["found"]})
        before = step
        expected = getattr(programs, row["case"])(tensors, ranks)
        for tensor in row["found"]:
            # A state that no update names stays.
            want = expected.get(tensor["name"], tensors.get(tensor["name"]))
            try:
                step.compare(tensor, want, tally)
            except Differs as difference:
                differences.append(str(difference))
        tally.steps += 1
        tally.schedules.add((ranks, row["schedule"], row["trace"], row["config"]))
    print(tally.line())
    for difference in differences[:SHOWN]:
        print(difference)
    if differences:
        print(f"results that differ: {len(differences)}")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
