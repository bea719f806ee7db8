"""JAX's steps that carry random keys, and what JAX finds, for hlo_cases_test.

Usage, where `pip install jax` was run: python tests/hlo/random_keys.py FILE [--only=NAME,...]
keys.cases: --sample

Keys are threefry's: sums, rotations and exclusive ors of 32-bit integers, so that bits, and all
integers that are made of them, are the same everywhere.
"""

import argparse

import cases
import jax
import jax.numpy as jnp
import numpy as np

R = jax.random
key_of = R.wrap_key_data
kKey = np.array([0x3C6EF372, 0xFFFFFFFE], np.uint32)
kRows = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
kDraw = np.random.default_rng(0)
kWide, kBack = (kDraw.normal(size=size).astype(np.float32) for size in ((5, 8), (8, 4)))
kSteps = 10  # of the diffusion


def drawn(draw, *arguments):
    """A case of what `draw` makes of a key."""
    return lambda key, *rest: draw(key_of(key), *rest), (kKey, *arguments)


def dropout_step(key, w, x):
    key, own = R.split(key)

    def loss(w):
        h = jnp.tanh(x @ w)
        return jnp.mean(jnp.where(R.bernoulli(own, 0.8, h.shape), h / 0.8, 0) ** 2)

    value, gradient = jax.value_and_grad(loss)(w)
    return R.key_data(key), w - 0.1 * gradient, value


def betas():
    return jnp.linspace(1e-4, 0.02, kSteps)


def denoiser(x, at, wide, back):
    features = jnp.concatenate([x, at[:, None]], axis=1)
    return jax.nn.silu(features @ wide) @ back


def diffusion_step(key, wide, back, data):
    """One step of training: noise of a drawn step is predicted."""
    key, of_step, of_noise = R.split(key, 3)
    at = R.randint(of_step, (data.shape[0],), 0, kSteps)
    noise = R.normal(of_noise, data.shape)
    kept = jnp.cumprod(1 - betas())[at][:, None]
    noisy = jnp.sqrt(kept) * data + jnp.sqrt(1 - kept) * noise

    def loss(weights):
        return jnp.mean((denoiser(noisy, at / kSteps, *weights) - noise) ** 2)

    value, gradients = jax.value_and_grad(loss)((wide, back))
    wide, back = (w - 0.1 * g for w, g in zip((wide, back), gradients))
    return R.key_data(key), wide, back, value


def diffusion_sample(key, wide, back):
    """Samples, by all steps backwards."""
    kept = jnp.cumprod(1 - betas())
    key, own = R.split(key)

    def body(i, carried):
        x, key = carried
        at = kSteps - 1 - i
        key, own = R.split(key)
        noise = denoiser(x, jnp.full(x.shape[0], at / kSteps), wide, back)
        x = (x - betas()[at] / jnp.sqrt(1 - kept[at]) * noise) / jnp.sqrt(1 - betas()[at])
        return x + jnp.where(at > 0, jnp.sqrt(betas()[at]), 0) * R.normal(own, x.shape), key

    x, key = jax.lax.fori_loop(0, kSteps, body, (R.normal(own, kRows.shape), key))
    return x, R.key_data(key)


def walk(key):
    return jax.lax.fori_loop(
        0, 5, lambda i, at: at + R.randint(R.fold_in(key, i), (4,), -1, 2), jnp.zeros(4, jnp.int32)
    )


def scan(key):
    def step(carried, _):
        carried, own = R.split(key_of(carried))
        return R.key_data(carried), R.normal(own, (2,))

    return jax.lax.scan(step, R.key_data(key), None, length=3)


