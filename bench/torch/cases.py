"""What //bench/torch measures: cases.py --ranks=2 --case=adam ..., with coconet on PYTHONPATH.

A sample is as many steps as last some milliseconds (ranks.py).
"""

import sys

import ranks
import torch
import torch.distributed as dist

import coconet
import coconet.torch as fused

SAMPLE_S = 5e-3


def torch_optimizer(kind, parameters, **arguments):
    """PyTorch's optimizer, fused if this version can be on the CPU, and the name of its form."""
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
    ranks.print_times({"ours": optimizer.step, "torch": reduce_and_step, "program": bound.run},
                      o.seconds, SAMPLE_S)
    ranks.fact("n", o.n)
    ranks.fact("baseline", f"gloo all_reduce + Adam({form})")
    ranks.fact("schedule", (optimizer.explain().splitlines() or [""])[0])


def compare(o, models, data, baseline, zeroes_gradients, **terms):
    """Steps of AdamW over two models of equal tensors, ours and PyTorch's with DDP, and a backward
    pass alone.
    """
    ours, theirs = models
    replica = ranks.replica_of(theirs)
    session = coconet.Session(dist.group.WORLD, budget=o.budget)
    our_update = fused.FusedAdamW(ours.parameters(), session=session)
    their_update, form = torch_optimizer(torch.optim.AdamW, theirs.parameters())

    def stepper(model, update, has_step=True):
        def step():
            if zeroes_gradients:
                update.zero_grad()
            model(*data).backward()
            if has_step:
                update.step()
        return step

    contenders = {"ours": stepper(ours, our_update), "torch": stepper(replica, their_update),
                  "backward": stepper(theirs, their_update, has_step=False)}
    if not zeroes_gradients:
        contenders["ours_step"] = our_update.step
    ranks.print_times(contenders, **terms)
    ranks.fact("n", sum(p.numel() for p in ours.parameters()))
    ranks.fact("baseline", f"{baseline} + AdamW({form})")


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


def tensors(o):
    """DDP's hooks and AdamW over GPT-2's tensors, against ours after the same backward."""
    gpt = ranks.Gpt(o, o.width // 64, positions=1024, scale=0.02)
    sizes = [max(1, parameter.numel() // o.divisor) for parameter in gpt.parameters()]
    Backward.gradients = tuple(1e-3 * torch.ones(size) for size in sizes)
    compare(o, (Tensors(sizes), Tensors(sizes)), (), "DDP's hooks", zeroes_gradients=False,
            seconds=o.seconds, sample_s=SAMPLE_S)
    ranks.fact("tensors", len(sizes))


def train(o):
    """Whole training steps of a GPT: zero_grad, forward, backward, step."""
    torch.manual_seed(1)
    models = [ranks.Gpt(o, o.width // 64, positions=1024, scale=0.02) for _ in range(2)]
    tokens = torch.randint(o.vocabulary, (1, o.sequence + 1))
    data = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    compare(o, models, data, "DDP", zeroes_gradients=True, seconds=0, sample_s=1e-3, least=o.steps)
    ranks.fact("steps", o.steps)
    ranks.fact("sequence", o.sequence)


if __name__ == "__main__":
    sys.exit(ranks.run(lambda o: {"adam": adam, "tensors": tensors, "train": train}[o.case](o),
                       {"case": "adam", "n": 1 << 20, "divisor": 1, "seconds": 5.0,
                        "budget": 60.0, "steps": 20, "layers": 12, "width": 768,
                        "vocabulary": 50257, "sequence": 128, "program": ""}))
