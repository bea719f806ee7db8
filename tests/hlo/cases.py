"""Cases of hlo_cases_test: an HLO module, what its parameters have, and what XLA makes of it.

A file has cases one after the other, each of lines:

    case NAME
    ranks COUNT
    hlo LINES             the module's text, so many lines, follows
    given NUMBER...       for each parameter, for each rank
    found NUMBER...       for each result, for each rank
    refused TEXT          instead of `found`: what the message of the import has
    end
"""

import os
import sys

kMostRanks = 4
kNoJax = 3  # exit code

# JAX reads both when it is imported.
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={kMostRanks}"
os.environ["JAX_PLATFORMS"] = "cpu"

import numpy as np

try:
    import jax
    from jax._src.lib import xla_client
    from jaxlib import _hlo, _jax
except ImportError as absent:
    print(f"{sys.executable} has no JAX: {absent}")
    sys.exit(kNoJax)

kTypes = {
    "pred": np.bool_,
    "f32": np.float32,
    "s8": np.int8,
    "s16": np.int16,
    "s32": np.int32,
    "s64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
}


def array(dtype, dims, numbers):
    return np.array(numbers, kTypes[dtype]).reshape(dims)


def run_by_xla(text, given, ranks):
    """By parameter and rank, gives by result and rank; the ranks are replicas."""
    module = _hlo.hlo_module_from_text(text)
    computation = _hlo.XlaComputation(module.as_serialized_hlo_module_proto())
    stable = _jax.mlir.xla_computation_to_mlir_module(computation)
    devices = jax.devices("cpu")[:ranks]
    options = xla_client.CompileOptions()
    options.num_replicas = ranks
    options.device_assignment = xla_client.DeviceAssignment.create(
        np.arange(ranks).reshape(ranks, 1)
    )
    client = devices[0].client
    executable = client.compile_and_load(stable, xla_client.DeviceList(tuple(devices)), options)
    # Each device may have a value of its own, whatever the sharding says.
    everywhere = jax.sharding.NamedSharding(
        jax.sharding.Mesh(np.array(devices), "ranks"), jax.sharding.PartitionSpec()
    )
    with jax.enable_x64(True):
        arguments = [
            jax.make_array_from_single_device_arrays(
                of_ranks[0].shape,
                everywhere,
                [jax.device_put(a, d) for a, d in zip(of_ranks, devices)],
            )
            for of_ranks in given
        ]
    outputs = executable.execute_sharded(arguments).disassemble_into_single_device_arrays()
    return [[np.asarray(a) for a in of_ranks] for of_ranks in outputs]


def write(out, name, ranks, text, given, found=(), refused=None):
    lines = text.rstrip("\n").split("\n")
    print("case", name, file=out)
    print("ranks", ranks, file=out)
    print("hlo", len(lines), file=out)
    print(*lines, sep="\n", file=out)
    for word, arrays in (("given", given), ("found", found)):
        for of_ranks in arrays:
            for a in of_ranks:
                print(
                    word,
                    *(repr(float(x)) if a.dtype.kind == "f" else int(x) for x in a.ravel()),
                    file=out,
                )
    if refused is not None:
        print("refused", refused, file=out)
    print("end", file=out)
