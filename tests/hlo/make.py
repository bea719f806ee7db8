"""Writes training steps as HLO, and what JAX finds when it trains by them, for hlo_models_test.

Usage, where `pip install jax` was run: python tests/hlo/make.py

Writes NAME.hlo, for 2 ranks, of the small presets of examples/disco and of the GPT of
bench/hlo/gpt_step.py; and, of those that a program can run, NAME.expected. Its lines are, for each
parameter in the order of the module,

    weight NAME f32 BASE DIVISOR EXTENT...
    momentum NAME f32 EXTENT...
    data NAME s32 LIMIT EXTENT...           extents are those of a rank's part

and then

    loss STEP VALUE DEVIATION
    moved NAME SUM DEVIATION SQUARES DEVIATION

for each step the loss, and for each weight how far its elements moved until after the last step:
the sum of element i's way times (i i mod 7) - 3, and the sum of the ways' squares. Values are those
of a training in f64; a deviation is how far a training in f32 is from there.

Both trainings start from numbers that need no storage. Element i of parameter k, both counted from
0, is

    weight      BASE + ((37 i + 101 k) mod 251 - 125) / DIVISOR
    momentum    0
    data        (5 i + 3 rank + 7 step + k) mod LIMIT

BASE is 1 where a weight scales what was normalized, else 0. DIVISOR is a power of two, so f32 has
these numbers exactly.
"""

import dataclasses
import functools
import importlib
import os
import pathlib
import sys
import typing

kRanks, kSteps = 2, 5

# JAX reads both when it is imported.
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={kRanks}"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np

kHere = pathlib.Path(__file__).resolve().parent
kRoot = kHere.parent.parent
sys.path[:0] = [str(kRoot / "examples/disco"), str(kRoot / "bench/hlo")]

import gpt_step
import training_step

# Convolutions and sorts have no program: these are planned only.
kPlanned = ("vgg19", "resnet50", "reformer")
# Divisors of weights, and limits of data by name.
kTrained = {
    "transformer": (256, lambda name, dims: dims.vocabulary),
    "rnnlm": (256, lambda name, dims: dims.vocabulary),
    "bert": (512, lambda name, dims: {"segments": dims.segments, "places": dims.sequence,
                                      "follows": 2}.get(name, dims.vocabulary)),
}  # fmt: skip


@dataclasses.dataclass
class Parameter:
    name: str
    shape: tuple  # of all ranks' parts together
    limit: int = 0  # of data
    base: int = 0  # of weights
    divisor: int = 0


@dataclasses.dataclass
class Training:
    """A step (weights, momenta, *data) -> (weights, momenta, loss); `data` is a tuple of trees."""

    make_step: typing.Callable
    weights: typing.Any  # a tree of Parameters
    data: tuple

    def shapes(self):
        of = lambda tree, dtype: jax.tree.map(lambda p: jax.ShapeDtypeStruct(p.shape, dtype), tree)
        weights = of(self.weights, jnp.float32)
        return weights, weights, *of(self.data, jnp.int32)


def named(tree, make):
    """The tree with make(name, shape) for its leaves."""
    name = lambda path: jax.tree_util.keystr(path, simple=True, separator=".")
    return jax.tree_util.tree_map_with_path(lambda path, leaf: make(name(path), leaf.shape), tree)


def weights_of(tree, divisor):
    def make(name, shape):
        last = name.split(".")[-1]
        scales = last == "scale" or last.startswith("norm")
        return Parameter(name, shape, base=int(scales), divisor=divisor)

    return named(tree, make)


def disco(name):
    model = importlib.import_module(name)
    dims = model.SMALL
    divisor, limit = kTrained[name]
    make_step = lambda: training_step.make_step(functools.partial(model.loss, dims=dims), kRanks)
    weights = jax.eval_shape(functools.partial(model.init, dims=dims), jax.random.key(0))
    data = named(model.batch_shapes(dims, kRanks * dims.batch),
                 lambda name, shape: Parameter(name, shape, limit(name, dims)))  # fmt: skip
    return Training(make_step, weights_of(weights, divisor), (data,))


