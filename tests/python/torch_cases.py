"""Cases of torch_test.py, each on ranks of its own: torch_cases.py RANK SIZE CASE FOLDER [...]."""

import copy
import os
import pathlib
import signal
import sys
import time
import warnings

import torch
import torch.distributed as dist

import coconet
import coconet.torch as fused
from coconet._groups import _StoreExchange
from coconet.torch._buffers import HAS_REFERENCE_COUNTS
from torch_models import (Gpt, average_gradients, batch, difference, meet, session)

OPTIMIZERS = {
    "sgd": (fused.FusedSGD, torch.optim.SGD, {"lr": 0.1}),
    "momentum": (fused.FusedSGD, torch.optim.SGD,
                 {"lr": 0.05, "momentum": 0.9, "dampening": 0.2, "weight_decay": 0.01}),
    "nesterov": (fused.FusedSGD, torch.optim.SGD, {"lr": 0.05, "momentum": 0.9, "nesterov": True}),
    "adam": (fused.FusedAdam, torch.optim.Adam, {"lr": 3e-3, "weight_decay": 0.01}),
    "adamw": (fused.FusedAdamW, torch.optim.AdamW,
              {"lr": 3e-3, "betas": (0.8, 0.95), "weight_decay": 0.1}),
    "maximize": (fused.FusedAdam, torch.optim.Adam, {"lr": 1e-4, "maximize": True}),
}


class Pair:
    """A model trained by a fused optimizer, and one by torch's, with gradients averaged apart."""

    def __init__(self, name, cache, rank, dtype=torch.float64, groups=lambda model: [
            {"params": list(model.parameters())}], ours=None, **arguments):
        fused_class, torch_class, defaults = OPTIMIZERS[name]
        self.rank = rank
        self.model, self.expected = Gpt(dtype=dtype), Gpt(dtype=dtype)
        self.expected.load_state_dict(self.model.state_dict())
        with torch.no_grad():  # only rank 0's weights count
            for parameter in self.model.parameters():
                parameter.add_(rank)
        self.session = session(cache)
        self.optimizer = fused_class(groups(self.model), session=self.session,
                                     group=dist.group.WORLD, **{**defaults, **arguments},
                                     **(ours or {}))
        self.torch_optimizer = torch_class(groups(self.expected), **{**defaults, **arguments})

    def backward(self, step, both=(True, True)):
        for model, is_wanted in zip((self.model, self.expected), both):
            if is_wanted:
                model(*batch(step, self.rank)).backward()

    def step(self, step):
        self.optimizer.zero_grad()
        self.torch_optimizer.zero_grad()
        self.backward(step)
        self.update()

    def update(self):
        self.optimizer.step()
        average_gradients(self.expected)
        self.torch_optimizer.step()

    def check(self, limit=1e-11):
        far = difference(self.model, self.expected)
        assert far < limit, f"weights differ by {far}, want {limit}"


def optimizers(folder, rank, size):
    """Each optimizer's weights are torch's, in f64."""
    for name in OPTIMIZERS:
        pair = Pair(name, folder + "/cache.db", rank)
        for step in range(8):
            pair.step(step)
        pair.check()
        pair.session.close()


def ddp(folder, rank, size):
    """100 steps of a GPT, against DDP and torch's AdamW."""
    train_beside_ddp(folder, rank, torch.float64, 1e-8, limit=1e-9)
    # In f32 a larger eps: Adam makes steps of the rate of gradients that are 0 but for rounding.
    train_beside_ddp(folder, rank, torch.float32, 1e-4, limit=1e-4)


