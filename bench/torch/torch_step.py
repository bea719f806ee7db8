#!/usr/bin/env python3
"""Prints how long PyTorch takes for a training step of GPT-2, and for its matrix products alone.

    torch_step.py --ranks=2 --layers=4 --width=256 --heads=4 --vocabulary=1000 --sequence=128
                  --examples=4 [--seconds=10] [--meeting=FILE --interface=eth0]

DistributedDataParallel over gloo adds the gradients of the ranks (ranks.py), fused AdamW updates
the weights. The step has two forms: attention by products and a softmax ("torch/plain"), and by
scaled_dot_product_attention ("torch/fused"). "torch_products" are those that the plain form calls,
with operands of their own that have the same sizes and strides. A sample is one step.
"""

import sys

import ranks
import torch
from torch.utils._python_dispatch import TorchDispatchMode


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


def measure(o):
    torch.manual_seed(1)  # all ranks: the same weights
    model = ranks.Gpt(o, o.heads, positions=o.sequence, scale=0.05)
    draw = lambda: torch.randint(o.vocabulary, (o.examples, o.sequence))
    tokens, targets = draw(), draw()
    products = RecordedProducts()
    model.is_fused = False
    with products:
        model(tokens, targets).backward()
    replica = ranks.replica_of(model) if o.ranks > 1 else model
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def step(is_fused):
        model.is_fused = is_fused
        optimizer.zero_grad()
        replica(tokens, targets).backward()
        optimizer.step()

    def multiply():
        for a, b, c in products.pairs:
            (torch.mm if a.dim() == 2 else torch.bmm)(a, b, out=c)

    ranks.print_times({"torch/plain": lambda: step(False), "torch/fused": lambda: step(True),
                       "torch_products": multiply}, o.seconds)
    ranks.fact("count", len(products.pairs))


if __name__ == "__main__":
    sys.exit(ranks.run(measure, {"layers": 4, "width": 256, "heads": 4, "vocabulary": 1000,
                                 "sequence": 128, "examples": 4, "seconds": 10.0}))
