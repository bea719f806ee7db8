"""What the programs of numpy_test.cc mean, in mathematics.

A function has its program's name, takes its tensors by name and the number of ranks, and returns
what the step leaves in states and outputs. Local tensors have the ranks as first axis, all others
are whole. Integers and booleans are NumPy's arrays, floats intervals.
"""

import numpy as np

from intervals import *
from slices import part_of


def mean_over_ranks(g, ranks):
    return g.sum_over_ranks() / ranks


def elements(x):
    """All axes."""
    return tuple(range(len(x.shape)))


def total(x, ranks):
    return x.sum(elements(x), parts=ranks)


def norm(x, ranks):
    return sqrt(total(x * x, ranks))


def correction(beta, step):
    """The correction of a moment's bias, computed in f64."""
    return cast(F32, 1 / (1 - power(constant(F64, beta), step)))


def moments(t, G):
    m = 0.9 * t["m"] + (1 - 0.9) * G
    v = 0.999 * t["v"] + (1 - 0.999) * (G * G)
    return m, v


# ---- Optimizers


def momentum(t, ranks):
    m = 0.9 * t["m"] + mean_over_ranks(t["g"], ranks)
    return {"m": m, "p": t["p"] - t["lr"] * m}


def adam_step(t, m, v):
    return (t["lr"] * correction(0.9, t["step"]) * m) / (
        sqrt(v * correction(0.999, t["step"])) + 1e-8
    )


def adam(t, ranks):
    """With weights in f16 and a copy of them in f32."""
    m, v = moments(t, cast(F32, t["g"].sum_over_ranks()) / ranks)
    w = t["w"] - adam_step(t, m, v)
    return {"m": m, "v": v, "w": w, "p": cast(F16, w)}


def adamw(t, ranks):
    m, v = moments(t, mean_over_ranks(t["g"], ranks))
    p = t["p"] - (adam_step(t, m, v) + t["lr"] * constant(F32, 0.01) * t["p"])
    return {"m": m, "v": v, "p": p}


def lamb(t, ranks):
    m, v = moments(t, mean_over_ranks(t["g"], ranks))
    r = (correction(0.9, t["step"]) * m) / (sqrt(v * correction(0.999, t["step"])) + 1e-8)
    u = r + 0.01 * t["p"]
    of_p, of_u = norm(t["p"], ranks), norm(u, ranks)
    one = constant(F32, 1)
    ratio = select(of_p > 0, select(of_u > 0, of_p / of_u, one), one)
    return {"m": m, "v": v, "p": t["p"] - (t["lr"] * ratio) * u}


def clip(t, ranks):
    """By the norm of the gradients of all tensors of a list."""
    tensors = [name[2:] for name in t if name.startswith("g.")]
    G = {i: mean_over_ranks(t["g." + i], ranks) for i in tensors}
    squares = Interval.stack([total(G[i] * G[i], ranks) for i in tensors])
    factor = minimum(1 / (sqrt(squares.sum(0)) + 1e-6), 1)
    results = {}
    for i in tensors:
        mine = {name: t[name + "." + i] for name in ("g", "p", "m", "v")}
        mine["lr"], mine["step"] = t["lr"], t["step"]
        m, v = moments(mine, G[i] * factor)
        p = mine["p"] - (adam_step(mine, m, v) + t["lr"] * constant(F32, 0.01) * mine["p"])
        results.update({"m." + i: m, "v." + i: v, "p." + i: p})
    return results


def loss_scale(t, ranks):
    """Adam; where a gradient is no finite number, nothing but the scale changes."""
    G = mean_over_ranks(t["g"], ranks)
    # Not how the program finds it: there it is an extreme over all elements.
    finite = absolute(G) < np.inf
    fine = Truth(finite.can_be_true.all(), finite.can_be_false.any())
    m, v = moments(t, G / t["scale"])
    p = t["p"] - adam_step(t, m, v)
    grown = t["good"] + 1 >= 2000
    zero = constant(F32, 0)
    return {
        "m": select(fine, m, t["m"]),
        "v": select(fine, v, t["v"]),
        "p": select(fine, p, t["p"]),
        "scale": select(fine, select(grown, t["scale"] * 2, t["scale"]), t["scale"] * 0.5),
        "good": select(fine, select(grown, zero, t["good"] + 1), zero),
    }


