"""Writes the HLO of a GPT's training step, and compares what another program makes of it.

Usage: gpt_step.py make FOLDER --ranks=2 --steps=20 [--layers=2 --width=32 --heads=4
           --vocabulary=61 --length=12 --examples=2]
       gpt_step.py compare FOLDER
       gpt_step.py time FOLDER [--seconds=10]

`make` writes FOLDER/step.hlo, a data-parallel step in JAX (shard_map and psum, momentum as the
optimizer) as it is before partitioning, and the data of its parameters in their order: K.before of
weights and momenta, f32, then K.STEP.RANK of tokens and targets, s32. Prints a line "fact NAME
NUMBER" for each option; the other commands read them in FOLDER/options.txt.

`compare` reads what the other program made, losses.ours and K.ours, f32, after the last step. What
differs from a training in double may be as much as single precision makes JAX differ, times kMargin:
products and sums are in other orders. Prints a line "fact compared ..." with the greatest share of
that bound.

`time` prints "time baseline SAMPLE..." of a compiled step of JAX on as many host devices, in
microseconds, and "fact version WORD".

Exits with 3 if there is no JAX.
"""

import argparse
import os
import pathlib
import sys
import time
from inspect import signature

kMargin = 4
kSizes = {"ranks": 2, "steps": 20, "layers": 2, "width": 32, "heads": 4, "vocabulary": 61,
          "length": 12, "examples": 2}  # fmt: skip


def read_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=("make", "compare", "time"))
    parser.add_argument("folder", type=pathlib.Path)
    for name, usual in kSizes.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--seconds", type=float, default=10)
    read = parser.parse_args()
    if read.command != "make":
        for line in (read.folder / "options.txt").read_text().splitlines():
            setattr(read, line.split()[1], int(line.split()[2]))
    return read


# A script that imports this one (tests/hlo/make.py) has the usual sizes.
o = read_arguments() if __name__ == "__main__" else argparse.Namespace(**kSizes)
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={o.ranks}"

try:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import Mesh, PartitionSpec as P
except ImportError as missing:
    print(f"absent: {missing}")
    sys.exit(3)
try:
    from jax import shard_map
except ImportError:
    from jax.experimental.shard_map import shard_map

kRate, kMomentum = 0.02, 0.9


def draw_weights(random):
    def normal(*shape):
        return (0.1 * random.standard_normal(shape)).astype(np.float32)

    weights = {"tokens": normal(o.vocabulary, o.width), "positions": normal(o.length, o.width),
               "norm": 1 + normal(o.width)}  # fmt: skip
    for layer in range(o.layers):
        weights[f"h{layer}"] = {
            "norm1": 1 + normal(o.width), "shift": normal(o.width),
            "qkv": normal(o.width, 3 * o.width), "out": normal(o.width, o.width),
            "norm2": 1 + normal(o.width), "up": normal(o.width, 4 * o.width),
            "bias": normal(4 * o.width), "down": normal(4 * o.width, o.width),
        }  # fmt: skip
    return weights


def normalized(x, scale):
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale


