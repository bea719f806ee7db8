"""Reformer: Kitaev, Kaiser and Levskaya 2020, with the dimensions of Trax's reformer_enwik8.gin.

A language model of bytes. Three of four layers attend to the chunk of a position and to the one
before it; each fourth does so after sorting the positions by locality-sensitive hashes (LSH). The
layers are reversible: the backward pass computes their inputs from their outputs, and keeps only
the orders of sorting, as another rounding could give another bucket. All heads are computed at
once. The rotations that hash are part of the batch, each example has its own; heads share them.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp

import layers


@dataclasses.dataclass(frozen=True)
class Dims:
    attention: tuple  # "local" or "lsh" of each layer
    width: int
    heads: int
    size: int  # of a head's keys and values
    inner: int  # of the feed-forward layers
    vocabulary: int
    axes: tuple  # the sequence as a matrix, whose rows and columns have position vectors
    axis_widths: tuple  # of those vectors; their sum is the width
    chunk: int  # of local attention
    lsh_chunk: int
    buckets: int
    rounds: int
    batch: int  # sequences of a rank

    @property
    def sequence(self):
        return self.axes[0] * self.axes[1]


PAPER = Dims(attention=("local", "local", "lsh", "local") * 3, width=768, heads=8, size=64,
             inner=2048, vocabulary=258, axes=(128, 512), axis_widths=(256, 512), chunk=128,
             lsh_chunk=256, buckets=512, rounds=2, batch=1)  # fmt: skip
SMALL = Dims(attention=("local", "lsh"), width=13, heads=3, size=4, inner=17, vocabulary=19,
             axes=(5, 9), axis_widths=(6, 7), chunk=9, lsh_chunk=15, buckets=8, rounds=2,
             batch=2)  # fmt: skip


def init(key, dims):
    keys = layers.split_forever(key)
    deviation = dims.width**-0.5
    inside = dims.heads * dims.size

    def layer(kind):
        names = ("query", "key", "value") if kind == "local" else ("query", "value")
        projections = {name: layers.draw(keys, dims.width, inside, deviation=deviation)
                       for name in names}  # fmt: skip
        out = layers.draw(keys, inside, dims.width, deviation=inside**-0.5)
        return {
            "attention": projections | {"out": out, "norm": layers.init_norm(dims.width)},
            "feed": {"norm": layers.init_norm(dims.width),
                     "up": layers.init_dense(keys, dims.width, dims.inner, deviation),
                     "down": layers.init_dense(keys, dims.inner, dims.width, dims.inner**-0.5)},
        }  # fmt: skip

    return {
        "tokens": layers.draw(keys, dims.vocabulary, dims.width, deviation=1),
        "rows": layers.draw(keys, dims.axes[0], dims.axis_widths[0], deviation=1),
        "columns": layers.draw(keys, dims.axes[1], dims.axis_widths[1], deviation=1),
        "layers": [layer(kind) for kind in dims.attention],
        "norm": layers.init_norm(2 * dims.width),
        "out": layers.init_dense(keys, 2 * dims.width, dims.vocabulary),
    }


def batch_shapes(dims, n):
    """`rotations` are normal random numbers, drawn anew for each step."""
    hashed = dims.attention.count("lsh")
    rotations = (n, hashed, dims.rounds, dims.size, dims.buckets // 2)
    return {"tokens": jax.ShapeDtypeStruct((n, dims.sequence), jnp.int32),
            "rotations": jax.ShapeDtypeStruct(rotations, jnp.float32)}  # fmt: skip


def with_chunk_before(x):
    """[..., chunks, length, size] to [..., chunks, 2 * length, size]; the first sees the last."""
    before = jnp.concatenate([x[..., -1:, :, :], x[..., :-1, :, :]], -3)
    return jnp.concatenate([before, x], -2)


def attend_in_chunks(q, k, v, places, length, is_self_last):
    """Values [..., sequence, size] and the logarithms of their weights, [..., sequence, 1].

    q, k and v are [..., sequence, size], places [..., sequence, 1] the positions in the text: what
    comes later there is not seen. With `is_self_last`, a position sees itself only if nothing else.
    """
    split = lambda x: x.reshape(*x.shape[:-2], x.shape[-2] // length, length, x.shape[-1])
    q, k, v, places = split(q), split(k), split(v), split(places)
    scores = q @ with_chunk_before(k).swapaxes(-1, -2) / q.shape[-1] ** 0.5
    others = with_chunk_before(places).swapaxes(-1, -2)
    scores = jnp.where(places < others, -1e9, scores)
    if is_self_last:
        scores = jnp.where(places == others, -1e5, scores)
    weight = jax.nn.logsumexp(scores, -1, keepdims=True)
    mixed = jnp.exp(scores - weight) @ with_chunk_before(v)
    merge = lambda x: x.reshape(*x.shape[:-3], x.shape[-3] * length, x.shape[-1])
    return merge(mixed), merge(weight)


def sort_by_hash(params, x, rotations, dims):
    """[n, heads, rounds, sequence] of int32: positions, those of one bucket next to each other.

    x is [n, sequence, width], rotations [n, rounds, size, buckets / 2].
    """
    x = layers.layer_norm(params["norm"], x)
    q = layers.split_heads(x @ params["query"], dims.heads)
    rotated = jnp.einsum("nhsd,nrdb->nhrsb", q, rotations)
    buckets = jnp.argmax(jnp.concatenate([rotated, -rotated], -1), -1).astype(jnp.int32)
    places = jax.lax.broadcasted_iota(jnp.int32, buckets.shape, 3)
    return jax.lax.sort((buckets * dims.sequence + places, places), num_keys=1)[1]


def lsh_attention(q, v, order, dims):
    """q, also the keys, and v are [n, heads, sequence, size]; order is as sort_by_hash has it."""
    k = q * jax.lax.rsqrt((q**2).mean(-1, keepdims=True) + 1e-6)
    ordered = lambda x: jnp.take_along_axis(x[:, :, None], order[..., None], 3)
    mixed, weight = attend_in_chunks(
        ordered(q), ordered(k), ordered(v), order[..., None], dims.lsh_chunk, is_self_last=True
    )
    places = jax.lax.broadcasted_iota(jnp.int32, order.shape, 3)
    back = jax.lax.sort((order, places), num_keys=1)[1][..., None]
    mixed, weight = (jnp.take_along_axis(x, back, 3) for x in (mixed, weight))
    return (mixed * jax.nn.softmax(weight, 2)).sum(2)


def attention(params, x, order, dims):
    """[n, sequence, width] to the same; local where the order is None."""
    x = layers.layer_norm(params["norm"], x)
    project = lambda name: layers.split_heads(x @ params[name], dims.heads)
    if order is None:
        places = jax.lax.broadcasted_iota(jnp.int32, (dims.sequence, 1), 0)
        mixed, _ = attend_in_chunks(project("query"), project("key"), project("value"), places,
                                    dims.chunk, is_self_last=False)  # fmt: skip
    else:
        mixed = lsh_attention(project("query"), project("value"), order, dims)
    return layers.merge_heads(mixed) @ params["out"]


def feed_forward(params, x):
    inner = jax.nn.relu(layers.dense(params["up"], layers.layer_norm(params["norm"], x)))
    return layers.dense(params["down"], inner)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def reversible(dims, params, rotations, a, b):
    """Both streams, [n, sequence, width], after all layers."""
    return reversible_forward(dims, params, rotations, a, b)[0]


def reversible_forward(dims, params, rotations, a, b):
    orders = []
    for at, layer in enumerate(params):
        if dims.attention[at] == "lsh":
            number = dims.attention[:at].count("lsh")
            orders.append(sort_by_hash(layer["attention"], b, rotations[:, number], dims))
        else:
            orders.append(None)
        a = a + attention(layer["attention"], b, orders[-1], dims)
        b = b + feed_forward(layer["feed"], a)
    return (a, b), (params, orders, a, b)


def reversible_backward(dims, kept, gradients):
    params, orders, a, b = kept
    grad_a, grad_b = gradients
    grad_params = []
    for layer, order in zip(reversed(params), reversed(orders)):
        fed, pull = jax.vjp(feed_forward, layer["feed"], a)
        b = b - fed
        grad_feed, grad = pull(grad_b)
        grad_a = grad_a + grad
        mixed, pull = jax.vjp(lambda p, x: attention(p, x, order, dims), layer["attention"], b)
        a = a - mixed
        grad_attention, grad = pull(grad_a)
        grad_b = grad_b + grad
        grad_params.append({"attention": grad_attention, "feed": grad_feed})
    return grad_params[::-1], None, grad_a, grad_b


reversible.defvjp(reversible_forward, reversible_backward)


def loss(params, batch, dims):
    """The mean cross entropy of each byte given those before it."""
    tokens = batch["tokens"]
    x = params["tokens"][jnp.pad(tokens[:, :-1], ((0, 0), (1, 0)))]
    rows = jnp.broadcast_to(params["rows"][:, None], (*dims.axes, dims.axis_widths[0]))
    columns = jnp.broadcast_to(params["columns"], (*dims.axes, dims.axis_widths[1]))
    x = x + jnp.concatenate([rows, columns], -1).reshape(dims.sequence, dims.width)
    x = jnp.concatenate(reversible(dims, params["layers"], batch["rotations"], x, x), -1)
    logits = layers.dense(params["out"], layers.layer_norm(params["norm"], x))
    return layers.cross_entropy(logits, tokens)