def adagrad(t, ranks):
    G = mean_over_ranks(t["g"], ranks)
    v = t["v"] + G * G
    return {"v": v, "p": t["p"] - t["lr"] * G / (sqrt(v) + 1e-10)}


def local_sgd(t, ranks):
    """One local step of w x = t, element by element, then a pull to the anchor."""
    v = 0.7 * t["v"] + mean_over_ranks(t["w"] - t["z"], ranks)
    z = t["z"] + v
    off = t["w"] * t["x"] - t["t"]
    m = 0.9 * t["m"] + (off + off) * t["x"]
    w = t["w"] - t["lr"] * m
    return {"v": v, "z": z, "m": m, "w": w - 0.6 * (w - z)}


def rmsprop(t, ranks):
    G = cast(F32, t["g"].sum_over_ranks()) / ranks
    v = 0.99 * t["v"] + 0.01 * (G * G)
    w = t["w"] - t["lr"] * G * rsqrt(v + 1e-8)
    return {"v": v, "w": w, "p": cast(BF16, w)}


# ---- Norms and losses


def layer_norm(t, ranks):
    centred = t["x"] - t["x"].mean(1, keepdims=True)
    variance = (centred * centred).mean(1, keepdims=True)
    y = centred * rsqrt(variance + 1e-5) * t["gain"] + t["bias"]
    return {"y": y, "whole": y}


def rms_norm(t, ranks):
    x = cast(F32, t["x"].sum_over_ranks())
    mean = (x * x).mean(1, keepdims=True)
    return {"y": cast(F16, x * rsqrt(mean + 1e-3))}


def cross_entropy(t, ranks):
    """And its gradient; an index that is no class adds nothing."""
    x = below_greatest(t["x"], 1)
    e = exp(x)
    sums = e.sum(1, keepdims=True)
    hit = np.arange(x.shape[1]) == t["index"]
    one, zero = constant(F32, 1), constant(F32, 0)
    mine = select(hit, log(sums) - x, zero)
    rows = x.shape[0]
    return {
        "loss": mine.sum((0, 1), parts=ranks) / rows,
        "gradient": (e / sums - select(hit, one, zero)) / rows,
    }


def losses(t, ranks):
    d = t["prediction"] - t["target"]
    near = absolute(d) < 1
    huber = select(near, 0.5 * (d * d), absolute(d) - 0.5)
    return {
        "mse": (d * d).mean(1).sum_over_ranks() / ranks,
        "huber": huber.mean(1).sum_over_ranks() / ranks,
        "gradient": select(near, d, maximum(minimum(d, 1), -1)),
        "worst": absolute(d).max(1).max(0),
    }


# ---- Products


def gelu_mlp(t, ranks):
    h = gelu(matmul(t["x"], t["v"]) + t["c"])
    # The summed dimension is cut over the ranks.
    return {"y": matmul(h, t["w"], parts=ranks) + t["b"]}


def attention(t, ranks):
    scores = matmul(t["q"], t["k"].swap(1, 2)) * 0.25
    e = exp(below_greatest(scores, 2))
    return {"y": matmul(e / e.sum(2, keepdims=True), t["v"])}


def embedding(t, ranks):
    """Rows of a table by index; zeros where there is no such row."""
    rows, index = t["table"].shape[0], t["index"]
    there = (index >= 0) & (index < rows)
    found = t["table"][np.where(there, index, 0)]
    found = select(there[:, None], found, constant(BF16, 0))
    return {"x": found, "y": cast(F32, found) * t["gain"]}