def train_beside_ddp(folder, rank, dtype, eps, limit):
    model, expected = Gpt(dtype=dtype), Gpt(dtype=dtype)
    replica = torch.nn.parallel.DistributedDataParallel(expected)
    ours = fused.FusedAdamW(model.parameters(), lr=3e-3, eps=eps,
                            session=session(folder + "/cache.db"))
    theirs = torch.optim.AdamW(expected.parameters(), lr=3e-3, eps=eps)
    for step in range(100):
        losses = []
        for net, optimizer in ((model, ours), (replica, theirs)):
            optimizer.zero_grad()
            losses.append(net(*batch(step, rank)))
            losses[-1].backward()
            optimizer.step()
        assert abs(float(losses[0].detach() - losses[1].detach())) < limit, (step, losses)
    far = difference(model, expected)
    print(f"{dtype}: loss {float(losses[0])}, weights differ by {far}", flush=True)
    assert far < limit, far


class Normalized(torch.nn.Module):
    """Has running means, a count, and a buffer that no forward pass changes."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.layers = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.BatchNorm1d(5),
                                          torch.nn.Linear(5, 1), torch.nn.BatchNorm1d(1))
        self.register_buffer("shift", torch.full((2, 3), 0.25, dtype=torch.float64))
        self.double()

    def forward(self, x):
        return (self.layers(x + self.shift.reshape(-1)) ** 2).mean()


def modules(folder, rank, size):
    """Buffers of modules are those of DDP, also those that ranks begin with; by the session, and by
    torch's group."""
    with session(folder + "/cache.db") as mine:
        for group in (None, dist.group.WORLD):
            train_with_buffers(rank, mine, group)


def train_with_buffers(rank, mine, group):
    model, expected = Normalized(), Normalized()
    for net in (model, expected):
        net.shift.mul_(1 + rank)  # only rank 0's count
    replica = torch.nn.parallel.DistributedDataParallel(expected)
    ours = fused.FusedSGD(model.parameters(), lr=0.1, session=mine)
    hook = fused.sync_buffers(model, group, session=mine)
    theirs = torch.optim.SGD(expected.parameters(), lr=0.1)
    for step in range(6):
        x = torch.randn(8, 6, dtype=torch.float64,
                        generator=torch.Generator().manual_seed(10 * step + rank))
        for net, optimizer in ((model, ours), (replica, theirs)):
            optimizer.zero_grad()
            net(x).backward()
            optimizer.step()
    assert difference(model, expected) < 1e-12
    for (name, mine_now), (_, theirs_now) in zip(model.named_buffers(), expected.named_buffers()):
        assert torch.allclose(mine_now, theirs_now, rtol=0, atol=1e-12), name
    assert model.layers[1].num_batches_tracked == 6
    model.eval()
    if rank == 0:
        model(x)  # is not collective
    hook.remove()
    model.train()
    if rank == 0:
        model(x)  # no more


def groups(folder, rank, size):
    """Groups with hyperparameters of their own, schedulers, freezing, groups added later."""
    def split(model):
        decayed = [p for p in model.parameters()
                   if p.dim() > 1 and p is not model.embedding.weight]
        return [{"params": decayed, "weight_decay": 0.1},
                {"params": [p for p in model.parameters() if p.dim() <= 1], "lr": 1e-3}]

    pair = Pair("adamw", folder + "/cache.db", rank, groups=split)
    for model in (pair.model, pair.expected):
        model.layers[0]["up"].weight.requires_grad_(False)
    both = (pair.optimizer, pair.torch_optimizer)
    schedulers = [torch.optim.lr_scheduler.StepLR(each, 2, gamma=0.5) for each in both]
    for step in range(12):
        if step == 4:
            for model in (pair.model, pair.expected):
                model.layers[0]["up"].weight.requires_grad_(True)
        if step == 7:
            for optimizer, model in zip(both, (pair.model, pair.expected)):
                optimizer.add_param_group({"params": [model.embedding.weight], "lr": 2e-3})
        pair.step(step)
        for scheduler in schedulers:
            scheduler.step()
    pair.check()
    assert pair.optimizer.param_groups[0]["lr"] == both[1].param_groups[0]["lr"] < 3e-3


