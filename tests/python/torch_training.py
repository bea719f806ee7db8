"""A fused optimizer's training beside that of a reference."""

import collections
import hashlib

import torch
import torch.distributed as dist

import coconet.torch as fused
from torch_reference import STATES, Reference

KINDS = {"sgd": fused.FusedSGD, "adam": fused.FusedAdam, "adamw": fused.FusedAdamW,
         "lamb": fused.FusedLAMB}
F64, F32, BF16, F16 = torch.float64, torch.float32, torch.bfloat16, torch.float16
LAYOUTS = {  # groups of dtypes and shapes
    "one of f64": [[(F64, (3,)), (F64, (13, 10)), (F64, ())]],
    "two of f64": [[(F64, (7,)), (F64, (2, 3, 2, 2))], [(F64, (1,)), (F64, (0,)), (F64, (13, 10))]],
    "one of f32": [[(F32, (3,)), (F32, (13, 10)), (F32, (7,))]],
    "two of f32": [[(F32, (1,)), (F32, (2, 3, 2, 2))], [(F32, (7,)), (F32, ())]],
    "mixed": [[(F32, (7,)), (F64, (3,)), (F32, (13, 10))]],
    "bf16 and f32": [[(BF16, (13, 10)), (F32, (7,)), (BF16, ())]],
    "f16": [[(F16, (7,)), (F16, (3,))]],
}


class Differs(AssertionError):
    """The ranks' optimizer and torch's do not agree."""


