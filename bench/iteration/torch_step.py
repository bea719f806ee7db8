#!/usr/bin/env python3
"""Prints how long PyTorch takes for a training step of GPT-2, and for its matrix products alone.

    torch_step.py --ranks=2 --layers=4 --width=256 --heads=4 --vocabulary=1000 --sequence=128
                  --examples=4 [--seconds=10] [--meeting=FILE --interface=eth0]

Each rank is a process of one thread on a core of its own; DistributedDataParallel over gloo adds
the gradients, fused AdamW updates the weights. With --meeting, a file that all ranks see, this
process is the rank that mpirun says, and sends by that interface; else it starts all ranks. The step has two forms: attention by products and a
softmax ("plain"), and by scaled_dot_product_attention ("fused"). The products are those that the
plain form calls, with operands of their own that have the same sizes and strides. Forms and
products run in interleaved rounds; a sample is one step after an untimed one, the time that of the
slowest rank.

Prints lines "NAME MEDIAN LOW HIGH SAMPLES" with microseconds and the median's 95 % confidence
interval, and lines "FACT WORD". Exits with 3 where there is no PyTorch.
"""

import argparse
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

try:
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F
    from torch.utils._python_dispatch import TorchDispatchMode
except ImportError as missing:
    print(f"absent {missing}")
    sys.exit(3)


class Gpt(torch.nn.Module):
    """Returns the mean cross entropy over all positions, without dropout."""

    def __init__(self, o):
        super().__init__()
        self.o, self.is_fused = o, False
        weight = lambda *shape: torch.nn.Parameter(0.05 * torch.randn(*shape))
        self.embeddings = weight(o.vocabulary, o.width)
        self.positions = weight(o.sequence, o.width)
        linear = lambda to, of: torch.nn.Linear(of, to)
        norm = lambda: torch.nn.LayerNorm(o.width)
        self.layers = torch.nn.ModuleList(
            torch.nn.ModuleDict({
                "norm1": norm(), "qkv": linear(3 * o.width, o.width),
                "out": linear(o.width, o.width), "norm2": norm(),
                "up": linear(4 * o.width, o.width), "down": linear(o.width, 4 * o.width)
            }) for _ in range(o.layers))
        self.norm = norm()
        self.register_buffer("future", torch.ones(o.sequence, o.sequence, dtype=torch.bool).triu(1),
                             persistent=False)

    def attention(self, q, k, v):
        if self.is_fused:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        scores = (q @ k.transpose(2, 3)) / math.sqrt(q.shape[-1])
        return torch.softmax(scores.masked_fill(self.future, float("-inf")), dim=-1) @ v

    def forward(self, tokens, targets):
        o = self.o
        x = F.embedding(tokens, self.embeddings).reshape(o.examples, o.sequence, o.width)
        x = x + self.positions
        for h in self.layers:
            parts = h["qkv"](h["norm1"](x)).split(o.width, dim=2)
            q, k, v = (t.reshape(o.examples, o.sequence, o.heads, -1).transpose(1, 2) for t in parts)
            x = x + h["out"](self.attention(q, k, v).transpose(1, 2).reshape(x.shape))
            x = x + h["down"](F.gelu(h["up"](h["norm2"](x))))
        logits = F.linear(self.norm(x), self.embeddings)
        return F.cross_entropy(logits.reshape(-1, o.vocabulary), targets)


class RecordedProducts(TorchDispatchMode):
    """Keeps copies of the operands of the products that run under it."""

    def __init__(self):
        super().__init__()
        self.pairs = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        at = {"aten::mm": 0, "aten::bmm": 0, "aten::addmm": 1, "aten::baddbmm": 1}.get(
            function._schema.name)
        if at is not None:
            a, b = (t.new_empty_strided(t.shape, t.stride()).uniform_(-1, 1)
                    for t in args[at:at + 2])
            self.pairs.append((a, b, a @ b))
        return function(*args, **(kwargs or {}))


def measure(rank, o):
    torch.manual_seed(1)  # all ranks: the same weights
    model = Gpt(o)
    draw = lambda: torch.randint(o.vocabulary, (o.examples * o.sequence,))
    tokens, targets = draw(), draw()
    products = RecordedProducts()
    with products:
        model(tokens, targets).backward()
    replica = model
    if o.ranks > 1:
        replica = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def step(is_fused):
        model.is_fused = is_fused
        optimizer.zero_grad()
        replica(tokens, targets).backward()
        optimizer.step()

    def multiply():
        for a, b, c in products.pairs:
            (torch.mm if a.dim() == 2 else torch.bmm)(a, b, out=c)

    contenders = {"plain": lambda: step(False), "fused": lambda: step(True), "products": multiply}
    meet = dist.barrier if o.ranks > 1 else lambda: None
    times = {name: [] for name in contenders}
    order = random.Random(1)
    begin, is_last = time.perf_counter(), torch.zeros(1)
    while not is_last.item():
        for name in order.sample(list(contenders), len(contenders)):
            contenders[name]()
            meet()
            start = time.perf_counter()
            contenders[name]()
            times[name].append(time.perf_counter() - start)
            meet()
        is_last[0] = time.perf_counter() - begin > o.seconds and len(times["plain"]) >= 7
        if o.ranks > 1:
            dist.broadcast(is_last, 0)
    for name, samples in times.items():
        slowest = torch.tensor(samples, dtype=torch.float64)
        if o.ranks > 1:
            dist.all_reduce(slowest, dist.ReduceOp.MAX)
        if rank == 0:
            interval = median_with_interval(slowest.sort().values.tolist())
            print(name, *(1e6 * t for t in interval), len(samples))
    if rank == 0:
        print("version", torch.__version__)
        print("count", len(products.pairs))
    meet()


def median_with_interval(ordered):
    """The median of sorted samples and its 95 % confidence interval by order statistics."""
    n = len(ordered)
    reach = 0.98 * math.sqrt(n)
    low, high = max(0, math.floor(n / 2 - reach)), min(n - 1, math.ceil(n / 2 + reach))
    return ordered[n // 2], ordered[low], ordered[high]


def run_rank(rank, o):
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    torch.set_num_threads(1)
    if o.ranks > 1:
        dist.init_process_group("gloo", init_method=f"file://{o.meeting}", rank=rank,
                                world_size=o.ranks)
    measure(rank, o)
    sys.stdout.flush()
    os._exit(0)  # gloo's threads may end a process that takes itself apart


def main():
    parser = argparse.ArgumentParser()
    for name in ("ranks", "layers", "width", "heads", "vocabulary", "sequence", "examples"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rank", type=int, help="of this process, if mpirun has not started it")
    parser.add_argument("--meeting", help="a file by which the ranks find each other")
    parser.add_argument("--interface", help="of the network between nodes")
    o = parser.parse_args()
    if o.interface:
        os.environ["GLOO_SOCKET_IFNAME"] = o.interface
    if o.meeting:
        return run_rank(int(os.environ["OMPI_COMM_WORLD_RANK"]) if o.rank is None else o.rank, o)
    with tempfile.TemporaryDirectory() as folder:
        meeting = pathlib.Path(folder) / "meeting"
        ranks = [
            subprocess.Popen([sys.executable, __file__, *sys.argv[1:], f"--rank={rank}",
                              f"--meeting={meeting}"], env={**os.environ, "OMP_NUM_THREADS": "1"})
            for rank in range(o.ranks)
        ]
        return max(abs(rank.wait()) for rank in ranks)


if __name__ == "__main__":
    sys.exit(main())