def missing(folder, rank, size):
    """Gradients that are None on all ranks, and on some."""
    for name in ("adam", "momentum"):
        pair = Pair(name, folder + "/cache.db", rank)
        for step in range(8):
            pair.optimizer.zero_grad(set_to_none=True)
            pair.torch_optimizer.zero_grad(set_to_none=True)
            pair.backward(step)
            for model in (pair.model, pair.expected):
                if step % 3 == 1:
                    model.position.grad = model.norm.weight.grad = None
                if step == 5 and rank == 1:
                    model.norm.bias.grad = None
            if step == 5 and rank == 1:  # as DDP: ranks without a gradient count as zeros
                pair.expected.norm.bias.grad = torch.zeros_like(pair.expected.norm.bias)
            pair.update()
        pair.check()
        state = pair.optimizer.state_dict()["state"]
        if name == "adam":
            counts = sorted({int(each["step"]) for each in state.values()})
            assert counts == [5, 8], counts
        pair.session.close()


def clipping(folder, rank, size):
    """Clips by the norm of all averaged gradients."""
    pair = Pair("adam", folder + "/cache.db", rank, ours={"max_grad_norm": 0.5})
    for step in range(6):
        pair.optimizer.zero_grad()
        pair.torch_optimizer.zero_grad()
        pair.backward(step)
        pair.optimizer.step()
        average_gradients(pair.expected)
        norm = torch.nn.utils.clip_grad_norm_(pair.expected.parameters(), 0.5)
        assert abs(float(norm) - pair.optimizer.grad_norm) < 1e-5 * float(norm), norm
        pair.torch_optimizer.step()
    pair.check(1e-6)  # the norm is f32


def scaling(folder, rank, size):
    """Steps with an infinite gradient on one rank change nothing, and halve the scale."""
    pair = Pair("adam", folder + "/cache.db", rank, ours={"loss_scale": "dynamic"})
    for step in range(6):
        pair.optimizer.zero_grad()
        pair.torch_optimizer.zero_grad()
        (pair.model(*batch(step, rank)) * pair.optimizer.loss_scale).backward()
        pair.backward(step, both=(False, True))
        if step == 2:
            if rank == size - 1:
                pair.model.norm.bias.grad[3] = float("inf")
            pair.optimizer.step()
            assert pair.optimizer.loss_scale == 32768
            continue
        pair.update()
    pair.check()
    assert int(pair.optimizer.state_dict()["state"][0]["step"]) == 5


def accumulation(folder, rank, size):
    """Several backward passes, both ways of zeroing, and gradients and weights stay views."""
    pair = Pair("adamw", folder + "/cache.db", rank)
    for step in range(6):
        for optimizer in (pair.optimizer, pair.torch_optimizer):
            optimizer.zero_grad(set_to_none=step % 2 == 0)
        with pair.optimizer.no_sync():
            pair.backward(2 * step)
        pair.backward(2 * step + 1)
        pair.update()
        slot = pair.optimizer._slots[3]
        assert slot.has_gradient() or not HAS_REFERENCE_COUNTS
        assert slot.parameter.data_ptr() == slot.weights.data_ptr()
    first = next(pair.model.parameters())
    first.data = first.data + 1  # other memory: the optimizer takes the values
    next(pair.expected.parameters()).data.add_(1)
    pair.step(12)
    pair.check()


def checkpoints(folder, rank, size):
    """State dictionaries go to torch's optimizers and come from them."""
    for name in ("adam", "adamw", "momentum"):
        pair = Pair(name, folder + "/cache.db", rank)
        for step in range(4):
            pair.step(step)
        pair.optimizer.consolidate_state_dict()
        state = pair.optimizer.state_dict()
        expected = pair.torch_optimizer.state_dict()
        assert state["param_groups"] == expected["param_groups"] or not set(
            expected["param_groups"][0]) - set(state["param_groups"][0])
        for number, theirs in expected["state"].items():
            for key, value in theirs.items():
                if isinstance(value, torch.Tensor):
                    close = torch.allclose(state["state"][number][key].double(), value.double(),
                                           rtol=1e-9, atol=1e-12)
                    assert close, (number, key)
        pair.torch_optimizer.load_state_dict(state)
        pair.optimizer.load_state_dict(expected)
        for step in range(4, 7):
            pair.step(step)
        pair.check()
        if name == "adam" and rank == 0:
            torch.save({"model": pair.model.state_dict(), "expected": pair.expected.state_dict(),
                        "optimizer": state}, folder + "/checkpoint.pt")
        pair.session.close()


