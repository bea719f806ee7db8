"""What several of the models have: normalization, dense layers, attention, cross entropy."""

import jax
import jax.numpy as jnp


def split_forever(key):
    """Yields keys, each to draw one weight with."""
    while True:
        key, one = jax.random.split(key)
        yield one


def draw(keys, *shape, deviation=0.02):
    return deviation * jax.random.normal(next(keys), shape, jnp.float32)


def init_dense(keys, inputs, outputs, deviation=0.02):
    return {"weight": draw(keys, inputs, outputs, deviation=deviation), "bias": jnp.zeros(outputs)}


def dense(params, x):
    """[..., inputs] to [..., outputs]."""
    return x @ params["weight"] + params["bias"]


def init_norm(width):
    return {"scale": jnp.ones(width), "shift": jnp.zeros(width)}


def layer_norm(params, x, epsilon=1e-6):
    """Normalizes over the last dimension."""
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + epsilon)
    return scaled * params["scale"] + params["shift"]


def split_heads(x, heads):
    """[n, length, heads * size] to [n, heads, length, size]."""
    n, length, width = x.shape
    return x.reshape(n, length, heads, width // heads).transpose(0, 2, 1, 3)


def merge_heads(x):
    """[n, heads, length, size] to [n, length, heads * size]."""
    n, heads, length, size = x.shape
    return x.transpose(0, 2, 1, 3).reshape(n, length, heads * size)


def attention(q, k, v, is_causal=False):
    """Each of [n, heads, length, size]; the length of `q` may be another than that of the rest."""
    scores = q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5
    if is_causal:
        lengths = scores.shape[-2:]
        is_past = jax.lax.broadcasted_iota(jnp.int32, lengths, 0) >= jax.lax.broadcasted_iota(
            jnp.int32, lengths, 1
        )
        scores = jnp.where(is_past, scores, -1e9)
    return jax.nn.softmax(scores, -1) @ v


def cross_entropy(logits, labels, smoothing=0.0):
    """The mean over all positions; logits [..., classes], labels [...] of int32."""
    shares = jax.nn.log_softmax(logits, -1)
    loss = -jnp.take_along_axis(shares, labels[..., None], -1).mean()
    if smoothing:
        loss = (1 - smoothing) * loss - smoothing * shares.mean()
    return loss
