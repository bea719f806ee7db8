"""examples/adam.cc in Python: from `import coconet` to the first step, in one process.

    start.py --program=examples/adam.coco --adam=examples/adam

Starts in turns itself, without --adam, and the C++ program, each with a cache that knows the
program. Without --adam the script measures from before the import to after the first step of two
threads that are ranks; of the C++ program the whole process counts. Prints "time ours SAMPLE..."
and "time cpp SAMPLE...", in microseconds.
"""

import os
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


def train(program, rank, found):
    n = 100000
    with coconet.Session(Place(rank)) as session:
        tuned = session.compile(program, N=n)
        g, p = session.allocate("f32", n), session.allocate("f32", n)
        with tuned.bind(g=g, p=p) as bound:
            bound.set(lr=1e-3, step=1)
            bound.run()
            found[rank] = time.perf_counter() - BEGIN


def first_step(program):
    found = [0, 0]
    threads = [threading.Thread(target=train, args=(program, rank, found)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(1e6 * max(found))


def compare(program, adam):
    import platform  # these two not in a process that is measured
    import subprocess

    cache = os.environ["COCONET_CACHE_DIR"]
    cpp, ours = (dict(os.environ, COCONET_CACHE_DIR=f"{cache}/{side}") for side in ("cpp", "ours"))
    python = [sys.executable, __file__, f"--program={program}"]
    ours_us, cpp_us = [], []
    for _ in range(4 + 15):
        begin = time.perf_counter()
        subprocess.run([adam], env=cpp, check=True, stdout=subprocess.DEVNULL)
        cpp_us.append(1e6 * (time.perf_counter() - begin))
        ours_us.append(float(subprocess.check_output(python, env=ours)))
    print("time ours", *ours_us[4:])  # the caches know the programs
    print("time cpp", *cpp_us[4:])
    print("fact baseline examples/adam, the whole process")
    print("fact python", platform.python_version())


if __name__ == "__main__":
    options = dict(argument.split("=", 1) for argument in sys.argv[1:])
    if "--adam" in options:
        compare(options["--program"], options["--adam"])
    else:
        first_step(options["--program"])