def logits_of(weights, tokens):
    x = weights["tokens"][tokens] + weights["positions"]
    batch = x.shape[0]
    for layer in range(o.layers):
        h = weights[f"h{layer}"]
        y = normalized(x, h["norm1"]) + h["shift"]
        heads = [
            part.reshape(batch, o.length, o.heads, o.width // o.heads).transpose(0, 2, 1, 3)
            for part in jnp.split(y @ h["qkv"], 3, -1)
        ]
        scores = heads[0] @ heads[1].transpose(0, 1, 3, 2) / np.sqrt(o.width // o.heads)
        scores = jnp.where(jnp.tril(jnp.ones((o.length, o.length), bool)), scores, -1e9)
        mixed = jax.nn.softmax(scores, -1) @ heads[2]
        x = x + mixed.transpose(0, 2, 1, 3).reshape(batch, o.length, o.width) @ h["out"]
        x = x + jax.nn.gelu(normalized(x, h["norm2"]) @ h["up"] + h["bias"]) @ h["down"]
    return normalized(x, weights["norm"]) @ weights["tokens"].T


def loss_of(weights, tokens, targets):
    shares = jax.nn.log_softmax(logits_of(weights, tokens), -1)
    return -jnp.take_along_axis(shares, targets[..., None], -1).mean()


def step(weights, momenta, tokens, targets):
    loss, gradients = jax.value_and_grad(loss_of)(weights, tokens, targets)
    mean = lambda x: jax.lax.psum(x, "ranks") / o.ranks
    momenta = jax.tree.map(lambda m, g: kMomentum * m + mean(g), momenta, gradients)
    return jax.tree.map(lambda w, m: w - kRate * m, weights, momenta), momenta, mean(loss)


def make_step():
    mesh = Mesh(np.array(jax.devices()[: o.ranks]), ("ranks",))
    specs = (P(), P(), P("ranks"), P("ranks"))
    # Unchecked, the gradients of replicated weights are of each rank alone; step() adds them up.
    check = {"check_vma" if "check_vma" in signature(shard_map).parameters else "check_rep": False}
    mapped = shard_map(step, mesh=mesh, in_specs=specs, out_specs=(P(), P(), P()), **check)
    return jax.jit(mapped, donate_argnums=(0, 1))


def train(dtype):
    """Weights and momenta after the last step, and the losses."""
    weights = draw_weights(np.random.default_rng(7))
    weights = jax.tree.map(lambda w: jnp.asarray(w, dtype), weights)
    momenta = jax.tree.map(jnp.zeros_like, weights)
    compiled, losses = make_step(), []
    for at in range(o.steps):
        tokens, targets = data_of(at)
        weights, momenta, loss = compiled(weights, momenta, tokens, targets)
        losses.append(float(loss))
    return jax.tree.leaves((weights, momenta)), losses


def data_of(at):
    random = np.random.default_rng(100 + at)
    tokens = random.integers(0, o.vocabulary, (o.ranks * o.examples, o.length + 1)).astype(np.int32)
    for place in range(1, o.length + 1):  # mostly the same successor
        follows = random.random(len(tokens)) < 0.9
        tokens[:, place] = np.where(follows, (7 * tokens[:, place - 1] + 3) % o.vocabulary,
                                    tokens[:, place])  # fmt: skip
    return tokens[:, :-1], tokens[:, 1:]


def make():
    weights = draw_weights(np.random.default_rng(7))
    momenta = jax.tree.map(np.zeros_like, weights)
    lowered = make_step().lower(weights, momenta, *data_of(0))
    (o.folder / "step.hlo").write_text(lowered.compiler_ir("hlo").as_hlo_text())
    leaves = jax.tree.leaves((weights, momenta))
    for number, leaf in enumerate(leaves):
        leaf.tofile(o.folder / f"{number}.before")
    for k in range(2):
        for at in range(o.steps):
            for rank, part in enumerate(np.split(data_of(at)[k], o.ranks)):
                np.ascontiguousarray(part).tofile(o.folder / f"{len(leaves) + k}.{at}.{rank}")
    options = "".join(f"fact {name} {getattr(o, name)}\n" for name in kSizes)
    (o.folder / "options.txt").write_text(options)
    print(options, end="")


def compare():
    single, losses = train(jnp.float32)
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        double, double_losses = train(jnp.float64)
    worst = 0

    def check(name, ours, in_single, in_double):
        nonlocal worst
        in_single, in_double = np.ravel(in_single), np.ravel(in_double)
        ours = ours.astype(np.float64)
        assert ours.shape == in_double.shape, (name, ours.shape, in_double.shape)
        bound = kMargin * np.abs(in_single - in_double).max() + 1e-7 * np.abs(in_double).max()
        off = np.abs(ours - in_double).max()
        worst = max(worst, off / bound)
        if not off <= bound:
            sys.exit(f"{name}: off by {off} of {np.abs(in_double).max()}, want at most {bound}")

    check("losses", np.fromfile(o.folder / "losses.ours", np.float32), losses, double_losses)
    for number, (low, high) in enumerate(zip(single, double)):
        check(f"parameter {number}", np.fromfile(o.folder / f"{number}.ours", np.float32), low, high)
    print(f"fact compared {len(single)} weights and momenta, losses from {losses[0]:.3f} to "
          f"{losses[-1]:.3f}: at most {worst:.2f} of the bound (jax {jax.__version__}, {o.ranks} "
          "devices)")


def measure():
    weights = jax.tree.map(jnp.asarray, draw_weights(np.random.default_rng(7)))
    momenta = jax.tree.map(jnp.zeros_like, weights)
    compiled, data, samples = make_step(), data_of(0), []
    begin = time.perf_counter()
    while time.perf_counter() - begin < o.seconds or len(samples) < 8:
        start = time.perf_counter()
        weights, momenta, loss = jax.block_until_ready(compiled(weights, momenta, *data))
        samples.append(1e6 * (time.perf_counter() - start))
    print("time baseline", *samples[1:])  # the first one compiles
    print("fact version", jax.__version__)


if __name__ == "__main__":
    {"make": make, "compare": compare, "time": measure}[o.command]()