def bags(t, ranks):
    """Sums and means of rows; the ranks have parts of the table."""
    table = cast(F32, t["table"])
    rows = table.shape[0]

    def pooled(index, weight=None, mean=False):
        """The sum or mean per row of indices; indices of no row add nothing, and do not count."""
        there = (index >= 0) & (index < rows)
        found = table[np.where(there, index, 0)]
        if weight is not None:
            found = found * weight
        found = select(there[..., None], found, constant(F32, 0))
        divisor = np.maximum(there.sum(1), 1)[:, None] if mean else 1
        return summed_in_f32(found, 1, found.shape[1], ranks, divisor)

    # One bag has one row of indices; -1 is no row.
    many = len(t["ragged"])
    begins = np.clip(t["offset"], 0, many)
    ends = np.append(begins[1:], many)
    places = np.arange(many)
    inside = (places >= begins[:, None]) & (places < ends[:, None])
    weighted = pooled(np.where(inside, t["ragged"], -1), t["weight"][None, :, None])
    return {
        "sum": pooled(t["index"]),
        "mean": pooled(t["index"], mean=True),
        "weighted": weighted,
    }


def joined(t, ranks):
    a = t["a"].sum_over_ranks()
    b, u, v = t["b"], t["u"], t["v"]
    every = Interval.stack([b] * ranks)
    return {
        "s": 0.5 * t["s"] + Interval.join([a, b], 1),
        "p": Interval.join([t["a"], every, t["a"]], 2),
        "y": Interval.join([u, v, u], 1),
        "z": Interval.join([v, v], 0),
    }


def turned(t, ranks):
    a, b, c = t["a"].sum_over_ranks(), t["b"], t["c"]
    size, depth, width = c.shape[0], c.shape[1], b.shape[0]
    return {
        "s": 0.5 * t["s"] + a.map_ends(lambda x: x.reshape(size, width)[::-1, ::-1]),
        "whole": a.map_ends(lambda x: np.broadcast_to(x, (size, depth, width))),
        "rows": b.map_ends(lambda x: np.broadcast_to(x, (depth, width))),
        "back": b.map_ends(lambda x: np.broadcast_to(x[::-1], (2, width))),
        "part": c[:, ::-1],
        "third": np.broadcast_to(c.reshape(1, size, 1, depth), (2, size, 3, depth)),
    }


def scattered(t, ranks):
    """Rows that are added by index: of updates in f32, of updates with weights in parts."""
    u, w, index, rows = t["u"], t["w"], t["index"].reshape(-1), t["s"].shape[0]
    u, weight = u.map_ends(flat_rows), t["weight"].map_ends(lambda x: x.reshape(-1, 1))
    return {
        "s": 0.5 * t["s"] + added_rows(u, index, rows, weight, parts=ranks),
        "plain": added_rows(u, index, rows, parts=ranks),
        "whole": added_rows(w, t["index.of_w"], rows),
        "bags": added_rows(
            w.map_ends(lambda x: np.repeat(x, t["index.of_bags"].shape[1], axis=0)),
            t["index.of_bags"].reshape(-1),
            rows,
        ),
    }


def flat_rows(x):
    """All dimensions but the last as one."""
    return x.reshape(-1, x.shape[-1])


def in_use(count, places):
    """[..., places, 1]: which rows are kept of so many places."""
    return (np.arange(places) < count[..., None])[..., None]


def kept(t, ranks):
    x, y = t["x"].sum_over_ranks(), t["y"]
    zero = constant(x.type, 0)
    return {
        "whole": select(in_use(t["count"], x.shape[2]), x, zero),
        "part": select(in_use(t["count"], y.shape[2]), y, zero),
    }


def grouped(t, ranks):
    """One matrix per group, and one for the rows of all of them."""
    x = t["x"]
    return {
        "x_up": matmul(x, t["up"]),
        "x_down": matmul(x, t["down"].swap(2, 3)),
        "x_one": matmul(x, t["one"]),
    }


def scaled_products(t, ranks):
    x = scaled(t["x"], t["x.s"])
    w = scaled(t["w"], t["w.s"])
    return {
        "rows": matmul(x, w.swap(0, 1)).sum_over_ranks(),
        "squares": matmul(x.swap(1, 2), x).sum_over_ranks(),
        "parts": matmul(scaled(t["u"], t["u.s"]), scaled(t["v"], t["v.s"]), parts=ranks),
    }


