"""One of the ranks of torch_sequences_test.py: torch_sequences.py RANK SIZE FOLDER NUMBER...

Makes each sequence of calls, of the fused optimizer and of torch's beside it, and prints what
became of it as a line of JSON. A number tells all about a sequence: what is drawn comes from it.
"""

import contextlib
import copy
import hashlib
import io
import json
import pickle
import random
import sys
import time
import traceback
import warnings

import torch
import torch.distributed as dist
from torch.optim import lr_scheduler as schedulers

import coconet
from torch_models import meet, session
from torch_reference import STATES
from torch_training import F32, F64, KINDS, Differs, Training, strided

SIZES = (1, 2, 3, 4)
HAS_SCALER, HAS_HOOKS = hasattr(torch.amp, "GradScaler"), hasattr(torch.optim.Optimizer,
                                                                  "register_step_pre_hook")


def world_of(number):
    return SIZES[number % len(SIZES)]


def kind_of(number):
    return list(KINDS)[number // len(SIZES) % len(KINDS)]


CALLS = []  # (weight, name)


def call(weight):
    """A method that a sequence may call; it returns what it has drawn."""
    def add(function):
        CALLS.append((weight, function.__name__))
        return function

    return add


class Sequence(Training):

    def __init__(self, number, rank, size, session, log):
        super().__init__(kind_of(number), random.Random(number), rank, size, session)
        self.log = log
        log.append(self.words)
        self.schedulers, self.scalers, self.handles, self.hooked = [], [], [], []

    def run(self):
        weights, names = zip(*CALLS)
        for _ in range(self.draw.randint(4, 12)):
            name = self.draw.choices(names, weights)[0]
            self.log.append(name)
            said = getattr(self, name)()
            self.log[-1] += f": {said}"
        self.log.append("end")
        self.compare()
        self.compare_states()

    # Steps.

    def step_of_both(self, step=None, **more):
        """`step`: what makes that of ours."""
        made = len(self.hooked)
        result = (step or self.ours.step)()
        if self.handles and len(self.hooked) != made + 2:
            raise Differs(f"hooks were called {len(self.hooked) - made} times, want 2")
        norm = self.reference.step(self.scale, self.ours.max_grad_norm, self.is_checked, **more)
        if norm is not None and self.ours.max_grad_norm is not None:
            tolerance = 1e-12 if all(p.dtype == F64 for p in self.ps) else 1e-6
            if not abs(self.ours.grad_norm - norm) <= tolerance * norm:
                raise Differs(f"grad_norm is {self.ours.grad_norm}, want {norm}")
        self.unhook()
        self.compare()
        return result

    def spoiled(self, by_rank, is_likely):
        """A rank whose gradient has inf, or None."""
        if is_likely and not self.handles and all(by_rank) and self.draw.random() < 0.25:
            return self.draw.randrange(self.size)
        return None

    def clip(self):
        """By each rank's own norm, or by value."""
        if self.is_narrow or self.draw.random() > 0.2 or not all(
                any(x is not None for x in of_rank) for of_rank in self.reference.gradients):
            return None
        function = self.draw.choice([torch.nn.utils.clip_grad_norm_,
                                     torch.nn.utils.clip_grad_value_])
        function(self.ps, 0.75)
        self.reference.clip(function, 0.75)
        return function.__name__

    @call(40)
    def step(self):
        zero = self.draw.choice([None, True, False, True])
        assign = self.draw.choice([False, False, False, "whole", "strided", "expanded"])
        # A rank without new gradients has no others, or it would seem to be at an earlier step.
        is_frozen = any(x is not None and not p.requires_grad for of_rank in
                        self.reference.gradients for x, p in zip(of_rank, self.ps))
        by_rank = self.some(may_be_none=bool(zero) or bool(assign) and not is_frozen)
        if by_rank is None:
            return "nothing is trained"
        times = 1 if assign else self.draw.choice([1, 1, 1, 2, 3])
        spoil = self.spoiled(by_rank, self.is_checked)
        if zero is not None:
            self.zero(zero)
        for _ in range(times):
            self.backward(by_rank, self.scale, assign, spoil)
        # Sums of squares of strided gradients, into which later ones may be added, have another
        # order; torch cannot clip expanded ones.
        is_plain = spoil is None and self.scale == 1 and not self.has_strides
        clip = self.clip() if is_plain else None
        self.step_of_both()
        if spoil is not None:
            if self.extras["loss_scale"] == "dynamic":
                self.scale *= 0.5
            self.zero(True)
        if self.ours.loss_scale != self.scale:
            raise Differs(f"loss_scale is {self.ours.loss_scale}, want {self.scale}")
        return f"zero {zero}, {times} {assign or 'backward'} of {by_rank}, inf {spoil}, {clip}"

    @call(4)
    def step_by_closure(self):
        by_rank = self.some()
        if by_rank is None:
            return "nothing is trained"

        def closure():
            self.zero(True)
            self.backward(by_rank, self.scale)
            return 0.25

        loss = self.step_of_both(lambda: self.ours.step(closure), closure=lambda: 0.25)
        if loss != 0.25:
            raise Differs(f"step(closure) returns {loss}, want 0.25")
        return str(by_rank)

    @call(3)
    def step_again(self):
        self.step_of_both()
        return "the same gradients"

    @call(8 if HAS_SCALER else 0)
    def step_by_scaler(self):
        self.zero(True)
        by_rank = self.some(may_be_none=True)
        if by_rank is None:
            return "nothing is trained"
        if not self.scalers:
            self.scalers = [torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
                            for _ in range(2)]
            for scaler in self.scalers:
                scaler.scale(torch.ones(1))  # which makes its tensors
        ours, theirs = self.scalers
        spoil = self.spoiled(by_rank, True)
        self.backward(by_rank, ours.get_scale(), spoil=spoil)
        if self.scale != 1:
            self.unhook()
            self.refuses("want one of them", lambda: ours.step(self.ours))
            self.scalers = []
            self.zero(True)
            return "refused"
        is_scaled = self.is_half or self.draw.random() < 0.5
        clip = None
        if not is_scaled:
            ours.unscale_(self.ours)
            for of_rank in self.reference.gradients:
                for x in of_rank:
                    if x is not None:
                        x.mul_(1 / ours.get_scale())
            clip = self.clip() if spoil is None and all(by_rank) else None
        self.step_of_both(lambda: ours.step(self.ours), scaler=theirs, is_scaled=is_scaled)
        ours.update()
        theirs.update()
        if ours.get_scale() != theirs.get_scale():
            raise Differs(f"a scale of {ours.get_scale()}, want {theirs.get_scale()}")
        if spoil is not None:
            self.zero(True)
        return f"of {by_rank}, inf {spoil}, scaled {is_scaled}, {clip}"

    @call(3)
    def step_to_infinity(self):
        """Without a loss scale inf goes into the weights, as it does out of weights that are
        infinite; training goes on from those before."""
        by_rank = self.some()
        if self.is_checked or by_rank is None:
            return "not made"
        self.unhook()
        self.zero(True)
        states = [copy.deepcopy(optimizer.state_dict()) for optimizer in self.both]
        weights = [[p.detach().clone() for p in ps] for ps in (self.ps, self.theirs)]
        errors = copy.deepcopy(self.reference.errors)
        is_of_weights = self.draw.random() < 0.5
        if is_of_weights:
            with torch.no_grad():
                for p in [*self.ps, *self.theirs]:
                    p[(slice(0, 1),) * p.dim()] = -torch.inf
        self.backward(by_rank, spoil=None if is_of_weights else self.draw.randrange(self.size))
        self.ours.step()
        self.reference.step(max_norm=self.ours.max_grad_norm)
        for i, (p, q) in enumerate(zip(self.ps, self.theirs)):
            for test in (torch.isnan, torch.isinf):
                if not torch.equal(test(p), test(q)):
                    raise Differs(f"parameter {i} is {p}, want {q}")
        self.zero(True)
        with torch.no_grad():
            for p, before in zip([*self.ps, *self.theirs], [*weights[0], *weights[1]]):
                p.copy_(before)
        for optimizer, state in zip(self.both, states):
            optimizer.load_state_dict(state)
        self.reference.errors = errors
        self.compare()
        return f"of weights {is_of_weights}, {by_rank}"

    @call(4)
    def accumulate(self):
        trained = self.trained()
        if not trained:
            return "nothing is trained"
        some = [i for i in trained if self.draw.random() > 0.2] or trained
        self.backward([some] * self.size, self.scale)
        return str(some)

    @call(2)
    def zero_grad(self):
        set_to_none = self.draw.random() < 0.5
        self.zero(set_to_none)
        return str(set_to_none)

    @call(2 if HAS_HOOKS else 0)
    def hook(self):
        """Hooks the next step, which has another rate."""
        self.unhook()

        def halve(optimizer, *_):
            for group in optimizer.param_groups:
                group["lr"] = group["lr"] * 0.5

        for optimizer in self.both:
            self.handles.append(optimizer.register_step_pre_hook(halve))
        self.handles += [self.ours.register_step_pre_hook(lambda *_: self.hooked.append("before")),
                         self.ours.register_step_post_hook(lambda *_: self.hooked.append("after"))]
        return "halves the rate"

    def unhook(self):
        for handle in self.handles:
            handle.remove()
        self.handles = []

    # Options and groups.

    @call(12)
    def change(self):
        g = self.draw.randrange(len(self.ours.param_groups))
        pair = [optimizer.param_groups[g] for optimizer in self.both]
        value, name = self.draw.random(), self.draw.choice(
            ["lr", "tensor", "in place", "weight_decay", "maximize", "max_grad_norm"] +
            ["momentum", "momentum", "nesterov", "dampening"] * (self.kind == "sgd") +
            ["betas", "eps"] * (self.kind != "sgd") +
            ["decoupled_weight_decay"] * (self.kind == "adam" and
                                          "decoupled_weight_decay" in pair[1]))
        if name == "max_grad_norm":
            self.ours.max_grad_norm = self.draw.choice([None, 0.5])
            return f"max_grad_norm {self.ours.max_grad_norm}"
        for group in pair:
            if name == "tensor":
                group["lr"] = torch.tensor(0.1 * value, dtype=F64)
            elif name == "in place":
                if isinstance(group["lr"], torch.Tensor):
                    group["lr"].mul_(0.5)
            elif name == "betas":
                group[name] = (0.9 * value, 0.99)
            elif name == "eps":
                group[name] = 1e-3 if value < 0.5 else 1e-8
            elif isinstance(group[name], bool):
                group[name] = not group[name]
            elif name == "momentum":
                group[name] = value if value < 0.7 else 0
            else:
                group[name] = 0.1 * value
        return f"group {g}, {name}, {value}"

    @call(8)
    def schedule(self):
        if not self.schedulers or self.draw.random() < 0.15:
            number = self.draw.randrange(len(SCHEDULERS))
            self.schedulers = [SCHEDULERS[number](optimizer) for optimizer in self.both]
        for scheduler in self.schedulers:
            scheduler.step(*[1.0] * isinstance(scheduler, schedulers.ReduceLROnPlateau))
        return type(self.schedulers[0]).__name__

    @call(4)
    def add_group(self):
        if len(self.ours.param_groups) == 3:
            return "there are enough"
        x = self.values(self.ps[0].dtype, (3,))
        options = self.draw.choice([{}, {"lr": 0.05}, {"weight_decay": 0.05}, {"maximize": True}])
        self.ps.append(self.parameter(x))
        self.schedulers = []
        theirs = self.reference.take(x)
        for optimizer, p in zip(self.both, (self.ps[-1], theirs)):
            optimizer.add_param_group({"params": [p], **options})
        return str(options)

    @call(2)
    def move(self):
        """A parameter to the last group."""
        here = self.ours.param_groups[0]["params"]
        if len(self.ours.param_groups) == 1 or len(here) == 1:
            return "nothing to move"
        place = self.draw.randrange(len(here))
        for optimizer in self.both:
            first, last = optimizer.param_groups[0], optimizer.param_groups[-1]
            last["params"].append(first["params"].pop(place))
        return str(place)

    @call(5)
    def freeze(self):
        """A parameter, or trains it again."""
        i = self.draw.randrange(len(self.ps))
        # A gradient of a frozen one is on all ranks, or on none.
        drop = self.draw.random() < 0.5 or len(
            {of_rank[i] is None for of_rank in self.reference.gradients}) > 1
        for p in (self.ps[i], self.theirs[i]):
            p.requires_grad_(not p.requires_grad)
        if drop:
            self.drop(i)
        return f"{i}, trained {self.ps[i].requires_grad}, dropped {drop}"

    def drop(self, i):
        self.ps[i].grad = None
        for of_rank in self.reference.gradients:
            of_rank[i] = None

    # Weights and states.

    @call(4)
    def change_weights(self):
        i = self.draw.randrange(len(self.ps))
        way = self.draw.choice(["scale", "add", "zero", "new", "strided"])
        with torch.no_grad():
            for p in (self.ps[i], self.theirs[i]):
                if way == "scale":
                    p.data.mul_(0.5)
                elif way == "add":
                    p.add_(0.25)
                elif way == "zero":
                    p.zero_()
                else:
                    p.data = p.data * 0.5
        if way == "strided":
            self.ps[i].data = strided(self.ps[i].data)
        self.reference.moved(i)
        return f"{way} {i}"

    @call(4)
    def change_states(self):
        way = self.draw.choice(["scale", "step", "clear", "nothing"])
        for state in (self.ours.state, self.reference.optimizer.state):
            for of_p in list(state.values()):
                for name, x in of_p.items():
                    if name == "step" and way == "step":
                        x.add_(2)
                    elif name != "step" and way == "scale" and x is not None:
                        x.mul_(0.5)
            if way == "clear":
                state.clear()
        for i in range(len(self.ps)):
            self.reference.moved(i)
        self.compare_states()
        return way

    def fresh(self, ps):
        """An optimizer of the same kind and defaults, with other groups, of the parameters `ps`."""
        self.unhook()
        self.schedulers, self.scalers = [], []
        number_of = {id(p): i for i, p in enumerate(self.ps)}
        groups = [{"params": [ps[number_of[id(p)]] for p in group["params"]], "lr": 0.5}
                  for group in self.ours.param_groups]
        extras = {**self.extras, "max_grad_norm": self.ours.max_grad_norm}
        self.ps = ps
        return KINDS[self.kind](groups, **self.options, **extras, session=self.session,
                                group=dist.group.WORLD)

    @call(6)
    def load(self):
        way = self.draw.choice(["same", "fresh optimizer", "fresh parameters"])
        through = self.draw.choice(["memory", "torch.save", "pickle"])
        state = self.ours.state_dict()
        if through == "torch.save":
            file = io.BytesIO()
            torch.save(state, file)
            state = torch.load(io.BytesIO(file.getvalue()))
        elif through == "pickle":
            state = pickle.loads(pickle.dumps(state))
        if way == "fresh parameters":
            self.ours = self.fresh([torch.nn.Parameter(p.detach().clone(), p.requires_grad)
                                    for p in self.ps])
            self.reference.zero(True)
        elif way == "fresh optimizer":
            self.ours = self.fresh(self.ps)
        self.ours.load_state_dict(state)
        self.compare_states()
        return f"{way}, through {through}"

    @call(4)
    def exchange(self):
        """States with torch's optimizer."""
        way = self.draw.choice(["to torch", "from torch"])
        giver, taker = self.both if way == "to torch" else self.both[::-1]
        taker.load_state_dict(giver.state_dict())
        for i in range(len(self.ps)):
            self.reference.moved(i)
        self.compare_states()
        return way

    @call(2)
    def consolidate(self):
        self.ours.consolidate_state_dict()
        if self.rank == self.size - 1:
            self.ours.state_dict()
        self.compare_states()
        return "the last rank has read them"

    @call(3)
    def deepcopy(self):
        self.unhook()
        self.schedulers, self.scalers = [], []
        self.ps, self.ours = copy.deepcopy((self.ps, self.ours))
        for i, p in enumerate(self.ps):
            self.drop(i)
        return "goes on"

    # What is refused, and changes nothing.

    @call(6)
    def refuse(self):
        name, function = self.draw.choice(REFUSALS)
        self.unhook()
        function(self)
        return name

SCHEDULERS = [
    lambda o: schedulers.StepLR(o, 2, gamma=0.5),
    lambda o: schedulers.LambdaLR(o, lambda n: 1 / (1 + n)),
    lambda o: schedulers.MultiplicativeLR(o, lambda n: 0.9),
    lambda o: schedulers.ExponentialLR(o, 0.9),
    lambda o: schedulers.OneCycleLR(o, max_lr=0.1, total_steps=40),
    lambda o: schedulers.CosineAnnealingLR(o, 5),
    lambda o: schedulers.CosineAnnealingWarmRestarts(o, 2),
    lambda o: schedulers.CyclicLR(o, 0.01, 0.1, 2, cycle_momentum=False),
    lambda o: schedulers.ReduceLROnPlateau(o, patience=0, factor=0.5),
    lambda o: schedulers.SequentialLR(o, [schedulers.ConstantLR(o, 0.5, 2),
                                          schedulers.ExponentialLR(o, 0.9)], [2]),
]


def refuse_option(name, value, words):
    def refuse(sequence):
        group = sequence.draw.choice(sequence.ours.param_groups)
        before = dict(group)
        group[name] = value

        def restore():
            group.pop(name)
            group.update(before)

        sequence.refuses(words, sequence.ours.step, restore)

    return f"{name}={value}", refuse


def refuse_sparse(sequence):
    trained = [p for p in map(sequence.ps.__getitem__, sequence.trained()) if p.dim()]
    if trained:
        p = sequence.draw.choice(trained)
        before, p.grad = p.grad, torch.zeros_like(p).to_sparse()
        sequence.refuses("a sparse gradient", sequence.ours.step,
                         lambda: setattr(p, "grad", before))


def refuse_conversion(sequence):
    if sequence.trained():
        sequence.step_again()  # which takes up what is new
        p = sequence.ps[sequence.draw.choice(sequence.trained())]
        before, p.data = p.data, p.data.to(F32 if p.dtype == F64 else F64)
        sequence.refuses("after the model is converted", sequence.ours.step,
                         lambda: setattr(p, "data", before))


def refuse_group(words, **options):
    def refuse(sequence):
        shared = sequence.ps[0].data.view(-1) if words == "shares memory" else torch.ones(2)
        sequence.refuses(words, lambda: sequence.ours.add_param_group(
            {"params": [torch.nn.Parameter(shared)], **options}))

    return f"a group: {words}", refuse


def refuse_states(sequence):
    saved = copy.deepcopy(sequence.ours.state_dict())
    for state in saved["state"].values():
        for name in STATES[sequence.kind]:
            if state.get(name) is not None:
                state[name] = torch.zeros(99)
                return sequence.refuses("of shape", lambda: sequence.ours.load_state_dict(saved))
    return None


REFUSALS = [
    refuse_option("amsgrad", True, "amsgrad=True: want False"),
    refuse_option("capturable", True, "capturable=True: want False"),
    refuse_option("lr", "0.1", "lr='0.1': want a number"),
    refuse_option("lr", torch.ones(2), "want a number, or a tensor with one element"),
    ("a sparse gradient", refuse_sparse),
    ("converted weights", refuse_conversion),
    refuse_group("lr=-1", lr=-1),
    refuse_group("shares memory"),
    ("states of other shapes", refuse_states),
    ("pickle", lambda sequence: sequence.refuses("cannot be pickled",
                                                 lambda: pickle.dumps(sequence.ours))),
    ("max_grad_norm", lambda sequence: sequence.refuses(
        "max_grad_norm=-1", lambda: setattr(sequence.ours, "max_grad_norm", -1))),
    ("an argument", lambda sequence: sequence.refuses(
        "no argument rate", lambda: sequence.ours.step(rate=1))),
]


def take(number, rank, size, opened):
    """What became of a sequence on this rank."""
    sequence, message, digest = None, "", ""
    log = []
    try:
        sequence = Sequence(number, rank, size, opened, log)
        sequence.run()
        digest = hashlib.sha256()
        for p in sequence.ps:
            values = torch.empty(p.shape, dtype=p.dtype).copy_(p.detach())
            digest.update(values.view(-1).view(torch.uint8).numpy().tobytes())
        digest = digest.hexdigest()
    except Exception:
        message = traceback.format_exc()
    everyone = [None] * size
    dist.all_gather_object(everyone, (message, digest))
    messages = [of_rank for of_rank, _ in everyone]
    if not any(messages) and len({of_rank for _, of_rank in everyone}) > 1:
        messages = ["the ranks' weights differ in bits"]
    return {"number": number, "log": log, "messages": messages if any(messages) else [],
            "refusals": sequence.refusals if sequence else {},
            "far": sequence.far if sequence else 0.0}


def main():
    rank, size, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    warnings.simplefilter("ignore")
    meet(folder, rank, size)
    opened = session(folder + "/cache.db", budget=0.001)
    for number in map(int, sys.argv[4:]):
        began = time.monotonic()
        result = take(number, rank, size, opened)
        if rank == 0:
            result["seconds"] = time.monotonic() - began
            print("JSON" + json.dumps(result), flush=True)
        if result["messages"]:
            with contextlib.suppress(coconet.Error):
                opened.close()
            opened = session(folder + "/cache.db", budget=0.001)
    opened.close()


if __name__ == "__main__":
    main()