def resume(folder, rank, size, steps="40", dies_at="-1"):
    """Trains from the last checkpoint, and dies by a signal in the middle."""
    model = Gpt()
    optimizer = fused.FusedAdamW(model.parameters(), lr=3e-3,
                                 session=session(folder + "/cache.db"))
    path, first = pathlib.Path(folder) / "last.pt", 0
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["step"]
    for step in range(first, int(steps)):
        if step == int(dies_at):
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.zero_grad()
        model(*batch(step, rank)).backward()
        optimizer.step()
        if step % 10 == 4:
            state = optimizer.state_dict()  # collective
            if rank == 0:
                torch.save({"model": model.state_dict(), "optimizer": state, "step": step + 1},
                           folder + "/new.pt")
                os.rename(folder + "/new.pt", path)
    if rank == 0:
        torch.save(model.state_dict(), folder + "/end.pt")


def lamb(folder, rank, size):
    """LAMB, against its formula."""
    model, expected = Gpt(dtype=torch.float64), Gpt(dtype=torch.float64)
    optimizer = fused.FusedLAMB(model.parameters(), lr=0.02, session=session(folder + "/cache.db"))
    moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in expected.parameters()]
    for step in range(1, 7):
        for each in (model, expected):
            each.zero_grad()
            each(*batch(step, rank)).backward()
        optimizer.step()
        average_gradients(expected)
        with torch.no_grad():
            for p, (m, v) in zip(expected.parameters(), moments):
                m.mul_(0.9).add_(p.grad, alpha=0.1)
                v.mul_(0.999).addcmul_(p.grad, p.grad, value=0.001)
                u = (m / (1 - 0.9**step)) / ((v / (1 - 0.999**step)).sqrt() + 1e-6) + 0.01 * p
                sizes = float(p.norm()), float(u.norm())
                p.sub_(0.02 * (sizes[0] / sizes[1] if min(sizes) > 0 else 1) * u)
    far = difference(model, expected)
    assert far < 1e-10, far


def narrow(folder, rank, size):
    """Weights in bf16 beside weights in f32: the step is that of f32, rounded."""
    model, expected = Gpt(), Gpt()
    for each in (model, expected):
        each.norm.to(torch.bfloat16)
    def forward(each, step):
        loss = sum((p.float() ** 2).sum() for p in each.parameters()) * (1 + rank + step)
        loss.backward()
    optimizer = fused.FusedSGD(model.parameters(), lr=1e-4, session=session(folder + "/cache.db"),
                               max_grad_norm=1e9)
    theirs = torch.optim.SGD(expected.parameters(), lr=1e-4)
    for step in range(4):
        for each, update in ((model, optimizer), (expected, theirs)):
            update.zero_grad()
            forward(each, step)
        optimizer.step()
        average_gradients(expected)
        theirs.step()
    far = difference(model, expected)
    assert far < 0.01, far
    assert model.norm.weight.dtype == torch.bfloat16
    narrow_states(forward, folder)


