"""Writes the HLO of a GPT's training step, and compares what another program makes of it.

Usage: gpt_step.py make FOLDER RANKS STEPS
       gpt_step.py compare FOLDER

`make` writes FOLDER/step.hlo, a data-parallel step in JAX (shard_map and psum, momentum as the
optimizer) as it is before partitioning, and the data of its parameters in their order: K.before,
or, of tokens and targets, K.STEP.RANK. manifest.txt has a line "parameter K DTYPE EXTENT..." for
each, "data" in place of "parameter" for those that differ by rank and step; "ranks N", "steps N".
losses and K.after, f32, are what JAX on as many host devices makes of them.

`compare` reads what the other program made, losses.ours and K.ours. What differs from a training in
double may be as much as single precision makes JAX differ, times kMargin: products and sums are in
other orders. Prints the greatest share of that bound. Exits with 3 where there is no JAX.
"""

import os
import pathlib
import sys

kMargin = 4

folder = pathlib.Path(sys.argv[2])
if sys.argv[1] == "make":
    ranks, steps = int(sys.argv[3]), int(sys.argv[4])
else:
    numbers = dict(line.split()[:2] for line in (folder / "manifest.txt").read_text().splitlines())
    ranks, steps = int(numbers["ranks"]), int(numbers["steps"])
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={ranks}"

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

kLayers, kWidth, kHeads, kVocabulary, kLength, kExamples = 2, 32, 4, 61, 12, 2
kRate, kMomentum = 0.02, 0.9


def draw_weights(random):
    def normal(*shape):
        return (0.1 * random.standard_normal(shape)).astype(np.float32)

    weights = {"tokens": normal(kVocabulary, kWidth), "positions": normal(kLength, kWidth),
               "norm": 1 + normal(kWidth)}  # fmt: skip
    for layer in range(kLayers):
        weights[f"h{layer}"] = {
            "norm1": 1 + normal(kWidth), "shift": normal(kWidth),
            "qkv": normal(kWidth, 3 * kWidth), "out": normal(kWidth, kWidth),
            "norm2": 1 + normal(kWidth), "up": normal(kWidth, 4 * kWidth),
            "bias": normal(4 * kWidth), "down": normal(4 * kWidth, kWidth),
        }  # fmt: skip
    return weights


def normalized(x, scale):
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale


def logits_of(weights, tokens):
    x = weights["tokens"][tokens] + weights["positions"]
    batch = x.shape[0]
    for layer in range(kLayers):
        h = weights[f"h{layer}"]
        y = normalized(x, h["norm1"]) + h["shift"]
        heads = [
            part.reshape(batch, kLength, kHeads, kWidth // kHeads).transpose(0, 2, 1, 3)
            for part in jnp.split(y @ h["qkv"], 3, -1)
        ]
        scores = heads[0] @ heads[1].transpose(0, 1, 3, 2) / np.sqrt(kWidth // kHeads)
        scores = jnp.where(jnp.tril(jnp.ones((kLength, kLength), bool)), scores, -1e9)
        mixed = jax.nn.softmax(scores, -1) @ heads[2]
        x = x + mixed.transpose(0, 2, 1, 3).reshape(batch, kLength, kWidth) @ h["out"]
        x = x + jax.nn.gelu(normalized(x, h["norm2"]) @ h["up"] + h["bias"]) @ h["down"]
    return normalized(x, weights["norm"]) @ weights["tokens"].T


def loss_of(weights, tokens, targets):
    shares = jax.nn.log_softmax(logits_of(weights, tokens), -1)
    return -jnp.take_along_axis(shares, targets[..., None], -1).mean()


def step(weights, momenta, tokens, targets):
    loss, gradients = jax.value_and_grad(loss_of)(weights, tokens, targets)
    mean = lambda x: jax.lax.psum(x, "ranks") / ranks
    momenta = jax.tree.map(lambda m, g: kMomentum * m + mean(g), momenta, gradients)
    return jax.tree.map(lambda w, m: w - kRate * m, weights, momenta), momenta, mean(loss)


def make_step():
    mesh = Mesh(np.array(jax.devices()[:ranks]), ("ranks",))
    specs = (P(), P(), P("ranks"), P("ranks"))
    mapped = shard_map(step, mesh=mesh, in_specs=specs, out_specs=(P(), P(), P()))
    return jax.jit(mapped, donate_argnums=(0, 1))


def train(dtype):
    """Weights and momenta after the last step, and the losses."""
    weights = draw_weights(np.random.default_rng(7))
    weights = jax.tree.map(lambda w: jnp.asarray(w, dtype), weights)
    momenta = jax.tree.map(jnp.zeros_like, weights)
    compiled, losses = make_step(), []
    for at in range(steps):
        tokens, targets = data_of(at)
        weights, momenta, loss = compiled(weights, momenta, tokens, targets)
        losses.append(float(loss))
    return jax.tree.leaves((weights, momenta)), losses


def data_of(at):
    random = np.random.default_rng(100 + at)
    tokens = random.integers(0, kVocabulary, (ranks * kExamples, kLength + 1)).astype(np.int32)
    for place in range(1, kLength + 1):  # mostly the same successor
        follows = random.random(len(tokens)) < 0.9
        tokens[:, place] = np.where(follows, (7 * tokens[:, place - 1] + 3) % kVocabulary,
                                    tokens[:, place])  # fmt: skip
    return tokens[:, :-1], tokens[:, 1:]


def make():
    weights = draw_weights(np.random.default_rng(7))
    momenta = jax.tree.map(np.zeros_like, weights)
    lowered = make_step().lower(weights, momenta, *data_of(0))
    (folder / "step.hlo").write_text(lowered.compiler_ir("hlo").as_hlo_text())
    leaves = jax.tree.leaves((weights, momenta))
    lines = [f"ranks {ranks}", f"steps {steps}"]
    for number, leaf in enumerate(leaves):
        leaf.tofile(folder / f"{number}.before")
        lines.append(f"parameter {number} f32 {' '.join(map(str, leaf.shape))}")
    for k in range(2):
        lines.append(f"data {len(leaves) + k} s32 {kExamples} {kLength}")
        for at in range(steps):
            for rank, part in enumerate(np.split(data_of(at)[k], ranks)):
                np.ascontiguousarray(part).tofile(folder / f"{len(leaves) + k}.{at}.{rank}")
    (folder / "manifest.txt").write_text("\n".join(lines) + "\n")


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

    check("losses", np.fromfile(folder / "losses.ours", np.float32), losses, double_losses)
    for number, (low, high) in enumerate(zip(single, double)):
        check(f"parameter {number}", np.fromfile(folder / f"{number}.ours", np.float32), low, high)
    print(f"{len(single)} weights and momenta, losses from {losses[0]:.3f} to {losses[-1]:.3f}: at "
          f"most {worst:.2f} of the bound (jax {jax.__version__}, {ranks} devices)")


make() if sys.argv[1] == "make" else compare()