class Training:
    """`ours` trains `ps`, of which rank 0's values count; `reference` trains `theirs`. What is
    drawn is the same on all ranks."""

    def __init__(self, kind, draw, rank, size, session):
        self.kind, self.draw, self.rank, self.size, self.session = kind, draw, rank, size, session
        self.seed, self.tensors = draw.random(), 0
        self.refusals = collections.Counter()
        self.far = 0.0  # the greatest difference, over its bound
        self.has_strides = False  # some gradient has gaps, or one element for all
        layout = draw.choice(list(LAYOUTS))
        self.is_half = layout == "f16"
        self.is_narrow = self.is_half or layout.startswith("bf16")
        self.options, self.extras = self.draw_options(), self.draw_extras()
        self.is_checked = "loss_scale" in self.extras
        self.scale = self.extras.get("loss_scale", 1.0)
        if self.scale == "dynamic":
            self.scale = 65536.0
        groups = [[self.values(dtype, shape) for dtype, shape in group]
                  for group in LAYOUTS[layout]]
        self.reference = Reference(kind, size, groups, **self.options)
        self.ps = [self.parameter(x) for group in groups for x in group]
        for p, q in zip(self.ps, self.theirs):
            if draw.random() < 0.08:
                p.requires_grad_(False)
                q.requires_grad_(False)
        places = iter(self.ps)
        self.ours = KINDS[kind]([{"params": [next(places) for _ in group]} for group in groups],
                                **self.options, **self.extras, session=session,
                                group=dist.group.WORLD)
        frozen = [i for i, p in enumerate(self.ps) if not p.requires_grad]
        self.words = f"{kind} on {size}, {layout}, {self.options}, {self.extras}, frozen {frozen}"

    def draw_options(self):
        options = {"lr": self.draw.choice([0.1, 0.02])}
        if self.kind == "sgd":
            options.update(self.draw.choice([{}, {"momentum": 0.9}, {
                "momentum": 0.5, "dampening": 0.25}, {"momentum": 0.9, "nesterov": True}]))
        else:
            options.update(eps=self.draw.choice([1e-8, 1e-3]), betas=(0.9, 0.99))
        if self.draw.random() < 0.3:
            options["weight_decay"] = 0.1
        if self.draw.random() < 0.2:
            options["maximize"] = True
        return options

    def draw_extras(self):
        extras = {}
        if self.draw.random() < 0.2:
            extras["max_grad_norm"] = 0.5
        if self.draw.random() < 0.2:
            extras["loss_scale"] = 8.0 if self.is_half else self.draw.choice([8.0, "dynamic"])
        return extras

    # Values.

    @property
    def theirs(self):
        return self.reference.ps

    @property
    def both(self):
        return self.ours, self.reference.optimizer

    def generator(self, *salt):
        self.tensors += 1
        digest = hashlib.sha256(repr((self.seed, self.tensors, *salt)).encode()).digest()
        return torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))

    def values(self, dtype, shape):
        x = torch.randn(shape, generator=self.generator()).to(dtype)
        if self.draw.random() < 0.1:
            x.zero_()
        return x.to(memory_format=torch.channels_last) if len(shape) == 4 else x

    def parameter(self, x):
        """With rank 0's values, and others on the other ranks."""
        return torch.nn.Parameter(x.clone() + self.rank)

    def gradients(self, i):
        """Gradients of parameter i, by rank: of one sign, so that their sum loses no digits."""
        p = self.ps[i]
        sign = torch.randn(p.shape, generator=self.generator()).sign()
        return [(sign * (0.5 + torch.rand(p.shape, generator=self.generator(rank)))).to(p.dtype)
                for rank in range(self.size)]

    # Gradients.

    def trained(self):
        return [i for i, p in enumerate(self.ps) if p.requires_grad and p.numel()]

    def backward(self, by_rank, factor=1.0, assign=False, spoil=None):
        """Gradients of the parameters of `by_rank`, one list for each rank: by autograd, or
        assigned in the form `assign`. `spoil`: a rank, one of whose gradients has inf."""
        loss = 0
        for i, p in enumerate(self.ps):
            for rank, gradient in enumerate(self.gradients(i)):
                gradient = gradient * factor
                if i not in by_rank[rank]:
                    if assign and p.requires_grad:
                        self.reference.gradients[rank][i] = None
                        if rank == self.rank:
                            p.grad = None
                    continue
                if assign == "expanded" and gradient.numel():
                    gradient = gradient.reshape(-1)[:1].expand(gradient.numel()).view(p.shape)
                if rank == spoil and i == by_rank[rank][-1]:
                    gradient = gradient.clone()
                    gradient.view(-1)[-1] = float("inf")
                if assign:
                    self.reference.gradients[rank][i] = gradient.clone()
                else:
                    self.reference.add(rank, i, gradient)
                self.has_strides = self.has_strides or assign in ("expanded", "strided")
                if rank == self.rank and assign:
                    p.grad = strided(gradient) if assign == "strided" else gradient
                elif rank == self.rank:
                    loss = loss + (p * gradient).sum(dtype=F64)
        if isinstance(loss, torch.Tensor):
            loss.backward()

    def some(self, may_be_none=False):
        """The parameters that have a gradient on each rank; None where none can have one."""
        trained = self.trained()
        if not trained:
            return None
        skipped = [i for i in trained if self.draw.random() < 0.1]
        by_rank = []
        for _ in range(self.size):
            here = [i for i in trained if i not in skipped and self.draw.random() > 0.05]
            by_rank.append(here or [self.draw.choice(trained)])
        if may_be_none and self.size > 1 and self.draw.random() < 0.1:
            by_rank[self.draw.randrange(self.size)] = []
        return by_rank

    def zero(self, set_to_none):
        self.has_strides = self.has_strides and not set_to_none
        self.ours.zero_grad(set_to_none=set_to_none)
        self.reference.zero(set_to_none)

    # Comparison.

    def compare(self):
        for i, (p, q) in enumerate(zip(self.ps, self.theirs)):
            self.is_close(f"parameter {i}", p.detach(), q.detach(), self.reference.errors[i]["p"])
            gradient = self.reference.gradients[self.rank][i]
            if (gradient is None) != (p.grad is None):
                raise Differs(f"the gradient of parameter {i} is {p.grad}, want {gradient}")
            if gradient is not None and not torch.allclose(p.grad, gradient, rtol=1e-6, atol=0):
                raise Differs(f"the gradient of parameter {i} is {p.grad}, want {gradient}")
        for mine, theirs in zip(*(optimizer.param_groups for optimizer in self.both)):
            for name in set(mine) & set(theirs) - {"params"}:
                if mine[name] != theirs[name]:
                    raise Differs(f"{name} is {mine[name]}, want {theirs[name]}")

    def compare_states(self):
        states = self.ours.state
        for i, (p, q) in enumerate(zip(self.ps, self.theirs)):
            if not p.numel():
                continue
            mine, theirs = states.get(p, {}), self.reference.optimizer.state.get(q, {})
            if mine.get("step", 0) != theirs.get("step", 0):
                raise Differs(f"step {mine.get('step')} of parameter {i}, want {theirs['step']}")
            for name, x in zip(STATES[self.kind], self.reference.states(q)):
                if (mine.get(name) is None) != (theirs.get(name) is None):
                    raise Differs(f"{name} of parameter {i} is {mine.get(name)}, want {x}")
                if mine.get(name) is not None:
                    self.is_close(f"{name} of parameter {i}", mine[name], x,
                                  self.reference.errors[i][name])

    def is_close(self, what, mine, want, bound):
        far = (mine.double() - want).abs()
        if not bool((far <= bound).all()):
            raise Differs(f"{what} is {mine}, want {want}; it differs by {far}, want {bound}")
        if far.numel():
            self.far = max(self.far, float((far / bound.clamp(min=1e-300)).max()))

    def refuses(self, words, function, restore=lambda: None):
        try:
            function()
        except (ValueError, TypeError, RuntimeError) as failure:
            if words not in str(failure):
                raise
            self.refusals[f"{type(failure).__name__}: {words}"] += 1
        else:
            raise Differs(f"no error with {words}")
        restore()
        self.compare()


def strided(x):
    """The same values with gaps between them, and in another order of dimensions."""
    wide = torch.zeros(*x.shape[::-1], 2, dtype=x.dtype)
    view = wide[..., 0].permute(*reversed(range(x.dim()))) if x.dim() else wide[0]
    view.copy_(x)
    return view
