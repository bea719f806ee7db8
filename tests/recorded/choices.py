"""Programs with choices that follow from floats: routers, k-means, samplers, ..., and what every
rank should find, as NumPy computes it.

    choices.py --seed=N --extent=E > FILE

FILE has, as recording.py says, each of CASES twice: on numbers with which arithmetic is exact, and
on any on which choices are as certain as MARGIN says. Dimensions have E elements at most.
"""

import argparse
import sys

import numpy as np

import recording

MARGIN = 1e-3  # between what is chosen and what is not; kernels are right to 1e-5 or so


class Uncertain(Exception):
    """A rounding could turn a choice."""


class Data:
    """Draws of one program: all sums and products of f32 are exact, or rounded."""

    def __init__(self, seed, exact, most):
        self.random = np.random.default_rng(seed)
        self.exact = exact
        self.ranks = int(self.random.integers(1, 4))
        self.most = most

    def extent(self, least=1, most=None):
        return int(self.random.integers(least, (most or self.most) + 1))

    def reals(self, *shape, most=8):
        if self.exact:
            return self.random.integers(-most, most + 1, shape).astype("f4")
        return (self.random.standard_normal(shape) * most / 2).astype("f4")

    def positive(self, *shape):
        return np.abs(self.reals(*shape)) + np.float32(1)

    def local(self, *shape, of=None):
        return [(of or self.reals)(*shape) for _ in range(self.ranks)]

    # ---- Choices, which must be certain.
    def certain(self, distances):
        if not self.exact and np.any(np.abs(distances) < MARGIN):
            raise Uncertain()

    def argmax(self, scores, axis=1):
        ordered = np.sort(scores, axis)
        if scores.shape[axis] > 1:
            self.certain(np.diff(np.take(ordered, (-2, -1), axis), axis=axis))
        return np.argmax(scores, axis).astype("i4")

    def greater(self, a, b):
        self.certain(a - b)
        return a > b

    def floor(self, a):
        self.certain(a - np.round(a))
        return np.floor(a)

    def round(self, a):
        self.certain(a - np.floor(a) - 0.5)
        return np.round(a)


class Case:
    """A program, its inputs and states, and what it should make of them. `rounded`: what has a
    quotient, which no numbers make exact."""

    def __init__(self, text, given, want, rounded=()):
        self.text, self.given, self.want, self.rounded = text, given, want, list(rounded)


def one_hot(indices, extent):
    return (indices[:, None] == np.arange(extent)).astype("f8")


def f8(a):
    return [part.astype("f8") for part in a] if isinstance(a, list) else a.astype("f8")


def router_top1(data):
    T, H, E = data.extent(), data.extent(1, 24), data.extent(1, 9)
    x, w, v = data.local(T, H), data.reals(H, E), data.reals(E, H)
    scores = [a @ f8(w) for a in f8(x)]
    experts = [data.argmax(s) for s in scores]
    hot = [one_hot(e, E) for e in experts]
    return Case(f"""
input x : f32[{T}, {H}] local
input w : f32[{H}, {E}] replicated
input v : f32[{E}, {H}] replicated
s = matmul(x, w)
e = argmax(i32, s, 1)
output expert = e
output count = all_reduce(sum, sum(cast(i32, iota(i32, s, 1) == e), 0))
output routed = all_reduce(sum, scatter_add(x, reshape(e, [{T}]), [{E}, {H}]))
output y = amax(s, 1) * gather(v, reshape(e, [{T}]), 0)
""", {"x": x, "w": w, "v": v}, {
        "expert": [e[:, None] for e in experts],
        "count": sum(h.sum(0, keepdims=True) for h in hot).astype("i4"),
        "routed": sum(h.T @ a for h, a in zip(hot, f8(x))).astype("f4"),
        "y": [(s.max(1, keepdims=True) * f8(v)[e]).astype("f4") for s, e in zip(scores, experts)]})


