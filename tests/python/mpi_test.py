"""Ranks that mpirun starts, in communicators of mpi4py. Skipped where no mpi4py is."""

import subprocess
import sys
import unittest

try:
    import mpi4py
except ImportError as absent:
    print(f"skipped: {sys.executable} has no mpi4py ({absent}); COCONET_PYTHON may name another")
    sys.exit(0)

import coconet
from sums import check_sums


def check(communicator):
    check_sums(communicator, communicator.Get_rank(), communicator.Get_size())


def of_rank():
    from mpi4py import MPI  # initialises MPI
    world = MPI.COMM_WORLD
    check(world)
    # The last rank alone; the others in the opposite order. Twice: a world can be joined again.
    is_last = world.Get_rank() == world.Get_size() - 1
    part = world.Split(int(is_last), -world.Get_rank())
    check(part)
    check(part)
    part.Free()
    try:
        coconet.Session(MPI.COMM_NULL)
    except coconet.InvalidArgument as failure:
        print("refused:", failure)
    assert world.allreduce(1) == world.Get_size()  # the caller's MPI is as it was
    print(f"rank {world.Get_rank()} ended")


class MpiTest(unittest.TestCase):

    def test_communicators_of_the_caller(self):
        ended = subprocess.run(
            ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3", sys.executable,
             __file__, "rank"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=250)
        self.assertEqual(ended.returncode, 0, ended.stdout)
        for rank in range(3):
            self.assertIn(f"rank {rank} ended", ended.stdout)
        self.assertEqual(ended.stdout.count("refused:"), 3, ended.stdout)


if __name__ == "__main__":
    if sys.argv[1:] == ["rank"]:
        of_rank()
    else:
        unittest.main()