def narrow_states(forward, folder):
    """States of bf16 weights are bf16, as torch's are, and go to other optimizers unrounded."""
    models = [Gpt(), Gpt(), Gpt()]  # the first goes on, the others take over its state
    for each in models:
        each.norm.to(torch.bfloat16)
    with session(folder + "/cache.db") as mine:
        first = fused.FusedAdamW(models[0].parameters(), lr=1e-2, session=mine)
        for step in range(3):
            first.zero_grad()
            forward(models[0], step)
            first.step()
        state = copy.deepcopy(first.state_dict())
        dtypes = {each["exp_avg"].dtype for each in state["state"].values()}
        assert dtypes == {torch.float32, torch.bfloat16}, dtypes
        for each in models[1:]:
            each.load_state_dict(models[0].state_dict())
        second = fused.FusedAdamW(models[1].parameters(), lr=1e-2, session=mine)
        theirs = torch.optim.AdamW(models[2].parameters(), lr=1e-2)
        for each in (second, theirs):
            each.load_state_dict(state)
        for each, optimizer in zip(models, (first, second, theirs)):
            optimizer.zero_grad()
            forward(each, 3)
            if optimizer is theirs:
                average_gradients(each)
            optimizer.step()
        assert difference(models[0], models[1]) == 0
        for ours, torchs in zip(models[0].parameters(), models[2].parameters()):
            limit = 1e-5 if ours.dtype == torch.float32 else 2 ** -7  # the last bit of 1 in bf16
            assert (ours.float() - torchs.float()).abs().max() <= limit


def late(folder, rank, size):
    """Ranks that come late, over a store of sockets, as torchrun and env:// have one."""
    place = pathlib.Path(folder) / "port"
    if rank == 0:
        store = dist.TCPStore("127.0.0.1", 0, size, True, wait_for_workers=False)
        place.with_suffix(".new").write_text(str(store.port))
        place.with_suffix(".new").rename(place)
    else:
        while not place.exists():
            time.sleep(0.01)
        store = dist.TCPStore("127.0.0.1", int(place.read_text()), size, False,
                              wait_for_workers=False)
    exchange = _StoreExchange(rank, tuple(range(size)), store)
    for late_rank in range(size):
        if rank == late_rank:
            time.sleep(0.5)
        exchange.begin(f"{rank} after {late_rank}".encode())
        deadline = time.monotonic() + 60
        while exchange.result() is None:
            assert time.monotonic() < deadline, exchange.absent()
            time.sleep(0.001)
        assert exchange.result() == [f"{peer} after {late_rank}".encode() for peer in range(size)]
    dist.barrier()  # rank 0 has the store


def mistakes(folder, rank, size):
    """Bad input gets words."""
    def fails(words, function):
        try:
            function()
        except Exception as failure:
            assert words in str(failure), failure
        else:
            raise AssertionError(f"no error with {words}")

    opened = session(folder + "/cache.db", timeout=5)
    make = lambda p, **arguments: fused.FusedAdam([p], session=opened, **arguments)
    weight = torch.nn.Parameter(torch.zeros(4))
    fails("amsgrad", lambda: make(weight, amsgrad=True))
    fails("complex", lambda: make(torch.nn.Parameter(torch.zeros(4, dtype=torch.complex64))))
    fails("max_grad_norm", lambda: make(weight, max_grad_norm=-1))
    fails("Invalid learning rate", lambda: make(weight, lr=-1))
    different = torch.nn.Parameter(torch.zeros(4 + rank))
    fails("parameters of rank 1 differ",
          lambda: fused.FusedAdam([different], session=opened, group=dist.group.WORLD))
    optimizer = make(weight)
    weight.grad = torch.zeros(4)
    weight.data = torch.zeros(4, dtype=torch.float64)
    fails("after the model is converted", optimizer.step)


def fork(folder, rank, size):
    """A child has the weights and gradients of its fork; parent and child see nothing of each
    other, and the session is the parent's."""
    weight = torch.nn.Parameter(torch.ones(1000))
    optimizer = fused.FusedSGD([weight], lr=1.0, session=session(folder + "/cache.db"))
    for step in range(3):
        weight.grad = torch.ones(1000)
        ends = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(ends[1])
            os.read(ends[0], 1)  # until the parent has made a step
            ok = bool((weight == 1 - step).all() and (weight.grad == 1).all())
            (weight * 5).sum().backward()
            with torch.no_grad():
                weight.zero_()
            try:
                optimizer.step()
            except coconet.FailedPrecondition as failure:
                ok = ok and "before fork()" in str(failure)
            else:
                ok = False
            os._exit(0 if ok else 1)
        os.close(ends[0])
        optimizer.step()
        os.close(ends[1])
        assert os.waitpid(child, 0)[1] == 0
        assert (weight == -step).all() and (weight.grad == 1).all(), (step, weight[0])