kCases = {
    "key": (lambda seed: R.key_data(R.key(seed)), (np.int32(-5),)),
    "bits": drawn(lambda k: R.bits(k, (7,))),
    "bits.u8": drawn(lambda k: R.bits(k, (7,), jnp.uint8)),
    "bits.u16": drawn(lambda k: R.bits(k, (7,), jnp.uint16)),
    "bits.scalar": drawn(R.bits),
    "split": drawn(lambda k: R.key_data(R.split(k, 5))),
    "fold_in": drawn(lambda k, i: R.key_data(R.fold_in(k, i)), np.int32(7)),
    "fold_in.constant": drawn(lambda k: R.key_data(R.fold_in(k, 7))),
    "constant": (lambda x: x + R.uniform(R.key(0), (5,)), (np.zeros(5, np.float32),)),
    "uniform": drawn(lambda k: R.uniform(k, (3, 5))),
    "uniform.range": drawn(lambda k: R.uniform(k, (3, 5), minval=-2, maxval=3)),
    "normal": drawn(lambda k: R.normal(k, (3, 5))),
    "truncated_normal": drawn(lambda k: R.truncated_normal(k, -2, 2, (9,))),
    "bernoulli": drawn(lambda k: R.bernoulli(k, 0.3, (17,))),
    "bernoulli.data": drawn(R.bernoulli, np.linspace(0, 1, 9, dtype=np.float32)),
    "randint": drawn(lambda k: R.randint(k, (9,), -1000000, 2000000000)),
    "randint.u8": drawn(lambda k: R.randint(k, (9,), 0, 200, jnp.uint8)),
    "randint.s8": drawn(lambda k: R.randint(k, (9,), -100, 100, jnp.int8)),
    "randint.s16": drawn(lambda k: R.randint(k, (9,), -100, 3000, jnp.int16)),
    "randint.data": drawn(
        lambda k, low, high: R.randint(k, (9,), low, high),
        np.int32(-3),
        np.arange(9, dtype=np.int32),
    ),
    "categorical": drawn(R.categorical, kRows),
    "categorical.axis": drawn(lambda k, logits: R.categorical(k, logits, axis=0), kRows),
    "categorical.shape": drawn(lambda k, logits: R.categorical(k, logits, shape=(6, 3)), kRows),
    "gumbel": drawn(lambda k: R.gumbel(k, (9,))),
    "laplace": drawn(lambda k: R.laplace(k, (9,))),
    "exponential": drawn(lambda k: R.exponential(k, (9,))),
    "logistic": drawn(lambda k: R.logistic(k, (9,))),
    "cauchy": drawn(lambda k: R.cauchy(k, (9,))),
    "rademacher": drawn(lambda k: R.rademacher(k, (9,))),
    "vmap": drawn(lambda k: jax.vmap(lambda own: R.normal(own, (3,)))(R.split(k, 4))),
    "scan": drawn(scan),
    "walk": drawn(walk),
    "dropout_step": drawn(dropout_step, kWide, kDraw.normal(size=(3, 5)).astype(np.float32)),
    "diffusion_step": drawn(diffusion_step, kWide, kBack, kRows),
    "diffusion_sample": drawn(diffusion_sample, kWide, kBack),
}

# What the message of the import has.
kRefused = {
    "permutation": (drawn(lambda k: R.permutation(k, 8)), "sort"),
    "gamma": (drawn(lambda k: R.gamma(k, 2.0, (4,))), "depends on data"),
    "poisson": (drawn(lambda k: R.poisson(k, 2.0, (4,))), "depends on data"),
    "rbg": (
        (lambda k: R.bits(key_of(k, impl="rbg"), (7,)), (np.arange(4, dtype=np.uint32),)),
        "rng-bit-generator",
    ),
}

# The keys of keys.cases.
kSample = (
    "bits.u8",
    "split",
    "normal",
    "truncated_normal",
    "bernoulli",
    "randint.s8",
    "categorical",
    "dropout_step",
    "permutation",
)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("file")
    options.add_argument("--only", default="", help="names, separated by commas")
    options.add_argument("--sample", action="store_true", help="those of keys.cases")
    options = options.parse_args()
    only = options.only.split(",") if options.only else [*kCases, *kRefused]
    if options.sample:
        only = kSample
    with open(options.file, "w") as out:
        for name in only:
            (step, arguments), refused = kRefused.get(name) or (kCases[name], None)
            step = jax.jit(step)
            text = step.lower(*arguments).compiler_ir("hlo").as_hlo_text()
            found = [] if refused else [np.asarray(a) for a in jax.tree.leaves(step(*arguments))]
            cases.write(out, name, 1, text, [[a] for a in arguments], [[a] for a in found], refused)


if __name__ == "__main__":
    main()
