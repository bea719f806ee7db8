"""BERT: Devlin, Chang, Lee and Toutanova 2019, "base".

Losses of masked tokens and of the next sentence. Sequences have 128 tokens, as in the first 90 % of
the publication's steps, 20 of them masked, and no padding; its tanh form of GELU.
"""

import dataclasses

import jax
import jax.numpy as jnp

import layers


@dataclasses.dataclass(frozen=True)
class Dims:
    layers: int
    width: int
    heads: int
    inner: int  # of the feed-forward layers
    vocabulary: int
    positions: int
    segments: int
    sequence: int
    masked: int  # tokens to predict in each sequence
    batch: int  # sequences of a rank


PAPER = Dims(layers=12, width=768, heads=12, inner=3072, vocabulary=30522, positions=512,
             segments=2, sequence=128, masked=20, batch=32)  # fmt: skip
SMALL = Dims(layers=2, width=15, heads=3, inner=17, vocabulary=29, positions=13, segments=2,
             sequence=11, masked=4, batch=2)  # fmt: skip

kEpsilon = 1e-12


def init(key, dims):
    keys = layers.split_forever(key)
    square = lambda: layers.init_dense(keys, dims.width, dims.width)

    def layer():
        return {"query": square(), "key": square(), "value": square(), "out": square(),
                "norm1": layers.init_norm(dims.width),
                "up": layers.init_dense(keys, dims.width, dims.inner),
                "down": layers.init_dense(keys, dims.inner, dims.width),
                "norm2": layers.init_norm(dims.width)}  # fmt: skip

    return {
        "tokens": layers.draw(keys, dims.vocabulary, dims.width),
        "positions": layers.draw(keys, dims.positions, dims.width),
        "segments": layers.draw(keys, dims.segments, dims.width),
        "norm": layers.init_norm(dims.width),
        "layers": [layer() for _ in range(dims.layers)],
        "pooler": square(),
        "next": layers.init_dense(keys, dims.width, 2),
        "transform": square(),
        "transform_norm": layers.init_norm(dims.width),
        "token_bias": jnp.zeros(dims.vocabulary),
    }


def batch_shapes(dims, n):
    """`places` are the masked positions, `labels` their tokens, `follows` whether B follows A."""
    shape = lambda *extents: jax.ShapeDtypeStruct(extents, jnp.int32)
    return {"tokens": shape(n, dims.sequence), "segments": shape(n, dims.sequence),
            "places": shape(n, dims.masked), "labels": shape(n, dims.masked),
            "follows": shape(n)}  # fmt: skip


def encoder_layer(params, x, heads):
    """[n, sequence, width] to the same."""
    q, k, v = (layers.split_heads(layers.dense(params[name], x), heads)
               for name in ("query", "key", "value"))  # fmt: skip
    mixed = layers.dense(params["out"], layers.merge_heads(layers.attention(q, k, v)))
    x = layers.layer_norm(params["norm1"], x + mixed, kEpsilon)
    inner = jax.nn.gelu(layers.dense(params["up"], x), approximate=True)
    return layers.layer_norm(params["norm2"], x + layers.dense(params["down"], inner), kEpsilon)


def loss(params, batch, dims):
    """The mean loss of the masked tokens plus that of the next sentence."""
    x = params["tokens"][batch["tokens"]] + params["segments"][batch["segments"]]
    x = layers.layer_norm(params["norm"], x + params["positions"][: dims.sequence], kEpsilon)
    for layer in params["layers"]:
        x = encoder_layer(layer, x, dims.heads)
    pooled = jnp.tanh(layers.dense(params["pooler"], x[:, 0]))
    next_loss = layers.cross_entropy(layers.dense(params["next"], pooled), batch["follows"])
    masked = jnp.take_along_axis(x, batch["places"][..., None], 1)
    masked = jax.nn.gelu(layers.dense(params["transform"], masked), approximate=True)
    masked = layers.layer_norm(params["transform_norm"], masked, kEpsilon)
    logits = masked @ params["tokens"].T + params["token_bias"]
    return layers.cross_entropy(logits, batch["labels"]) + next_loss
