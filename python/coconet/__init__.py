"""Coconet: programs of computation and communication, tuned and run on all ranks.

    import coconet

    with coconet.Session(group) as session:             # a rank's place in a world of ranks
        tuned = session.compile("adam.coco", N=1 << 24)  # from the tuning cache, or tuned now
        g = session.allocate("f32", 1 << 24)             # memory that peers reach
        p = session.allocate("f32", 1 << 24)
        with tuned.bind(g=g, p=p) as bound:
            bound.set(lr=1e-3, step=1)
            bound.run()
        print(tuned.explain())

`group` is a process group of torch.distributed, a communicator of mpi4py, any object with `rank`,
`size` and `all_gather_bytes`, or None. Arrays are exchanged without copies, by DLPack: `g.numpy()`,
`g.torch()`, `jax.numpy.from_dlpack(g)`; `bind` takes arrays of NumPy, PyTorch and JAX as well.

`coconet.Program` writes programs in Python (help(coconet.program)); `coconet.torch` has optimizers
for PyTorch; `coconet sweep`, or `python -m coconet sweep`, and others are the library's commands. Errors
of the library are `coconet.Error`, with a subclass per code.
"""

from __future__ import annotations

from coconet._array import Array
from coconet._elementwise import *
from coconet._errors import (Aborted, AlreadyExists, Cancelled, DataLoss, DeadlineExceeded, Error,
                             FailedPrecondition, Internal, InvalidArgument, NotFound, OutOfRange,
                             PermissionDenied, ResourceExhausted, Unavailable, Unimplemented)
from coconet._groups import Group
from coconet._session import Session
from coconet._tuned import Binding, Scalar, Tensor, TunedProgram, explain
from coconet.program import Program, Value, call, world
from coconet.words import *

__version__ = "1.1"

# What `from coconet import *` takes: without the functions that hide Python's own.
__all__ = [
    "Aborted", "AlreadyExists", "Array", "Binding", "Cancelled", "DataLoss", "DeadlineExceeded",
    "Error", "FailedPrecondition", "Group", "Internal", "InvalidArgument", "NotFound", "OutOfRange",
    "PermissionDenied", "Program", "ResourceExhausted", "Scalar", "Session", "Tensor",
    "TunedProgram", "Unavailable", "Unimplemented", "Value", "all_gather", "all_reduce",
    "all_to_all", "broadcast", "call", "cast", "explain", "grad", "matmul", "reduce_scatter",
    "select", "send", "shard", "world"
]


def version() -> str:
    """The version of the library, "MAJOR.MINOR"."""
    from coconet._library import library
    number = library().coconet_version()
    return f"{number // 1000}.{number % 1000}"
