"""What torch_bench.py measures, on one rank: cases.py --rank=0 --ranks=2 --case=adam ...

Contenders run in rounds, in an order that changes; a sample is as many steps as last some
milliseconds, after an untimed one, and has the time of the slowest rank. Rank 0 prints a line of
JSON.
"""

import argparse
import json
import math
import os
import random
import time

import torch
import torch.distributed as dist

import coconet
import coconet.torch as fused

SAMPLE_S = 5e-3
ROUNDS = 7  # at least


def median(samples):
    """The median and its 95 % confidence interval by order statistics."""
    ordered, n = sorted(samples), len(samples)
    margin = 0.98 * math.sqrt(n)
    low, high = max(0, int(n / 2 - margin)), min(n - 1, int(math.ceil(n / 2 + margin)))
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    return middle, ordered[low], ordered[high]


def rounds(contenders, seconds, least=ROUNDS):
    """Seconds per step of each contender, in samples of the slowest rank."""
    counts = {}
    for name, step in contenders.items():
        step()
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(3):
            step()
        took = torch.tensor([(time.perf_counter() - begin) / 3])
        dist.all_reduce(took, dist.ReduceOp.MAX)
        counts[name] = max(1, math.ceil(SAMPLE_S / took.item()))
    samples = {name: [] for name in contenders}
    order, is_last, begin = random.Random(1), torch.zeros(1), time.perf_counter()
    while not is_last.item():
        for name in order.sample(list(contenders), len(contenders)):
            step = contenders[name]
            step()
            dist.barrier()
            start = time.perf_counter()
            for _ in range(counts[name]):
                step()
            samples[name].append((time.perf_counter() - start) / counts[name])
            dist.barrier()
        is_done = len(samples[name]) >= least and time.perf_counter() - begin > seconds
        is_last[0] = float(is_done)
        dist.broadcast(is_last, 0)
    slowest = {}
    for name, taken in samples.items():
        times = torch.tensor(taken, dtype=torch.float64)
        dist.all_reduce(times, dist.ReduceOp.MAX)
        slowest[name] = times.tolist()
    return slowest


def torch_optimizer(kind, parameters, **arguments):
    """torch's, fused where this version can on the CPU; and which it is."""
    for form in ("fused", "foreach"):
        try:
            made = kind(parameters, **{form: True}, **arguments)
            if form == "fused":
                probe = torch.nn.Parameter(torch.zeros(4))
                probe.grad = torch.zeros(4)
                kind([probe], fused=True).step()
            return made, form
        except (RuntimeError, TypeError, ValueError):
            continue
    return kind(parameters, **arguments), "plain"


def adam(o):
    """A step over one tensor."""
    ours, theirs = (torch.nn.Parameter(torch.ones(o.n)) for _ in range(2))
    session = coconet.Session(dist.group.WORLD, budget=o.budget)
    optimizer = fused.FusedAdam([ours], session=session)
    baseline, form = torch_optimizer(torch.optim.Adam, [theirs])
    gradient = 1e-3 * torch.ones(o.n)
    for parameter in (ours, theirs):
        parameter.grad = gradient.clone()

    def reduce_and_step():
        dist.all_reduce(theirs.grad)
        baseline.step()

    optimizer.step()
    program = session.compile(o.program, N=o.n)
    arrays = {name: session.allocate("f32", o.n) for name in ("g", "p")}
    arrays["g"].torch().fill_(1e-3)  # as the others have: some processors handle zeros faster
    arrays["p"].torch().fill_(1)
    bound = program.bind(arrays)
    bound.set(lr=1e-3, step=1)
    times = rounds({"ours": optimizer.step, "torch": reduce_and_step, "program": bound.run},
                   o.seconds)
    return times, {"n": o.n, "baseline": f"gloo all_reduce + Adam({form})",
                   "schedule": (optimizer.explain().splitlines() or [""])[0]}


class Backward(torch.autograd.Function):
    """A loss whose gradients are there already: its backward computes nothing."""

    gradients = ()

    @staticmethod
    def forward(context, *parameters):
        return parameters[0].new_zeros(())

    @staticmethod
    def backward(context, gradient):
        return Backward.gradients


class Tensors(torch.nn.Module):

    def __init__(self, sizes):
        super().__init__()
        self.tensors = torch.nn.ParameterList(
            [torch.nn.Parameter(torch.ones(size)) for size in sizes])

    def forward(self):
        return Backward.apply(*self.tensors)


def gpt2_sizes():
    """The 148 tensors of GPT-2 small."""
    width = 768
    layer = [width, width, 3 * width * width, 3 * width, width * width, width, width, width,
             4 * width * width, 4 * width, 4 * width * width, width]
    return [50257 * width, 1024 * width] + 12 * layer + [width, width]