def router_top2_with_places(data):
    """Each expert has room for so many tokens of each rank."""
    T, H, E, C = data.extent(1, 40), data.extent(1, 24), data.extent(2, 9), data.extent(1, 6)
    x, w = data.local(T, H), data.reals(H, E)
    first, second, place, kept = [], [], [], []
    for a in f8(x):
        scores = a @ f8(w)
        first.append(data.argmax(scores))
        rest = np.where(one_hot(first[-1], E) == 1, -np.inf, scores)
        second.append(data.argmax(rest))
        hot = one_hot(first[-1], E)
        place.append(((np.cumsum(hot, 0) - hot) * hot).sum(1, keepdims=True).astype("i4"))
        kept.append(np.minimum(hot.sum(0, keepdims=True), C).astype("i4"))
    return Case(f"""
input x : f32[{T}, {H}] local
input w : f32[{H}, {E}] replicated
s = matmul(x, w)
a = argmax(i32, s, 1)
hot = iota(i32, s, 1) == a
b = argmax(i32, select(hot, const(-inf, f32), s), 1)
square = expand(a, [{T}, {T}])
before = cast(f32, iota(i32, square, 1) < iota(i32, square, 0))
place = cast(i32, sum(matmul(before, cast(f32, hot)) * cast(f32, hot), 1))
output first = a
output second = b
output at = place
output load = all_reduce(max, sum(cast(i32, hot and place < {C}), 0))
""", {"x": x, "w": w}, {
        "first": [a[:, None] for a in first], "second": [b[:, None] for b in second],
        "at": place, "load": np.max(kept, 0)})


def k_means(data):
    N, D, K = data.extent(), data.extent(1, 12), data.extent(1, 7)
    x, c = data.local(N, D), data.reals(K, D)
    nearest = [data.argmax(-((a[:, None] - f8(c)) ** 2).sum(2)) for a in f8(x)]
    hot = [one_hot(n, K) for n in nearest]
    count = sum(h.sum(0) for h in hot)[:, None]
    total = sum(h.T @ a for h, a in zip(hot, f8(x)))
    return Case(f"""
input x : f32[{N}, {D}] local
state c : f32[{K}, {D}] replicated
far = sum(x * x, 1) - 2 * matmul(x, c, transpose_b) + reshape(sum(c * c, 1), [1, {K}])
hot = cast(f32, iota(i32, far, 1) == argmax(i32, -far, 1))
n = all_reduce(sum, matmul(hot, expand(const(1, f32), [{N}, 1]), transpose_a))
total = all_reduce(sum, matmul(hot, x, transpose_a))
output count = cast(i64, n)
output nearest = argmax(i32, -far, 1)
update(c, select(n > 0, total / max(n, 1), c))
""", {"x": x, "c": c}, {
        "count": count.astype("i8"), "nearest": [n[:, None] for n in nearest],
        "c": np.where(count > 0, total / np.maximum(count, 1), f8(c)).astype("f4")},
        rounded=["c"])


def straight_through(data):
    """A quantiser to the nearest code, whose gradient passes it by."""
    N, D, K = data.extent(), data.extent(1, 12), data.extent(1, 9)
    x, t, codes = data.local(N, D), data.local(N, D), data.reals(K, D)
    nearest = [data.argmax(-((a[:, None] - f8(codes)) ** 2).sum(2)) for a in f8(x)]
    return Case(f"""
input x : f32[{N}, {D}] local
input t : f32[{N}, {D}] local
input codes : f32[{K}, {D}] replicated
state used : i64[{K}] replicated
far = sum(x * x, 1) - 2 * matmul(x, codes, transpose_b) + reshape(sum(codes * codes, 1), [1, {K}])
k = argmax(i32, -far, 1)
q = gather(codes, reshape(k, [{N}]), 0)
y = x + stop_gradient(q - x)
loss = sum((y - t) * (y - t))
output dx = grad(loss, x)
output code = cast(u8, k)
update(used, used + all_reduce(sum, reshape(sum(cast(i64, iota(i32, far, 1) == k), 0), [{K}])))
""", {"x": x, "t": t, "codes": codes, "used": np.arange(K) - 2**62}, {
        "dx": [(2 * (f8(codes)[k] - b)).astype("f4") for k, b in zip(nearest, f8(t))],
        "code": [k[:, None].astype("u1") for k in nearest],
        "used": np.arange(K) - 2**62 + sum(one_hot(k, K).sum(0).astype("i8") for k in nearest)})