def moe(t, ranks):
    """Each rank has its part of the groups, and takes and adds rows of its own tokens."""
    x, token, count, weight = t["x"], t["token"], t["count"], t["weight"]
    tokens, zero = x.shape[1], constant(F32, 0)
    of_rank = [part_of(token.shape[1], ranks, r) for r in range(ranks)]
    there = (token >= 0) & (token < tokens)
    owner = np.zeros_like(token)
    for r, (begin, end) in enumerate(of_rank):
        owner[:, begin:end] = r
    n = select(there[..., None], x[owner, np.where(there, token, 0)], zero)
    n = select(in_use(count, token.shape[2]), n, zero)
    gate, up = (matmul(n, t[name].swap(2, 3)) for name in ("gate", "up"))
    z = matmul(silu(gate) * up, t["down"].swap(2, 3))
    z = select(in_use(count, token.shape[2]), z, zero)
    y = []
    for begin, end in of_rank:
        mine = np.s_[:, begin:end]
        rows = z[mine].map_ends(flat_rows)
        factors = weight[mine].map_ends(lambda f: f.reshape(-1, 1))
        y.append(added_rows(rows, token[mine].reshape(-1), tokens, factors))
    return {"y": Interval.stack(y)}


# ---- Extremes, integers, types, functions, random numbers


def extremes(t, ranks):
    x, y = t["x"], t["y"]
    low = minimum(x, y)
    return {
        "low": low,
        "high": maximum(x, y),
        "greatest": x.max(1).max(0),
        "least": low.min(1).min(0),
        "highest": x.max(0),
        "lowest": low.min(0),
        "first": x.low.argmax(1).astype(np.int32),
        "which": t["z"].low.argmax(1)[:, None],
        "also": t["z"].low.argmax(1)[:, None].astype(np.int32),
        "row": t["z"].low.argmax(0)[None, :].astype(np.int32),
        "rectified": select(0 > x, constant(F32, 0), x),
        "sign": select(x > 0, constant(F32, 1), select(x < 0, constant(F32, -1), x)),
    }


def integers(t, ranks):
    with np.errstate(all="ignore"):
        a, b, n, u = t["a"], t["b"], t["n"], t["u"]
        truncated = np.abs(a.astype(np.int64)) // np.maximum(np.abs(b.astype(np.int64)), 1)
        quotient = np.where(b == 0, 0, np.sign(a) * np.sign(b) * truncated)
        return {
            "s": t["s"] + a.sum(0, dtype=np.int32) * b[0],
            "quotient": quotient.astype(np.int32),
            "sum": n.sum(0, dtype=np.int64) - 7,
            "most": n.max((0, 1)),
            "bytes": u.sum(0, dtype=np.uint8) * np.uint8(3),
            "which": a > np.sign(b),
        }


