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
for PyTorch; `python -m coconet sweep` and `cache` are the library's commands. Errors of the library
are `coconet.Error`, with a subclass per code.
"""

from __future__ import annotations

from coconet._array import Array
from coconet._errors import (Aborted, AlreadyExists, Cancelled, DataLoss, DeadlineExceeded, Error,
                             FailedPrecondition, Internal, InvalidArgument, NotFound, OutOfRange,
                             PermissionDenied, ResourceExhausted, Unavailable, Unimplemented)
from coconet._groups import Group
from coconet._session import Session
from coconet._tuned import Binding, Scalar, Tensor, TunedProgram, explain
from coconet.program import Program, Value, call, world
# "as" tells type checkers that what `__all__` lacks belongs to the package, too.
from coconet.words import (abs as abs, all_gather, all_reduce, all_to_all, amax as amax,
                           amin as amin, argmax as argmax, bit_and as bit_and, bit_cast as bit_cast,
                           bit_not as bit_not, bit_or as bit_or, bit_xor as bit_xor, broadcast,
                           cast, ceil as ceil, concat as concat, const as const, cos as cos,
                           count as count, cross_entropy as cross_entropy, dropout as dropout,
                           embedding_bag as embedding_bag, erf as erf, exp as exp, expand as expand,
                           expm1 as expm1, extent as extent, floor as floor, gather as gather,
                           gelu as gelu, grad, iota as iota, keep_rows as keep_rows,
                           layer_norm as layer_norm, log as log, log1p as log1p, matmul, max as max,
                           mean as mean, min as min, neg as neg, norm as norm, opaque as opaque,
                           pow as pow, rank as rank, reduce as reduce, reduce_scatter, relu as relu,
                           rem as rem, reshape as reshape, reverse as reverse, rms_norm as rms_norm,
                           round as round, round_stochastic as round_stochastic, rsqrt as rsqrt,
                           scatter_add as scatter_add, select, send, shard,
                           shift_left as shift_left, shift_right as shift_right,
                           shift_right_logical as shift_right_logical, sigmoid as sigmoid,
                           sign as sign, silu as silu, sin as sin, slice as slice,
                           softmax as softmax, sqrt as sqrt, stop_gradient as stop_gradient,
                           sum as sum, tanh as tanh, total as total, transpose as transpose,
                           world_as as world_as)

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
