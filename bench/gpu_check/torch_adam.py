#!/usr/bin/env python3
"""Prints, per number of ranks, the microseconds that PyTorch takes for a step of mixed-precision Adam on that many ranks of one GPU:
the sum of their gradients, one fused AdamW over f32 weights and moments, and a rounded copy of the weights for each rank.

    torch_adam.py [--elements=268435456] [--ranks=2,4,8]

Exits with code 3 and a line on stderr if there is no PyTorch or no GPU.
"""

import argparse
import statistics
import sys


def step_times(torch, ranks, elements, rounds):
    gradients = torch.rand(ranks, elements, device="cuda").to(torch.bfloat16)
    weights = torch.rand(elements, device="cuda").requires_grad_()
    weights.grad = torch.empty_like(weights)
    copies = torch.empty_like(gradients)
    adam = torch.optim.AdamW([weights], lr=1e-3, weight_decay=0.0, fused=True)

    def step(with_mean):  # without: for gradients that the loss has divided already
        torch.sum(gradients, dim=0, dtype=torch.float32, out=weights.grad)
        if with_mean:
            weights.grad.mul_(1.0 / ranks)
        adam.step()
        copies.copy_(weights.detach())

    medians = []
    for with_mean in (True, False):
        times = []
        for round_number in range(rounds + 2):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda.synchronize()
            begin.record()
            step(with_mean)
            end.record()
            torch.cuda.synchronize()
            if round_number >= 2:
                times.append(1000 * begin.elapsed_time(end))
        medians.append(statistics.median(times))
    return min(medians)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--elements", type=int, default=1 << 28)
    parser.add_argument("--ranks", default="2,4,8")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    try:
        import torch
    except ImportError as error:
        print(f"torch_adam: {error}", file=sys.stderr)
        sys.exit(3)
    if not torch.cuda.is_available():
        print("torch_adam: PyTorch sees no GPU", file=sys.stderr)
        sys.exit(3)
    print(f"torch_adam: PyTorch {torch.__version__}", file=sys.stderr)
    for ranks in (int(text) for text in options.ranks.split(",")):
        print(ranks, f"{step_times(torch, ranks, options.elements, options.rounds):.1f}", flush=True)


if __name__ == "__main__":
    main()