def bits(t, ranks):
    with np.errstate(all="ignore"):
        a, b, c, d, e, f = (t[name] for name in "abcdef")
        some = np.maximum(b, 1)
        clipped = [np.clip(x, i.min, i.max).astype(i.dtype) for x, i in (
            (d, np.iinfo(np.int8)), (c.astype(np.int64), np.iinfo(np.uint32)),
            (a.astype(np.int64), np.iinfo(np.int16)))]  # fmt: skip
        return {
            "mixed": (a << np.uint32(13)) ^ (a >> np.uint32(19) | b & np.uint32(255)),
            "total": a.sum(0, dtype=np.uint32) * np.uint32(3),
            "least": (~b).min(0),
            "quotient": np.where(b == 0, 0, a // some).astype(np.uint32),
            "rest": np.where(b == 0, 0, a % some).astype(np.uint32),
            "arithmetic": c >> np.int8(3),
            "logical": (c.view(np.uint8) >> np.uint8(3)).view(np.int8),
            "gone": np.where(d < 0, -1, 0).astype(np.int16),
            "small": c.sum(0, dtype=np.int8),
            "sixteen": (d - np.int16(3) * d).max(0) + np.int16(0) * d.min(0),
            "wide": e * e + e,
            "folded": a.sum(dtype=np.uint32),
            "most": e.max(),
            "saturated": clipped[0],
            "natural": clipped[1],
            "back": clipped[2],
            "long": (f & np.uint64(1023)) + e.astype(np.uint64),
                        "floats": (a >> np.uint32(9) | np.uint32(1065353216)).view(np.float32),
            "halves": e.view(np.int16),
            "less": a < b,
        }


def statistics(t, ranks):
    """In f64, of elements on all ranks."""
    x = t["x"]
    count = x.shape[1]
    mean = x.sum(1).sum_over_ranks() / count / ranks
    d = x - mean
    variance = (d * d).sum(1).sum_over_ranks() / count / ranks
    most = x.max(1).max(0)
    return {
        "mean": mean,
        "deviation": sqrt(variance),
        "logsumexp": most + log(exp(x - most).sum(1).sum_over_ranks()),
    }


def casts(t, ranks):
    x = t["x"].low  # exact

    def saturated(dtype):
        info = np.iinfo(dtype)
        clipped = np.clip(np.trunc(np.nan_to_num(x, nan=0.0)), float(info.min), float(info.max))
        return clipped.astype(dtype)

    return {
        "half": cast(F16, t["x"]),
        "brain": cast(BF16, t["x"]),
        "double": cast(F64, t["x"]),
        "int": saturated(np.int32),
        "byte": saturated(np.uint8),
        "truth": x != 0,
        "back": cast(F32, t["h"]),
        "up": cast(F32, t["w"]),
    }


def functions(t, ranks):
    x, y = t["x"], t["y"]
    return {
        "exp": exp(x),
        "log": log(x),
        "tanh": tanh(x),
        "erf": erf(x),
        "sigmoid": sigmoid(x),
        "silu": silu(x),
        "gelu": gelu(x),
        "sqrt": sqrt(x),
        "rsqrt": rsqrt(x),
        "pow": power(absolute(x), y),
        "quotient": x / y,
        "log1p": log1p(absolute(x)),
        "expm1": expm1(x),
        "sin": of_exact(np.sin, x),
        "cos": of_exact(np.cos, y),
        "floor": x.map_ends(np.floor),
        "ceil": y.map_ends(np.ceil),
        "round": (x * 4).map_ends(np.rint),
        "rem": x.exact(np.fmod, y),
        "less": x < y,
        "differs": ~(x.low == y.low),
        "between": (x.low < y.low) & ~(x.low < -1) | (y.low > 2),
    }


def philox(counter, key):
    """Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3)."""
    c, k = [np.uint64(x) for x in counter], [key & 0xFFFFFFFF, key >> 32]
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        keys = [np.uint64(x) for x in k]
        c = [(b >> half) ^ c[1] ^ keys[0], b & low, (a >> half) ^ c[3] ^ keys[1], a & low]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(c)


def words(shape, seed, stream):
    """One for each element of a tensor."""
    index = np.arange(np.prod(shape, dtype=np.int64)).astype(np.uint64)
    block, zero = index // np.uint64(4), np.zeros_like(index)
    low, high = block & np.uint64(0xFFFFFFFF), block >> np.uint64(32)
    counter = [low, high, zero + np.uint64(stream), zero]
    drawn = philox(counter, int(seed) % 2**64)
    return drawn[index % np.uint64(4), np.arange(len(index))].reshape(shape)


def random(t, ranks):
    x = t["x"].sum_over_ranks()
    kept = words(x.shape, t["seed"], 7) >= 0.1 * 2**32
    dropped = select(kept, x * constant(F32, 1 / (1 - 0.1)), constant(F32, 0))
    # Stochastic rounding adds the upper half of the word to the half of the bits that bf16 lacks.
    r = t["r"].low.astype(np.float32)
    bits = r.view(np.uint32) + (words(r.shape, t["seed"], 9) >> np.uint64(16)).astype(np.uint32)
    rounded_up = (bits & np.uint32(0xFFFF0000)).view(np.float32)
    return {"y": dropped, "b": Interval(BF16, np.where(np.isfinite(r), rounded_up, r))}
