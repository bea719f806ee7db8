"""Transformer: Vaswani et al. 2017, table 3, "base", on WMT 2014 English-German.

Encoder and decoder with normalization after each residual, sinusoids as positions, one matrix of
37,000 tokens for both embeddings and the logits, label smoothing of 0.1. Sentences fill their
length, so there is no mask of padding. A rank has 48 pairs of 64 tokens: 3,072 tokens a side, where
the publication has about 25,000 on 8 GPUs.
"""

import dataclasses

import jax
import jax.numpy as jnp

import layers


@dataclasses.dataclass(frozen=True)
class Dims:
    layers: int  # of the encoder; the decoder has as many
    width: int
    heads: int
    inner: int  # of the feed-forward layers
    vocabulary: int
    source: int  # tokens of a sentence
    target: int
    batch: int  # pairs of a rank
    smoothing: float = 0.1


PAPER = Dims(layers=6, width=512, heads=8, inner=2048, vocabulary=37000, source=64, target=64,
             batch=48)  # fmt: skip
SMALL = Dims(layers=1, width=12, heads=3, inner=17, vocabulary=23, source=7, target=5, batch=2)


def init(key, dims):
    keys = layers.split_forever(key)
    deviation = dims.width**-0.5

    def attention():
        weights = {name: layers.draw(keys, dims.width, dims.width, deviation=deviation)
                   for name in ("query", "key", "value", "out")}  # fmt: skip
        return weights | {"norm": layers.init_norm(dims.width)}

    def feed_forward():
        return {"up": layers.init_dense(keys, dims.width, dims.inner, deviation),
                "down": layers.init_dense(keys, dims.inner, dims.width, dims.inner**-0.5),
                "norm": layers.init_norm(dims.width)}  # fmt: skip

    return {
        "tokens": layers.draw(keys, dims.vocabulary, dims.width, deviation=deviation),
        "encoder": [{"self": attention(), "feed": feed_forward()} for _ in range(dims.layers)],
        "decoder": [{"self": attention(), "cross": attention(), "feed": feed_forward()}
                    for _ in range(dims.layers)],
    }  # fmt: skip


def batch_shapes(dims, n):
    """The decoder reads `target` without its last token and predicts it without its first."""
    return {"source": jax.ShapeDtypeStruct((n, dims.source), jnp.int32),
            "target": jax.ShapeDtypeStruct((n, dims.target + 1), jnp.int32)}  # fmt: skip


def sinusoids(length, width, dtype):
    """[length, width]: sines, then cosines."""
    shape = (length, width // 2)
    position = jax.lax.broadcasted_iota(dtype, shape, 0)
    column = jax.lax.broadcasted_iota(dtype, shape, 1)
    angle = position * jnp.exp(column * (-2 * jnp.log(10000.0) / width))
    return jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], -1)


def embed(params, tokens):
    """[n, length] of int32 to [n, length, width]."""
    table = params["tokens"]
    width = table.shape[-1]
    return width**0.5 * table[tokens] + sinusoids(tokens.shape[1], width, table.dtype)


def attend(params, x, memory, heads, is_causal=False):
    """x [n, length, width] attends to memory [n, other length, width]."""
    q = layers.split_heads(x @ params["query"], heads)
    k = layers.split_heads(memory @ params["key"], heads)
    v = layers.split_heads(memory @ params["value"], heads)
    mixed = layers.merge_heads(layers.attention(q, k, v, is_causal))
    return layers.layer_norm(params["norm"], x + mixed @ params["out"])


def feed_forward(params, x):
    inner = jax.nn.relu(layers.dense(params["up"], x))
    return layers.layer_norm(params["norm"], x + layers.dense(params["down"], inner))


def loss(params, batch, dims):
    """The mean smoothed cross entropy of the target's tokens."""
    memory = embed(params, batch["source"])
    for layer in params["encoder"]:
        memory = attend(layer["self"], memory, memory, dims.heads)
        memory = feed_forward(layer["feed"], memory)
    x = embed(params, batch["target"][:, :-1])
    for layer in params["decoder"]:
        x = attend(layer["self"], x, x, dims.heads, is_causal=True)
        x = attend(layer["cross"], x, memory, dims.heads)
        x = feed_forward(layer["feed"], x)
    logits = x @ params["tokens"].T
    return layers.cross_entropy(logits, batch["target"][:, 1:], dims.smoothing)
