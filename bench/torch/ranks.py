"""What scripts that measure PyTorch share: ranks, rounds, and a GPT. Exits with 3 if there is no
PyTorch.
"""

import argparse
import math
import os
import platform
import random
import subprocess
import sys
import tempfile
import time

try:
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F
except ImportError as missing:
    print(f"absent {missing}")
    sys.exit(3)


def run(measure, arguments):
    """Calls measure(options) on --ranks processes of one thread, each on a core of its own, joined
    by gloo. `arguments` are names and defaults. With --meeting, a file that all ranks see, this
    process is one rank, that of --rank or else of mpirun, and sends by --interface; else it starts
    all of them. Returns the exit code.
    """
    parser = argparse.ArgumentParser()
    given = {"ranks": 2, "rank": -1, "meeting": "", "interface": "", **arguments}
    for name, default in given.items():
        parser.add_argument("--" + name, type=type(default), default=default)
    o = parser.parse_args()
    if not o.meeting:
        with tempfile.TemporaryDirectory() as folder:
            ranks = [subprocess.Popen([sys.executable, *sys.argv, f"--rank={rank}",
                                       f"--meeting={folder}/meeting"],
                                      env={**os.environ, "OMP_NUM_THREADS": "1"})
                     for rank in range(o.ranks)]
            return max(abs(rank.wait()) for rank in ranks)
    if o.interface:
        os.environ["GLOO_SOCKET_IFNAME"] = o.interface
    rank = o.rank if o.rank >= 0 else int(os.environ["OMPI_COMM_WORLD_RANK"])
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{o.meeting}", rank=rank,
                            world_size=o.ranks)
    measure(o)
    fact("version", torch.__version__)
    fact("python", platform.python_version())
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)  # gloo's threads may crash a process that ends normally


def fact(name, text):
    """Prints a fact, on rank 0."""
    if dist.get_rank() == 0:
        print("fact", name, text)


def print_times(contenders, seconds, sample_s=0, least=7):
    """Times contenders in interleaved rounds, in an order that changes, for `seconds` but at least
    `least` rounds. A sample is as many steps as last `sample_s`, after an untimed one, and has the
    time of the slowest rank. Prints the microseconds of each contender's steps, on rank 0.
    """
    counts = {}
    for name, step in contenders.items():
        step()
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(3):
            step()
        took = torch.tensor([(time.perf_counter() - begin) / 3])
        dist.all_reduce(took, dist.ReduceOp.MAX)
        counts[name] = max(1, math.ceil(sample_s / took.item()))
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
        is_last[0] = time.perf_counter() - begin > seconds and len(samples[name]) >= least
        dist.broadcast(is_last, 0)
    for name, taken in samples.items():
        times = torch.tensor(taken, dtype=torch.float64)
        dist.all_reduce(times, dist.ReduceOp.MAX)
        if dist.get_rank() == 0:
            print("time", name, *(1e6 * s for s in times.tolist()))


def replica_of(model):
    """The model by DistributedDataParallel."""
    return torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)


class Gpt(torch.nn.Module):
    """GPT-2 without dropout; returns the mean cross entropy over all positions of `tokens`
    [examples, sequence]. Weights have the standard deviation `scale`. Attention is by
    scaled_dot_product_attention if `is_fused`, else by products and a softmax.
    """

    def __init__(self, o, heads, positions, scale):
        super().__init__()
        self.heads, self.is_fused = heads, hasattr(F, "scaled_dot_product_attention")
        weight = lambda *shape: torch.nn.Parameter(scale * torch.randn(*shape))
        linear = lambda to, of: torch.nn.Linear(of, to)
        norm = lambda: torch.nn.LayerNorm(o.width)
        self.embeddings, self.positions = weight(o.vocabulary, o.width), weight(positions, o.width)
        self.layers = torch.nn.ModuleList(
            torch.nn.ModuleDict({
                "norm1": norm(), "qkv": linear(3 * o.width, o.width),
                "out": linear(o.width, o.width), "norm2": norm(),
                "up": linear(4 * o.width, o.width), "down": linear(o.width, 4 * o.width)
            }) for _ in range(o.layers))
        self.norm = norm()
        self.future = torch.ones(positions, positions, dtype=torch.bool).triu(1)

    def attention(self, q, k, v):
        if self.is_fused:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        scores = (q @ k.transpose(2, 3)) / math.sqrt(q.shape[-1])
        future = self.future[:q.shape[2], :q.shape[2]]
        return torch.softmax(scores.masked_fill(future, float("-inf")), dim=-1) @ v

    def forward(self, tokens, targets):
        x = F.embedding(tokens, self.embeddings) + self.positions[:tokens.shape[1]]
        for h in self.layers:
            q, k, v = (t.reshape(*t.shape[:2], self.heads, -1).transpose(1, 2)
                       for t in h["qkv"](h["norm1"](x)).chunk(3, dim=2))
            x = x + h["out"](self.attention(q, k, v).transpose(1, 2).reshape(x.shape))
            x = x + h["down"](F.gelu(h["up"](h["norm2"](x))))
        logits = F.linear(self.norm(x), self.embeddings)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())
