"""A program of one collective and one state, and what NumPy gives for it, for tests of groups."""

import numpy as np

import coconet

PROGRAM = """coconet 1
program sum_and_keep
input x : f64[N] local
state s : f64[N]
output y = update(s, s + all_reduce(sum, x))
"""


def session_of(group, **options):
    return coconet.Session(group, cache_file=":none:", effort="fast", budget=1, **options)


def check_sums(group, rank, size):
    """Joins the group, in which this rank is `rank` of `size`, and compares three steps."""
    with session_of(group) as session:
        assert (session.rank, session.ranks) == (rank, size)
        x, y = session.allocate("f64", 1000), np.zeros(1000)
        with session.compile(PROGRAM, N=1000).bind(x=x, y=y) as bound:
            for step in range(1, 4):
                x.numpy()[:] = step * (rank + 1) + np.arange(1000)
                bound.run()
            assert (bound.read("s") == y).all()
    total = sum(step * sum(range(1, size + 1)) + size * np.arange(1000) for step in range(1, 4))
    assert (y == total).all(), (y, total)