def beam_step(data):
    """The two best continuations of all beams, and the histories that they continue."""
    B, V, L = data.extent(1, 5), data.extent(2, 40), data.extent(1, 6)
    scores, chances = data.local(B, 1), data.local(B, V)
    history = data.random.integers(0, V, (B, L)).astype("i4")
    tokens, parents, best = [], [], []
    for a, b in zip(f8(scores), f8(chances)):
        every = (a + b).reshape(1, -1)
        first = data.argmax(every)
        every[0, first] = -np.inf
        both = np.concatenate([first, data.argmax(every)])
        tokens.append((both % V)[None])
        parents.append(both // V)
        best.append((a + b).reshape(-1)[both].astype("f4"))
    return Case(f"""
input scores : f32[{B}, 1] local
input chances : f32[{B}, {V}] local
input history : i32[{B}, {L}] replicated
every = reshape(scores + chances, [1, {B * V}])
first = argmax(i32, every, 1)
rest = select(iota(i32, every, 1) == first, const(-inf, f32), every)
both = concat(first, argmax(i32, rest, 1), 1)
output token = rem(both, {V})
output continued = gather(history, reshape(both / {V}, [2]), 0)
output best = gather(reshape(every, [{B * V}]), reshape(both, [2]), 0)
output longest = all_reduce(max, amax(rem(both, {V})))
""", {"scores": scores, "chances": chances, "history": history}, {
        "token": tokens, "continued": [history[p] for p in parents], "best": best,
        "longest": np.max(tokens).astype("i4")})


def histogram(data):
    N, K = data.extent(), data.extent(1, 20)
    x = data.local(N)
    bins = [np.clip(data.floor(a * 0.5 + K // 2), -1, K).astype("i4") for a in f8(x)]
    counts = sum(one_hot(b, K).sum(0) for b in bins)
    return Case(f"""
input x : f32[{N}] local
bin = cast(i32, min(max(floor(x * 0.5 + {K // 2}), -1), {K}))
ones = expand(const(1, f32), [{N}, 1])
output summed = all_reduce(sum, scatter_add(ones, bin, [{K}, 1]))
of = expand(reshape(bin, [{N}, 1]), [{N}, {K}])
output counted = all_reduce(sum, sum(cast(u16, of == iota(i32, of, 1)), 0))
output outside = all_reduce(sum, sum(cast(i64, bin < 0 or bin >= {K})))
""", {"x": x}, {
        "summed": counts[:, None].astype("f4"), "counted": counts[None].astype("u2"),
        "outside": np.sum([(b < 0) | (b >= K) for b in bins]).astype("i8")})


def majority_vote(data):
    """SignSGD: each rank votes by the signs of its gradients."""
    N = data.extent()
    g, p = data.local(N, of=lambda n: data.reals(n, most=2)), data.reals(N)
    vote = sum(np.sign(a) for a in f8(g))
    return Case(f"""
input g : f32[{N}] local
state p : f32[{N}] replicated
state flips : i32[] replicated
vote = all_reduce(sum, cast(i8, sign(g)))
output votes = vote
update(p, p - 0.25 * cast(f32, sign(vote)))
update(flips, flips + sum(cast(i32, vote < 0)))
""", {"g": g, "p": p, "flips": np.array(7, "i4")}, {
        "votes": vote.astype("i1"), "p": (f8(p) - 0.25 * np.sign(vote)).astype("f4"),
        "flips": np.array(7 + (vote < 0).sum(), "i4")})


def skipped_step(data):
    """A loss scale: no rank takes the step where a gradient of any is infinite."""
    N = data.extent()
    g, p = data.local(N), data.reals(N)
    bad = bool(data.random.integers(2))
    if bad:
        g[data.random.integers(data.ranks)][data.random.integers(N)] = data.random.choice(
            (np.inf, np.nan))
    mean = sum(f8(g))
    return Case(f"""
input g : f32[{N}] local
state p : f32[{N}] replicated
state scale : f32[] replicated
state good : i64[] replicated
bad = all_reduce(max, cast(i32, not (amax(abs(g)) < const(inf, f32)))) > 0
output skipped = bad
update(p, select(bad, p, p - all_reduce(sum, g) / scale))
update(scale, select(bad, scale / 2, scale))
update(good, select(bad, good * 0, good + 1))
""", {"g": g, "p": p, "scale": np.array(1024, "f4"), "good": np.array(2**53, "i8")}, {
        "skipped": np.array(bad),
        "p": p if bad else (f8(p) - mean / 1024).astype("f4"),
        "scale": np.array(512 if bad else 1024, "f4"),
        "good": np.array(0 if bad else 2**53 + 1, "i8")})


def confusion(data):
    N, H, K = data.extent(), data.extent(1, 20), data.extent(1, 6)
    x, w = data.local(N, H), data.reals(H, K)
    labels = [data.random.integers(0, K, N).astype("i4") for _ in x]
    found = [data.argmax(a @ f8(w)) for a in f8(x)]
    return Case(f"""
input x : f32[{N}, {H}] local
input labels : i32[{N}] local
input w : f32[{H}, {K}] replicated
s = matmul(x, w)
e = argmax(i32, s, 1)
of = expand(reshape(labels, [{N}, 1]), [{N}, {K}])
truth = cast(f32, of == iota(i32, of, 1))
found = cast(f32, iota(i32, s, 1) == e)
output table = all_reduce(sum, cast(i32, matmul(truth, found, transpose_a)))
output right = all_reduce(sum, sum(cast(i64, reshape(e, [{N}]) == labels)))
""", {"x": x, "labels": labels, "w": w}, {
        "table": sum(one_hot(t, K).T @ one_hot(e, K) for t, e in zip(labels, found)).astype("i4"),
        "right": np.sum([(t == e).sum() for t, e in zip(labels, found)]).astype("i8")})


def sampler(data):
    """By the inverse of the cumulative distribution."""
    N, V = data.extent(), data.extent(1, 24)
    weights = data.local(N, V, of=data.positive)
    if data.exact:
        u = [(data.random.integers(0, 64, (N, 1)) / 64).astype("f4") for _ in weights]
    else:
        u = [data.random.random((N, 1)).astype("f4") for _ in weights]
    drawn = []
    for w, at in zip(f8(weights), f8(u)):
        cumulative = np.cumsum(w, 1)
        goal = at * cumulative[:, -1:]
        data.certain(cumulative - goal)
        drawn.append((cumulative <= goal).sum(1, keepdims=True).astype("i4"))
    return Case(f"""
input weights : f32[{N}, {V}] local
input u : f32[{N}, 1] local
square = expand(const(0, i32), [{V}, {V}])
upper = cast(f32, iota(i32, square, 0) <= iota(i32, square, 1))
c = matmul(weights, upper)
token = sum(cast(i32, c <= u * sum(weights, 1)), 1)
output drawn = token
output most = all_reduce(max, amax(token))
""", {"weights": weights, "u": u}, {"drawn": drawn, "most": np.max(drawn).astype("i4")})


def eight_bits(data):
    """Products of weights that are rounded to i8 by the greatest of all ranks."""
    N, D = data.extent(), data.extent(1, 30)
    x = data.local(N, D)
    top = np.float32(2**int(data.random.integers(3, 7))) * 127 / 128 if data.exact else None
    if data.exact:
        x[-1][0, 0] = top
    most = max(np.abs(a).max() for a in f8(x))
    if data.exact and most != top:
        raise Uncertain()
    by = 127 / most
    q = [data.round(a * by).astype("i1") for a in f8(x)]
    wide = [a.astype("i4") for a in q]
    return Case(f"""
input x : f32[{N}, {D}] local
most = all_reduce(max, amax(abs(x)))
q = cast(i8, round(x * (127 / most)))
w = cast(i32, q)
output rounded = q
output squares = all_reduce(sum, sum(w * w, 0))
output wrapped = all_reduce(sum, q * q)
output back = cast(f32, q) * (most / 127)
""", {"x": x}, {
        "rounded": q, "squares": sum((w * w).sum(0, keepdims=True) for w in wide).astype("i4"),
        "wrapped": sum(a * a for a in q).astype("i1"),
        "back": [(w * (most / 127)).astype("f4") for w in wide]})


def clipped(data):
    """A branch by the norm of all gradients, and how often it was taken."""
    N = data.extent()
    g = data.local(N)
    squares = (sum(f8(g)) ** 2).sum()
    limit = float(2**int(data.random.integers(0, 10)))
    large = bool(data.greater(squares, limit**2))
    return Case(f"""
input g : f32[{N}] local
state taken : u32[] replicated
G = all_reduce(sum, g)
large = sum(G * G) > {limit * limit}
output y = select(large, G * 0.5, G)
update(taken, taken + cast(u32, large))
""", {"g": g, "taken": np.array(2**32 - 1, "u4")}, {
        "y": (sum(f8(g)) * (0.5 if large else 1)).astype("f4"),
        "taken": np.array(0 if large else 2**32 - 1, "u4")})


def hashed_rows(data):
    """Rows share a bucket where the signs of some projections agree."""
    N, D, B = data.extent(), data.extent(1, 20), data.extent(1, 6)
    x, planes = data.local(N, D), data.reals(D, B)
    bits = [data.greater(a @ f8(planes), 0.25) for a in f8(x)]
    code = [(b << np.arange(B)).sum(1).astype("i4") for b in bits]
    return Case(f"""
input x : f32[{N}, {D}] local
input planes : f32[{D}, {B}] replicated
above = cast(i32, matmul(x, planes) > 0.25)
code = sum(shift_left(above, iota(i32, above, 1)), 1)
output bucket = code
ones = expand(const(1, f32), [{N}, 1])
output sizes = all_reduce(sum, scatter_add(ones, reshape(code, [{N}]), [{2**B}, 1]))
output any = all_reduce(max, bit_xor(code, {2**B - 1}))
""", {"x": x, "planes": planes}, {
        "bucket": [c[:, None] for c in code],
        "sizes": sum(one_hot(c, 2**B).sum(0) for c in code)[:, None].astype("f4"),
        "any": np.max([c ^ (2**B - 1) for c in code], 0)[:, None]})


def decision_tree(data):
    """A tree of three levels, whose features are sums, which round."""
    N, D = data.extent(), data.extent(1, 9)
    x, y = data.local(N, D), data.local(N, D)
    features = data.random.integers(0, D, 7).astype("i4")
    thresholds, leaves = data.reals(7), data.reals(8)
    at = []
    for a, b in zip(f8(x), f8(y)):
        node = np.zeros(N, "i4")
        for _ in range(3):
            asked = (a + b)[np.arange(N), features[node]]
            node = 2 * node + 1 + data.greater(asked, f8(thresholds)[node])
        at.append((node - 7).astype("i4"))
    levels = "".join(f"""f{i} = reshape(gather(features, n{i}, 0), [{N}, 1])
a{i} = reshape(sum(select(iota(i32, v, 1) == f{i}, v, 0), 1), [{N}])
n{i + 1} = 2 * n{i} + 1 + cast(i32, a{i} > gather(thresholds, n{i}, 0))
""" for i in range(3))
    return Case(f"""
input x : f32[{N}, {D}] local
input y : f32[{N}, {D}] local
input features : i32[7] replicated
input thresholds : f32[7] replicated
input leaves : f32[8] replicated
v = x + y
n0 = expand(const(0, i32), [{N}])
{levels}output leaf = n3 - 7
output total = all_reduce(sum, sum(gather(leaves, n3 - 7, 0)))
""", {"x": x, "y": y, "features": features, "thresholds": thresholds, "leaves": leaves}, {
        "leaf": at, "total": np.sum([f8(leaves)[a].sum() for a in at]).astype("f4")})


def ranked(data):
    """Sorts by counting, for the median and for clipping by it."""
    N = data.extent(1, 60)
    x = data.local(N)
    order = [np.argsort(np.argsort(a, kind="stable"), kind="stable").astype("i4") for a in x]
    return Case(f"""
input x : f32[{N}] local
a = expand(reshape(x, [{N}, 1]), [{N}, {N}])
b = reshape(x, [1, {N}])
first = b < a or (b == a and iota(i32, a, 1) < iota(i32, a, 0))
place = sum(cast(i32, first), 1)
output order = place
output median = sum(select(reshape(place, [{N}]) == {N // 2}, x, 0))
output sorted = scatter_add(reshape(x, [{N}, 1]), reshape(place, [{N}]), [{N}, 1])
output moved = all_reduce(sum, sum(cast(i64, place != iota(i32, place, 0))))
""", {"x": x}, {
        "order": [o[:, None] for o in order],
        "median": [np.sort(a)[N // 2] for a in x], "sorted": [np.sort(a)[:, None] for a in x],
        "moved": np.sum([(o != np.arange(N)).sum() for o in order]).astype("i8")})


def best_of_ranks(data):
    """All take the weights of the rank whose loss is least; of equal ones, of the first."""
    N = data.extent()
    t, p = data.local(N), data.local(N)
    losses = np.array([((a - b) ** 2).sum() for a, b in zip(f8(p), f8(t))])
    winner = int(data.argmax(-losses, 0))
    return Case(f"""
input t : f32[{N}] local
input p : f32[{N}] local
loss = sum((p - t) * (p - t))
least = all_reduce(min, loss)
who = all_reduce(min, select(loss == least, rank(i32), world(i32)))
output winner = who
output best = all_reduce(sum, select(rank(i32) == who, p, 0))
""", {"t": t, "p": p}, {"winner": np.array(winner, "i4"), "best": p[winner]})


CASES = (router_top1, router_top2_with_places, k_means, straight_through, beam_step, histogram,
         majority_vote, skipped_step, confusion, sampler, eight_bits, clipped, hashed_rows,
         decision_tree, ranked, best_of_ranks)


def made(seed, number, most):
    """The ranks, the program's name and itself: the first draw that is certain."""
    make = CASES[number // 2]
    for attempt in range(10000):
        data = Data([seed, number, attempt], number % 2 == 0, most)
        try:
            return data, make.__name__ + ("_exact" if data.exact else ""), make(data)
        except Uncertain:
            pass
    raise AssertionError("%s: no draw is certain" % make.__name__)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--extent", type=int, default=64)
    asked = parser.parse_args()
    with open(sys.stdout.fileno(), "wb", closefd=False) as out:
        for number in range(2 * len(CASES)):
            data, name, case = made(asked.seed, number, asked.extent)
            recording.write(out, number, data.ranks, "coconet 1\nprogram " + name + case.text,
                            case.rounded if data.exact else list(case.want),
                            [(case.given, case.want)])


if __name__ == "__main__":
    main()