def tensors(o):
    """DDP's hooks and AdamW over GPT-2's tensors, against ours after the same backward."""
    sizes = [max(1, size // o.divisor) for size in gpt2_sizes()]
    Backward.gradients = tuple(1e-3 * torch.ones(size) for size in sizes)
    ours, theirs = Tensors(sizes), Tensors(sizes)
    replica = torch.nn.parallel.DistributedDataParallel(theirs, gradient_as_bucket_view=True)
    session = coconet.Session(dist.group.WORLD, budget=o.budget)
    optimizer = fused.FusedAdamW(ours.parameters(), session=session)
    baseline, form = torch_optimizer(torch.optim.AdamW, theirs.parameters())

    def our_step():
        ours().backward()
        optimizer.step()

    def their_step():
        replica().backward()
        baseline.step()

    def alone():
        theirs().backward()

    times = rounds({"ours": our_step, "torch": their_step, "ours_step": optimizer.step,
                    "backward": alone}, o.seconds)
    return times, {"tensors": len(sizes), "n": sum(sizes),
                   "baseline": f"DDP's hooks + AdamW({form})"}


class Gpt(torch.nn.Module):

    def __init__(self, o):
        super().__init__()
        self.o = o
        width = o.width
        weight = lambda *shape: torch.nn.Parameter(0.02 * torch.randn(*shape))
        self.embeddings, self.positions = weight(o.vocabulary, width), weight(1024, width)
        self.layers = torch.nn.ModuleList(
            torch.nn.ModuleDict({
                "norm1": torch.nn.LayerNorm(width), "qkv": torch.nn.Linear(width, 3 * width),
                "out": torch.nn.Linear(width, width), "norm2": torch.nn.LayerNorm(width),
                "up": torch.nn.Linear(width, 4 * width), "down": torch.nn.Linear(4 * width, width)
            }) for _ in range(o.layers))
        self.norm = torch.nn.LayerNorm(width)

    def attention(self, q, k, v):
        fused_form = getattr(torch.nn.functional, "scaled_dot_product_attention", None)
        if fused_form is not None:
            return fused_form(q, k, v, is_causal=True)
        future = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool).triu(1)
        scores = (q @ k.transpose(2, 3)) / math.sqrt(q.shape[-1])
        return torch.softmax(scores.masked_fill(future, float("-inf")), dim=-1) @ v

    def forward(self, tokens, targets):
        x = torch.nn.functional.embedding(tokens, self.embeddings)
        x = x + self.positions[:tokens.shape[1]]
        for h in self.layers:
            q, k, v = (t.reshape(*t.shape[:2], self.o.width // 64, 64).transpose(1, 2)
                       for t in h["qkv"](h["norm1"](x)).chunk(3, dim=2))
            x = x + h["out"](self.attention(q, k, v).transpose(1, 2).reshape(x.shape))
            x = x + h["down"](torch.nn.functional.gelu(h["up"](h["norm2"](x))))
        logits = torch.nn.functional.linear(self.norm(x), self.embeddings)
        return torch.nn.functional.cross_entropy(logits.reshape(-1, self.o.vocabulary),
                                                 targets.reshape(-1))


def train(o):
    """Whole training steps of a GPT: zero_grad, forward, backward, step."""
    torch.manual_seed(1)
    ours = Gpt(o)
    theirs = Gpt(o)
    tokens = torch.randint(o.vocabulary, (1, o.sequence + 1))
    tokens, targets = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    replica = torch.nn.parallel.DistributedDataParallel(theirs, gradient_as_bucket_view=True)
    session = coconet.Session(dist.group.WORLD, budget=o.budget)
    optimizer = fused.FusedAdamW(ours.parameters(), session=session)
    baseline, form = torch_optimizer(torch.optim.AdamW, theirs.parameters())

    def stepper(model, update):
        def step():
            update.zero_grad()
            model(tokens, targets).backward()
            update.step()
        return step

    def alone():
        theirs.zero_grad()
        theirs(tokens, targets).backward()

    global SAMPLE_S
    SAMPLE_S = 1e-3
    times = rounds({"ours": stepper(ours, optimizer), "torch": stepper(replica, baseline),
                    "backward": alone}, 0, least=o.steps)
    return times, {"n": sum(p.numel() for p in ours.parameters()), "steps": o.steps,
                   "sequence": o.sequence, "baseline": f"DDP + AdamW({form})"}


def main():
    parser = argparse.ArgumentParser()
    for name, kind, default in [
            ("rank", int, 0), ("ranks", int, 2), ("meeting", str, ""), ("case", str, "adam"),
            ("n", int, 1 << 20), ("divisor", int, 1), ("seconds", float, 5), ("budget", float, 60),
            ("steps", int, 20), ("layers", int, 12), ("width", int, 768),
            ("vocabulary", int, 50257), ("sequence", int, 128), ("program", str, "")]:
        parser.add_argument("--" + name, type=kind, default=default)
    o = parser.parse_args()
    torch.set_num_threads(1)
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[o.rank % len(cores)]})
    dist.init_process_group("gloo", init_method=f"file://{o.meeting}", rank=o.rank,
                            world_size=o.ranks)
    times, facts = {"adam": adam, "tensors": tensors, "train": train}[o.case](o)
    if o.rank == 0:
        row = dict(facts, torch=torch.__version__)
        for name, samples in times.items():
            middle, low, high = median(samples)
            row.update({f"{name}_us": 1e6 * middle, f"{name}_low_us": 1e6 * low,
                        f"{name}_high_us": 1e6 * high, f"{name}_samples": len(samples)})
        print("ROW " + json.dumps(row), flush=True)
    dist.barrier()


if __name__ == "__main__":
    main()
