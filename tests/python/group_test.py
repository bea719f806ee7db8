"""Ranks that are processes: what they compute, who does not come, who dies."""

import os
import pathlib
import signal
import sys
import tempfile
import time
import unittest

import coconet
from meeting import FolderGroup, run_ranks, start_ranks
from sums import PROGRAM, check_sums, session_of


def sums(folder, rank, size):
    check_sums(FolderGroup(folder, rank, size), rank, size)


def differ(folder, rank, size):
    with session_of(FolderGroup(folder, rank, size), timeout=5) as session:
        try:
            session.compile(PROGRAM, N=10 + rank)
        except coconet.Error as failure:
            print(type(failure).__name__, failure)


def dies(folder, rank, size):
    session = session_of(FolderGroup(folder, rank, size), timeout=5)
    bound = session.compile(PROGRAM, N=100).bind()
    bound.run()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        while True:
            bound.run()
    except coconet.Error as failure:
        print(type(failure).__name__, failure)


class GroupTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_two_and_three_processes_sum(self):
        for size in (2, 3):
            folder = pathlib.Path(self.folder) / str(size)
            folder.mkdir()
            run_ranks(__file__, size, "sums", folder)

    def test_different_programs_are_an_error_on_all_ranks(self):
        for text in run_ranks(__file__, 2, "differ", self.folder):
            self.assertRegex(text, "InvalidArgument .*(10|11|N)")

    def test_a_rank_that_dies_is_an_error_by_the_deadline(self):
        begin = time.monotonic()
        first, second = start_ranks(__file__, 2, "dies", self.folder)
        text = first.communicate(timeout=50)[0]
        second.communicate(timeout=50)
        self.assertRegex(text, "(Aborted|DeadlineExceeded|Unavailable) .*1")
        self.assertLess(time.monotonic() - begin, 45)

    def test_a_rank_that_never_comes_is_an_error(self):
        group = FolderGroup(self.folder, 0, 2, timeout=0.5)
        with self.assertRaisesRegex(coconet.Error, "rank 1 did not come"):
            coconet.Session(group, timeout=2)


if __name__ == "__main__":
    if len(sys.argv) > 3 and sys.argv[3] in ("sums", "differ", "dies"):
        globals()[sys.argv[3]](sys.argv[4], int(sys.argv[1]), int(sys.argv[2]))
    else:
        unittest.main()