def beside(folder, rank, size):
    """A model that DistributedDataParallel wraps: gradients are averaged twice, which changes
    nothing, and a warning says so once; so it says of clipping by a rank's own norm."""
    words = "clip_grad_norm_ clips by another norm"
    for view in (False, True):
        model, expected = Gpt(dtype=torch.float64), Gpt(dtype=torch.float64)
        replicas = [torch.nn.parallel.DistributedDataParallel(each, gradient_as_bucket_view=view)
                    for each in (model, expected)]
        mine = session(folder + "/cache.db")
        optimizers = [fused.FusedAdamW(model.parameters(), lr=1e-2, session=mine),
                      torch.optim.AdamW(expected.parameters(), lr=1e-2)]
        for step in range(4):
            for replica, optimizer in zip(replicas, optimizers):
                optimizer.zero_grad()
                replica(*batch(step, rank)).backward()
                optimizer.step()
        assert difference(model, expected) < 1e-11, view
        mine.close()
    if not hasattr(torch.Tensor, "register_post_accumulate_grad_hook"):
        return
    model, mine = Gpt(), session(folder + "/cache.db")
    optimizer = fused.FusedSGD(model.parameters(), lr=0.1, session=mine)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for step in range(6):
            optimizer.zero_grad()
            model(*batch(step, rank)).backward()
            if step >= 3:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
            count = sum(words in str(each.message) for each in warned)
            assert count == (step >= 3), (step, count)


def objects(folder, rank, size):
    """Frozen parameters get rank 0's values whatever their dtype; copies and states on all
    ranks; memory formats that differ are an error."""
    mine = session(folder + "/cache.db")
    frozen = [torch.full((3,), 1 + rank, dtype=dtype) for dtype in (
        torch.int8, torch.uint8, torch.bool, torch.complex64, torch.float64)]
    frozen += [torch.full((1,), 1.0 + rank).expand(4), torch.ones(2, device="meta"),
               torch.ones(3, 2, dtype=torch.int64).t() + rank]
    for group in (dist.group.WORLD, None):
        given = [torch.nn.Parameter(each.clone() if each.stride() != (0,) else each,
                                    requires_grad=False) for each in frozen]
        fused.FusedSGD([*given, torch.nn.Parameter(torch.ones(2))], lr=0.1, group=group,
                       session=mine)
        for each in given:
            assert each.is_meta or bool((each == 1).all()), (group, each)
    model = Gpt(dtype=torch.float64)
    optimizer = fused.FusedAdam(model.parameters(), lr=1e-2, session=mine, group=dist.group.WORLD)

    def train(net, update, step):
        update.zero_grad()
        net(*batch(step, rank)).backward()
        update.step()

    train(model, optimizer, 0)
    copied, update = copy.deepcopy((model, optimizer))
    train(model, optimizer, 1)
    train(copied, update, 1)
    assert difference(model, copied) == 0
    states = [each.state[next(net.parameters())] for each, net in (
        (optimizer, model), (update, copied))]
    assert states[0]["step"] == states[1]["step"] == 2
    assert torch.equal(states[0]["exp_avg"], states[1]["exp_avg"])
    added = torch.nn.Parameter(torch.ones(3) + rank)
    copy.deepcopy(optimizer).add_param_group({"params": [added]})
    assert bool((added == 1).all()), added
    weight = torch.ones(2, 3, 4, 4)
    if rank == 1:
        weight = weight.to(memory_format=torch.channels_last)
    try:
        fused.FusedSGD([torch.nn.Parameter(weight)], lr=0.1, session=mine, group=dist.group.WORLD)
    except ValueError as failure:
        assert "strides" in str(failure), failure
    else:
        raise AssertionError("ranks have different orders in memory")
    mine.close()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    own_rank, ranks, case, shared = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    meet(shared, own_rank, ranks)
    globals()[case](shared, own_rank, ranks, *sys.argv[5:])
