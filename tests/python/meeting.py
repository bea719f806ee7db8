"""Ranks for tests: threads of one process, and processes that meet in a folder."""

import os
import pathlib
import subprocess
import sys
import threading
import time


class ThreadGroup:
    """One of several threads' places; `ThreadGroup.make(n)` makes all."""

    def __init__(self, rank, size, barrier, parts):
        self.rank, self.size, self._barrier, self._parts = rank, size, barrier, parts

    @staticmethod
    def make(size, timeout=60):
        barrier, parts = threading.Barrier(size, timeout=timeout), [None] * size
        return [ThreadGroup(rank, size, barrier, parts) for rank in range(size)]

    def all_gather_bytes(self, mine):
        self._parts[self.rank] = mine
        self._barrier.wait()
        everyone = list(self._parts)
        self._barrier.wait()
        return everyone


def run_threads(size, body):
    """body(group) on each of `size` threads; the results by rank. Raises the first failure."""
    results, failures = [None] * size, []

    def run(group):
        try:
            results[group.rank] = body(group)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(group,)) for group in ThreadGroup.make(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return results


class FolderGroup:
    """A process's place among those that share a folder."""

    def __init__(self, folder, rank, size, timeout=60):
        self.rank, self.size = rank, size
        self._folder, self._timeout, self._calls = pathlib.Path(folder), timeout, 0

    def all_gather_bytes(self, mine):
        self._calls += 1
        names = [self._folder / f"{self._calls}.{rank}" for rank in range(self.size)]
        hidden = self._folder / f"hidden.{self.rank}"
        hidden.write_bytes(mine)
        hidden.rename(names[self.rank])
        end = time.monotonic() + self._timeout
        for rank, name in enumerate(names):
            while not name.exists():
                if time.monotonic() > end:
                    raise TimeoutError(f"rank {rank} did not come")
                time.sleep(0.001)
        return [name.read_bytes() for name in names]


def start_ranks(script, size, *arguments):
    """Processes `script RANK SIZE ARGUMENTS...`, one per rank."""
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    return [subprocess.Popen([sys.executable, script, str(rank), str(size), *map(str, arguments)],
                             env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True)
            for rank in range(size)]


def run_ranks(script, size, *arguments, timeout=50):
    """Runs them to their end; what each printed. AssertionError where one fails."""
    processes = start_ranks(script, size, *arguments)
    outputs = []
    try:
        for process in processes:
            outputs.append(process.communicate(timeout=timeout)[0])
    except subprocess.TimeoutExpired:
        for process in processes:
            process.kill()
        outputs += [process.communicate()[0] for process in processes[len(outputs):]]
        raise AssertionError(f"{script} {arguments}: no end within {timeout} s\n" +
                             "\n".join(outputs)) from None
    for rank, process in enumerate(processes):
        if process.returncode:
            raise AssertionError(f"{script} {arguments}: rank {rank} of {size} exited with "
                                 f"{process.returncode}\n" + "\n".join(outputs))
    return outputs
