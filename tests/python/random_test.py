"""Arrays of random strides, offsets and dtypes, bound on threads that are ranks: each is either an
error on all ranks or gives what NumPy gives. COCONET_SEED repeats a failure."""

import os
import random
import time
import unittest

import numpy as np

import coconet
from meeting import ThreadGroup, run_threads

PROGRAM = """coconet 1
program kept
input x : {dtype}[{shape}] local
state s : {dtype}[{shape}] replicated
state t : {dtype}[{shape}]
output y = update(s, s + all_reduce(sum, x))
update(t, t + s)
"""
DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64}
FAST = {"cache_file": ":none:", "effort": "fast", "budget": 1}
RANKS = 2


def strided(draw, shape, dtype):
    """An array of zeros, a view of a larger one: rows with gaps, axes in another order, backwards,
    at any address."""
    order = list(range(len(shape)))
    draw.shuffle(order)
    steps = [draw.choice([1, 1, 1, 2, 3, -1, -2]) for _ in shape]
    before = [draw.choice([0, 0, 1, 5]) for _ in shape]
    lengths = [before[i] + shape[i] * abs(steps[i]) + draw.choice([0, 2]) for i in order]
    size, item = int(np.prod(lengths)), np.dtype(dtype).itemsize
    shift = draw.choice([0, 0, item, 1 if draw.random() < 0.1 else 0])
    base = np.zeros(size * item + shift + 64, np.uint8)[shift:shift + size * item].view(dtype)
    view = base.reshape(lengths).transpose(np.argsort(order))
    for i, step in enumerate(steps):
        window = [slice(None)] * len(shape)
        begin = before[i]
        end = begin + shape[i] * abs(step)
        window[i] = slice(begin, end, step) if step > 0 else \
            slice(end - 1, begin - 1 if begin > 0 else None, step)
        view = view[tuple(window)]
    return view[tuple(slice(0, n) for n in shape)]


def spoiled(draw, array):
    """What does not fit in its place."""
    return draw.choice([
        lambda: array.astype(np.int16),
        lambda: array[None],
        lambda: np.zeros([n + 1 for n in array.shape], array.dtype),
        lambda: array.astype(array.dtype.newbyteorder()),
        lambda: array.astype(np.complex64),
        lambda: array.tolist(),
        lambda: None,
    ])()


def case(seed):
    """Draws one program and its arrays; compares three steps."""
    draw = random.Random(seed)
    name = draw.choice(list(DTYPES))
    shape = [draw.choice([1, 2, 3, 7, 16, 33]) for _ in range(draw.randint(1, 3))]
    text = PROGRAM.format(dtype=name, shape=", ".join(map(str, shape)))
    bound_names = [n for n in ("x", "s", "t", "y") if draw.random() < 0.8]
    allocated = [n for n in bound_names if draw.random() < 0.2]  # on all ranks together
    is_bad = bool(bound_names) and draw.random() < 0.3
    bad_rank, bad_name = draw.randrange(RANKS), draw.choice(bound_names or [""])
    inner = draw.randrange(1 << 30)

    def body(group):
        mine = random.Random(inner + group.rank)
        with coconet.Session(group, **FAST) as session:
            tuned = session.compile(text)
            arrays = {}
            for tensor in bound_names:
                array = strided(mine, shape, DTYPES[name])
                assert list(array.shape) == shape
                if tensor == "t":  # the slice that the schedule gives this rank
                    part = tuned.tensors["t"]
                    if list(part.shape) != shape or part.count != int(np.prod(shape)):
                        continue
                if tensor in allocated:
                    array = tuned.allocate(tensor)
                arrays[tensor] = array
            if is_bad and group.rank == bad_rank and bad_name in arrays:
                arrays[bad_name] = spoiled(mine, np.asarray(arrays[bad_name]))
            is_spoiled = is_bad and bad_name in arrays
            try:
                bound = tuned.bind(**arrays)
            except (coconet.Error, TypeError, ValueError) as failure:
                assert is_spoiled, f"refused: {failure}"
                return str(failure)
            assert not is_spoiled, f"took {arrays[bad_name]!r} as {bad_name}"
            with bound:
                xs = []
                for step in range(3):
                    x = np.array([mine.randrange(-8, 8) for _ in range(int(np.prod(shape)))],
                                 DTYPES[name]).reshape(shape)
                    xs.append(x)
                    if "x" in arrays:
                        np.asarray(arrays["x"])[...] = x
                    else:
                        bound.write("x", x)
                    bound.run()
                got = {tensor: np.array(np.asarray(arrays[tensor])) if tensor in arrays else
                       bound.read(tensor) for tensor in ("s", "t", "y")}
                assert (bound.read("s") == got["s"]).all()
                return xs, got

    results = run_threads(RANKS, body)
    if isinstance(results[0], str):
        return False
    s, t = (np.zeros(shape, DTYPES[name]) for _ in range(2))
    for step in range(3):
        t = t + s
        s = s + sum(xs[step] for xs, _ in results)
    for _, got in results:
        np.testing.assert_array_equal(got["s"].reshape(shape), s)
        np.testing.assert_array_equal(got["y"].reshape(shape), s)
        np.testing.assert_array_equal(got["t"].reshape(shape), t)
    return True


class RandomTest(unittest.TestCase):

    def test_random_arrays(self):
        base = int(os.environ.get("COCONET_SEED", time.time_ns() % (1 << 31)))
        ran = 0
        for number in range(int(os.environ.get("COCONET_CASES", 12))):
            with self.subTest(COCONET_SEED=base + number):
                ran += case(base + number)
        self.assertGreater(ran, 0, f"all were refused; COCONET_SEED={base}")


if __name__ == "__main__":
    unittest.main()
