"""examples/adam.cc in Python: from `import coconet` to the first step, in one process.

    start.py --program=examples/adam.coco

Two threads are ranks. Prints the milliseconds from before the import to after the first step, and
whether the tuning cache had the program.
"""

import sys
import threading
import time

BEGIN = time.perf_counter()

import coconet  # noqa: E402: what is measured

_barrier, _parts = threading.Barrier(2), [b"", b""]


class Place:
    size = 2

    def __init__(self, rank):
        self.rank = rank

    def all_gather_bytes(self, mine):
        _parts[self.rank] = mine
        _barrier.wait()
        everyone = list(_parts)
        _barrier.wait()
        return everyone


def train(rank, found):
    n = 100000
    with coconet.Session(Place(rank)) as session:
        tuned = session.compile(sys.argv[1].partition("=")[2], N=n)
        g, p = session.allocate("f32", n), session.allocate("f32", n)
        with tuned.bind(g=g, p=p) as bound:
            bound.set(lr=1e-3, step=1)
            bound.run()
            found[rank] = (time.perf_counter() - BEGIN, tuned.from_cache)


if __name__ == "__main__":
    found = [None, None]
    threads = [threading.Thread(target=train, args=(rank, found)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(1e3 * max(took for took, _ in found), int(all(cached for _, cached in found)))
