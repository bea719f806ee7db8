"""RNNLM: the "large" regularized LSTM of Zaremba, Sutskever and Vinyals 2014, on Penn Treebank.

Two layers, each a loop over time (lax.scan) with one matrix for its four gates, as in TensorFlow's
PTB tutorial. The state is zero at the start of each batch.
"""

import dataclasses

import jax
import jax.numpy as jnp

import layers


@dataclasses.dataclass(frozen=True)
class Dims:
    layers: int
    width: int
    vocabulary: int
    sequence: int
    batch: int  # sequences of a rank
    deviation: float  # of the weights drawn at first; the publication draws from [-0.04, 0.04]


PAPER = Dims(layers=2, width=1500, vocabulary=10000, sequence=35, batch=20, deviation=0.023)
SMALL = Dims(layers=2, width=13, vocabulary=19, sequence=7, batch=3, deviation=0.3)


def init(key, dims):
    keys = layers.split_forever(key)
    gates = lambda: layers.init_dense(keys, 2 * dims.width, 4 * dims.width, dims.deviation)
    return {
        "tokens": layers.draw(keys, dims.vocabulary, dims.width, deviation=dims.deviation),
        "lstm": [gates() for _ in range(dims.layers)],
        "softmax": layers.init_dense(keys, dims.width, dims.vocabulary, dims.deviation),
    }


def batch_shapes(dims, n):
    """The model reads `tokens` without the last one and predicts them without the first."""
    return {"tokens": jax.ShapeDtypeStruct((n, dims.sequence + 1), jnp.int32)}


def lstm(params, inputs):
    """[sequence, n, width] to [sequence, n, width]."""

    def advance(state, x):
        hidden, cell = state
        gates = layers.dense(params, jnp.concatenate([x, hidden], -1))
        enter, update, forget, leave = jnp.split(gates, 4, -1)
        cell = jax.nn.sigmoid(forget) * cell + jax.nn.sigmoid(enter) * jnp.tanh(update)
        hidden = jax.nn.sigmoid(leave) * jnp.tanh(cell)
        return (hidden, cell), hidden

    zeros = jnp.zeros_like(inputs[0])
    return jax.lax.scan(advance, (zeros, zeros), inputs)[1]


def loss(params, batch, dims):
    """The mean cross entropy over all positions."""
    del dims
    tokens = batch["tokens"].T
    x = params["tokens"][tokens[:-1]]
    for layer in params["lstm"]:
        x = lstm(layer, x)
    return layers.cross_entropy(layers.dense(params["softmax"], x), tokens[1:])
