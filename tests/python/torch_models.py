"""A small GPT, its data, and gloo groups of processes that share a folder."""

import math
import pathlib
import tempfile
import unittest

import torch
import torch.distributed as dist
import torch.nn.functional as F

import coconet

VOCABULARY, SEQUENCE, EXAMPLES = 31, 8, 2


class Gpt(torch.nn.Module):
    """Returns the mean cross entropy over all positions."""

    def __init__(self, layers=2, width=16, heads=2, dtype=torch.float32):
        super().__init__()
        torch.manual_seed(7)
        self.heads = heads
        self.embedding = torch.nn.Embedding(VOCABULARY, width)
        self.position = torch.nn.Parameter(0.1 * torch.randn(SEQUENCE, width))
        self.layers = torch.nn.ModuleList(
            torch.nn.ModuleDict({
                "norm1": torch.nn.LayerNorm(width), "qkv": torch.nn.Linear(width, 3 * width),
                "out": torch.nn.Linear(width, width), "norm2": torch.nn.LayerNorm(width),
                "up": torch.nn.Linear(width, 4 * width), "down": torch.nn.Linear(4 * width, width)
            }) for _ in range(layers))
        self.norm = torch.nn.LayerNorm(width)
        self.to(dtype)
        self.future = torch.ones(SEQUENCE, SEQUENCE, dtype=torch.bool).triu(1)

    def forward(self, tokens, targets):
        x = self.embedding(tokens) + self.position
        for h in self.layers:
            q, k, v = (t.reshape(EXAMPLES, SEQUENCE, self.heads, -1).transpose(1, 2)
                       for t in h["qkv"](h["norm1"](x)).chunk(3, dim=2))
            scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])
            weights = torch.softmax(scores.masked_fill(self.future, float("-inf")), dim=-1)
            x = x + h["out"]((weights @ v).transpose(1, 2).reshape(x.shape))
            x = x + h["down"](F.gelu(h["up"](h["norm2"](x))))
        logits = F.linear(self.norm(x), self.embedding.weight)
        return F.cross_entropy(logits.reshape(-1, VOCABULARY), targets.reshape(-1))


def batch(step, rank):
    """Tokens and targets of a rank's step: sequences that count in steps, with some mistakes."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    begin = torch.randint(VOCABULARY, (EXAMPLES, 1), generator=generator)
    tokens = (begin + 3 * torch.arange(SEQUENCE + 1)) % VOCABULARY
    wrong = torch.rand(tokens.shape, generator=generator) < 0.1
    tokens[wrong] = torch.randint(VOCABULARY, (int(wrong.sum()),), generator=generator)
    return tokens[:, :-1], tokens[:, 1:]


def meet(folder, rank, size):
    """Joins the gloo group of the processes that share the folder."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{pathlib.Path(folder) / 'meeting'}",
                            rank=rank, world_size=size)


def session(cache, **options):
    """A session of the default group, for tests."""
    options = {"cache_file": cache, "effort": "fast", "budget": 1, "timeout": 20, **options}
    return coconet.Session(dist.group.WORLD if dist.is_initialized() else None, **options)


class SessionTest(unittest.TestCase):
    """Cases that share a session of one rank."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.session = session(folder.name + "/cache.db")
        cls.addClassCleanup(cls.session.close)


def difference(ours, theirs):
    """The greatest difference of two models' parameters, over the greatest parameter."""
    pairs = list(zip(ours.parameters(), theirs.parameters()))
    greatest = max(float(b.detach().abs().max()) for _, b in pairs)
    return max(float((a.detach() - b.detach()).abs().max()) for a, b in pairs) / greatest


def average_gradients(model):
    """What DDP does, for parameters that have a gradient on every rank."""
    for parameter in model.parameters():
        if parameter.grad is not None:
            total = parameter.grad.double()
            dist.all_reduce(total)
            parameter.grad.copy_(total / dist.get_world_size())
