"""Makes a data-parallel training step out of a model's loss."""

import functools

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec

kAxis = "ranks"
kRate, kMomentum = 0.02, 0.9


def make_step(loss, ranks):
    """A compiled (params, momenta, batch) -> (params, momenta, mean loss) on `ranks` devices.

    Args:
      loss: (params, batch) -> the mean loss of the batch's examples.
      ranks: each has all of the params, and a part of the batch by its leading dimension.
    """

    def step(params, momenta, batch):
        value, gradients = jax.value_and_grad(loss)(params, batch)
        # One psum of the whole tree would be a single all-reduce with many operands.
        mean = lambda x: jax.lax.psum(x, kAxis) / ranks
        momenta = jax.tree.map(lambda m, g: kMomentum * m + mean(g), momenta, gradients)
        params = jax.tree.map(lambda p, m: p - kRate * m, params, momenta)
        return params, momenta, mean(value)

    mesh = Mesh(np.array(jax.devices()[:ranks]), (kAxis,))
    all_of_it, part = PartitionSpec(), PartitionSpec(kAxis)
    # With check_vma, JAX would add the gradients of params, which all ranks share, by itself.
    mapped = jax.shard_map(step, mesh=mesh, in_specs=(all_of_it, all_of_it, part),
                           out_specs=all_of_it, check_vma=False)  # fmt: skip
    return jax.jit(mapped, donate_argnums=(0, 1))


def lower(model, dims, batch, ranks):
    """Lowers the model's step, and compiles and allocates nothing.

    Args:
      model: the module.
      dims: its dimensions.
      batch: examples of a rank.
      ranks: their number.

    Returns:
      The lowered step and the shapes of the params.
    """
    params = jax.eval_shape(functools.partial(model.init, dims=dims), jax.random.key(0))
    examples = model.batch_shapes(dims, ranks * batch)
    loss = functools.partial(model.loss, dims=dims)
    return make_step(loss, ranks).lower(params, params, examples), params