def gpt():
    o = gpt_step.o
    assert o.ranks == kRanks
    weights = gpt_step.draw_weights(np.random.default_rng(0))
    shape = (kRanks * o.examples, o.length)
    data = tuple(Parameter(name, shape, o.vocabulary) for name in ("tokens", "targets"))
    return Training(gpt_step.make_step, weights_of(weights, 512), data)


def in_order(training):
    """Weights, and data with their places among the module's parameters."""
    weights, data = jax.tree.leaves(training.weights), jax.tree.leaves(training.data)
    return weights, list(enumerate(data, 2 * len(weights)))


def first_weight(k, parameter):
    i = np.arange(np.prod(parameter.shape, dtype=np.int64)).reshape(parameter.shape)
    return parameter.base + ((37 * i + 101 * k) % 251 - 125) / parameter.divisor


def data_at(step, k, parameter):
    i = np.arange(np.prod(parameter.shape, dtype=np.int64) // kRanks)
    parts = [(5 * i + 3 * rank + 7 * step + k) % parameter.limit for rank in range(kRanks)]
    return np.concatenate(parts).reshape(parameter.shape).astype(np.int32)


def signed_sum(way):
    i = np.arange(way.size)
    return (way.ravel() * (i * i % 7 - 3)).sum()


def train(training, dtype):
    """The losses, and both sums of how far each weight moved."""
    order, data = in_order(training)
    first = [first_weight(k, p) for k, p in enumerate(order)]
    leaves = [jnp.asarray(w, dtype) for w in first]
    weights = jax.tree.unflatten(jax.tree.structure(training.weights), leaves)
    momenta = jax.tree.map(jnp.zeros_like, weights)
    step, losses = training.make_step(), []
    for at in range(kSteps):
        leaves = [data_at(at, k, p) for k, p in data]
        batch = jax.tree.unflatten(jax.tree.structure(training.data), leaves)
        weights, momenta, loss = step(weights, momenta, *batch)
        assert loss.dtype == dtype
        losses.append(float(loss))
    ways = [np.asarray(w, np.float64) - v for w, v in zip(jax.tree.leaves(weights), first)]
    return losses, [(signed_sum(way), (way * way).sum()) for way in ways]


def expected(training):
    low_losses, low = train(training, jnp.float32)
    with jax.enable_x64(True):
        losses, high = train(training, jnp.float64)
    assert np.isfinite(losses).all() and losses[-1] < losses[0], losses
    weights, data = in_order(training)
    numbers = lambda *all: " ".join(map(str, all))
    number_and_deviation = lambda high, low: f"{float(high)!r} {abs(float(high - low)):.2g}"
    lines = [f"# JAX {jax.__version__} by make.py, which says what the lines are."]
    lines += [f"weight {p.name} f32 {numbers(p.base, p.divisor, *p.shape)}" for p in weights]
    lines += [f"momentum {p.name} f32 {numbers(*p.shape)}".rstrip() for p in weights]
    lines += [f"data {p.name} s32 {numbers(p.limit, p.shape[0] // kRanks, *p.shape[1:])}"
              for _, p in data]  # fmt: skip
    for at, pair in enumerate(zip(losses, low_losses)):
        lines.append(f"loss {at} {number_and_deviation(*pair)}")
    for p, sums in zip(weights, zip(high, low)):
        lines.append(f"moved {p.name} {' '.join(number_and_deviation(*s) for s in zip(*sums))}")
    print(f"losses from {losses[0]:.4f} to {losses[-1]:.4f}")
    return "\n".join(lines) + "\n"


def write_step(name, lowered):
    text = lowered.compiler_ir("hlo").as_hlo_text()
    # Large constants would be left out of the text.
    assert "{...}" not in text, name
    (kHere / f"{name}.hlo").write_text(text)


def main():
    for name in kPlanned:
        model = importlib.import_module(name)
        write_step(name, training_step.lower(model, model.SMALL, model.SMALL.batch, kRanks)[0])
    for name in (*kTrained, "gpt"):
        training = gpt() if name == "gpt" else disco(name)
        write_step(name, training.make_step().lower(*training.shapes()))
        (kHere / f"{name}.expected").write_text(expected(training))


if __name__ == "__main__":
    main()
