"""One of the ranks of diverging_test.py: diverging_ranks.py RANK SIZE FOLDER WAY...

Takes each way in turn, in a session of its own, and prints what became of it as a line of JSON.
A batch i has the gradient 10^i, which tells it, and the weight is less by it after its step.
"""

import contextlib
import json
import os
import signal
import sys
import time
import warnings

warnings.simplefilter("ignore")

import torch
import torch.distributed as dist

import coconet
import coconet.torch as fused
from coconet.torch._buffers import HAS_ACCUMULATE_HOOKS

WAYS = {}  # name: (function, what messages of both ranks name)


def way(*words, timeout=20):
    def add(function):
        WAYS[function.__name__] = (function, words, timeout)
        return function

    return add


class Job:
    """A rank's training; rank 1 is `odd`."""

    def __init__(self, rank, session, folder):
        self.rank, self.odd, self.session, self.folder = rank, rank == 1, session, folder
        self.made = []
        self.weight, self.optimizer = self.make()
        self.call_began = 0.0

    def make(self, kind=fused.FusedSGD, size=4, **options):
        weight = torch.nn.Parameter(torch.zeros(size))
        with self.call():
            optimizer = kind([weight], lr=1.0, session=self.session, **options)
        self.made.append(weight)
        return weight, optimizer

    @contextlib.contextmanager
    def call(self):
        """A call in which ranks meet."""
        self.call_began = time.monotonic()
        yield

    def backward(self, batch, weight=None, factor=1.0):
        ((self.weight if weight is None else weight).sum() * 10.0**batch * factor).backward()

    def step(self, *arguments, optimizer=None, **named):
        with self.call():
            return (optimizer or self.optimizer).step(*arguments, **named)

    def train(self, *batches):
        for batch in batches:
            self.optimizer.zero_grad()
            self.backward(batch)
            self.step()

    def program(self, name="sums"):
        with self.call():
            program = coconet.Program(name)
            x = program.input("x", "f32", [64], "local")
            s = program.state("s", "f32", [64])
            program.update(s, s + coconet.all_reduce("sum", x))
            return self.session.compile(program).bind(x=torch.ones(64))


# Training.


@way("batch 2", "batch 3")
def a_step_is_skipped(job):
    job.train(0)
    job.optimizer.zero_grad()
    job.backward(1)
    if not job.odd:
        job.step()
    job.train(2, 3)


@way(*(() if HAS_ACCUMULATE_HOOKS else ("batch 1", "batch 2")))
def a_gradient_is_only_looked_at_on_one_rank(job):
    for batch in range(3):
        job.optimizer.zero_grad()
        if job.odd and batch == 1:
            torch.autograd.grad(job.weight.sum(), [job.weight])
        job.backward(batch)
        job.step()


@way("batch 1099511627776", "batch 17592187092992")
def a_number_is_another_by_a_power_of_two(job):
    job.weight.grad = torch.ones_like(job.weight)
    job.step(step=2**40 if job.odd else 2**44 + 2**20)


@way("batch 2", "batch 3")
def a_step_is_skipped_and_gradients_are_set_to_none(job):
    job.train(0)
    for batch in (1, 2):
        job.weight.grad = None
        job.backward(batch)
        if not job.odd or batch != 1:
            job.step()


@way("batch 1", "batch 2")
def a_step_is_skipped_with_numbers(job):
    for batch in range(4):
        job.weight.grad = torch.full_like(job.weight, 10.0**batch)
        if not job.odd or batch != 1:
            job.step(step=batch)


@way("the gradients of the step before", "new gradients")
def a_step_is_made_twice(job):
    job.train(0, 1)
    if job.odd:
        job.step()
    job.train(2)


@way("FusedSGD_step (binding 1)", "FusedSGD_step (binding 2)")
def another_optimizer_makes_the_step(job):
    weight, optimizer = job.make()
    job.train(0)
    job.backward(0, weight)
    job.step(optimizer=optimizer)
    job.optimizer.zero_grad()
    job.backward(1)
    optimizer.zero_grad()
    job.backward(1, weight)
    job.step(optimizer=optimizer if job.odd else job.optimizer)
    job.step(optimizer=job.optimizer if job.odd else optimizer)


@way("a FusedSGD takes its parameters", "a FusedAdamW takes its parameters")
def another_optimizer_is_made(job):
    job.make(fused.FusedAdamW if job.odd else fused.FusedSGD)


@way("rank 1")
def other_shapes(job):
    job.make(size=5 if job.odd else 4)


@way("step() of batch 2", "hyperparameters")
def a_scheduler_is_stepped_on_one_rank(job):
    job.train(0)
    if job.odd:
        job.optimizer.param_groups[0]["lr"] = 0.5
    job.train(1)


@way("state_dict() after batch 1", "Run of FusedSGD_step")
def states_on_one_rank(job):
    job.train(0)
    if job.odd:
        job.optimizer.zero_grad()
        with job.call():
            job.optimizer.state_dict()
    job.train(1)


@way("consolidate_state_dict() after batch 1", "Run of FusedSGD_step")
def consolidation_on_one_rank(job):
    job.train(0)
    if job.odd:
        with job.call():
            job.optimizer.consolidate_state_dict()
    job.train(1)


@way("load_state_dict() of states whose checksum is", "after batch 1", "Run of FusedSGD_step")
def loading_on_one_rank(job):
    job.train(0)
    states = {"state": {}, "param_groups": [dict(job.optimizer.param_groups[0], params=[0])]}
    if job.odd:
        with job.call():
            job.optimizer.load_state_dict(states)
    job.train(1)


@way("load_state_dict() of states whose checksum is", "rank 1 makes call")
def other_states_are_loaded(job):
    """A file of each rank's own, with as many steps."""
    weight, optimizer = job.make(momentum=0.5)
    job.backward(0, weight)
    job.step(optimizer=optimizer)
    states = optimizer.state_dict()
    if job.odd:
        states["state"][0]["momentum_buffer"].mul_(2)
    with job.call():
        optimizer.load_state_dict(states)


@way("step() with another optimizer.state", "Run of FusedSGD_step")
def a_state_is_changed_on_one_rank(job):
    weight, optimizer = job.make(momentum=0.5)
    job.backward(0, weight)
    job.step(optimizer=optimizer)
    optimizer.consolidate_state_dict()
    if job.odd:
        optimizer.state[weight]["momentum_buffer"].mul_(2)
    optimizer.zero_grad()
    job.backward(1, weight)
    job.step(optimizer=optimizer)


@way("state_dict(): the weights of parameter 0 of group 0 differ between rank 0 and rank 1")
def a_weight_is_changed_on_one_rank(job):
    job.train(0)
    if job.odd:
        job.weight.data.fill_(-11.0)
    with job.call():
        job.optimizer.state_dict()


@way("FusedSGD.consolidate_state_dict(): the weights of parameter 0 of group 0 differ", "rank 1")
def weights_change_places_on_one_rank(job):
    job.train(0)
    values = [-1.0, -11.0, -111.0, 0.0]
    job.weight.data.copy_(torch.tensor(values[::-1] if job.odd else values))
    with job.call():
        job.optimizer.consolidate_state_dict()


@way()
def weights_are_rounded_otherwise_on_one_rank(job):
    job.train(0, 1)
    if job.odd:
        job.weight.data[1:] *= 1 + 1e-6
    with job.call():
        job.optimizer.state_dict()


def parameters_in_another_order(job):
    named = [(name, torch.nn.Parameter(torch.zeros(4))) for name in "ab"]
    with job.call():
        fused.FusedSGD(named[::-1] if job.odd else named, lr=1.0, session=job.session)


try:
    torch.optim.SGD([("a", torch.nn.Parameter(torch.zeros(4)))], lr=1.0)
    way("want equal names")(parameters_in_another_order)
except TypeError:  # a version of torch without names
    pass


@way("add_param_group() after batch 1", "Run of FusedSGD_step")
def a_group_on_one_rank(job):
    job.train(0)
    if job.odd:
        with job.call():
            job.optimizer.add_param_group({"params": [torch.nn.Parameter(torch.zeros(3))]})
    job.train(1)


@way("add_param_group() after batch 0;", "add_param_group() after batch 0 of optimizer 2")
def groups_of_two_optimizers_in_another_order(job):
    optimizers = [job.optimizer, job.make()[1]]
    for optimizer in optimizers[::-1] if job.odd else optimizers:
        with job.call():
            optimizer.add_param_group({"params": [torch.nn.Parameter(torch.zeros(3))]})


@way("state_dict() after batch 3", "Run of FusedSGD_step")
def a_batch_is_dropped_whole_before_a_checkpoint(job):
    job.train(*((0, 1, 2) if job.odd else (0, 1, 2, 3)))
    with job.call():
        job.optimizer.state_dict()


@way("Close", "Run of FusedSGD_step")
def a_batch_is_dropped_whole_before_the_end(job):
    job.train(*((0, 1) if job.odd else (0, 1, 2)))
    with job.call():
        job.session.close()


@way("batch 2", "batch 3")
def an_exception_is_caught(job):
    job.train(0)
    for batch in (1, 2):
        def closure():
            job.optimizer.zero_grad()
            if job.odd and batch == 1:
                raise ValueError("no loss")
            job.backward(batch)

        with contextlib.suppress(ValueError):
            job.step(closure)


@way("ValueError: no loss")
def a_session_ends_by_an_exception(job):
    job.train(0)
    if job.odd:
        with job.session:
            raise ValueError("no loss")
    job.train(1)


@way("sync_buffers()", "Run of FusedSGD_step")
def buffers_on_one_rank(job):
    module = torch.nn.BatchNorm1d(3)
    with job.call():
        fused.sync_buffers(module, session=job.session, group=dist.group.WORLD)
    job.train(0)
    if job.odd:
        with job.call():
            module(torch.ones(2, 3))
    job.train(1)


@way("sync_buffers();", "sync_buffers() of module 2")
def buffers_in_another_order(job):
    modules = [torch.nn.BatchNorm1d(3) for _ in range(2)]
    for module in modules:
        fused.sync_buffers(module, session=job.session, group=dist.group.WORLD)
    for module in modules[::-1] if job.odd else modules:
        with job.call():
            module(torch.ones(2, 3))


class Scaler:
    """What a GradScaler does of PyTorch before 2.0, which has none for CPUs."""

    def __init__(self, scale):
        self._scale = torch.tensor(scale)
        self._per_optimizer_states = {}

    def is_enabled(self):
        return True

    def _get_scale_async(self):
        return self._scale

    def _check_inf_per_device(self, optimizer):
        found = torch.zeros(1)
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                found[0] = max(found[0], float(not parameter.grad.isfinite().all()))
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"][found.device] = found

    def step(self, optimizer):
        class Ready:
            name = "READY"

        self._per_optimizer_states[id(optimizer)] = {"stage": Ready, "found_inf_per_device": {}}
        optimizer.step(grad_scaler=self)

    def scale(self, loss):
        return loss * self._scale

    def update(self):
        states = self._per_optimizer_states.values()
        if any(found.item() for state in states for found in state["found_inf_per_device"].values()):
            self._scale *= 0.5

    def get_scale(self):
        return self._scale.item()


def scaler_of(scale):
    return torch.amp.GradScaler("cpu", init_scale=scale) if hasattr(torch.amp, "GradScaler") else \
        Scaler(scale)


@way()
def a_scaler_finds_inf_on_one_rank(job):
    scaler = scaler_of(4.0)
    for batch in range(4):
        job.optimizer.zero_grad()
        factor = float("inf") if job.odd and batch == 1 else 1.0
        scaler.scale(job.weight.sum() * 10.0**batch * factor).backward()
        with job.call():
            scaler.step(job.optimizer)
        scaler.update()
        assert scaler.get_scale() == (4.0 if batch == 0 else 2.0), scaler.get_scale()
    assert job.weight[0].item() == -1101, job.weight


@way("gradients scaled by 4", "gradients scaled by 8")
def scalers_differ(job):
    scaler = scaler_of(8.0 if job.odd else 4.0)
    scaler.scale(job.weight.sum()).backward()
    with job.call():
        scaler.step(job.optimizer)


# Programs.


@way("Read of sums", "Run of sums")
def a_read_on_one_rank(job):
    binding = job.program()
    with job.call():
        binding.run()
        binding.read("s") if job.odd else binding.run()


@way("names s", "names x")
def reads_of_different_tensors(job):
    binding = job.program()
    with job.call():
        binding.run()
        binding.read("x" if job.odd else "s")


@way("Save of sums", "Run of sums")
def a_checkpoint_on_one_rank(job):
    binding = job.program()
    with job.call():
        binding.run()
        binding.save(os.path.join(job.folder, "states")) if job.odd else binding.run()


@way("Run of sums", "Run of others")
def two_programs_in_another_order(job):
    bindings = [job.program(), job.program("others")]
    with job.call():
        for binding in reversed(bindings) if job.odd else bindings:
            binding.run()


@way("Compile", "Run of sums")
def a_compilation_on_one_rank(job):
    binding = job.program()
    if job.odd:
        job.program("others")
    with job.call():
        binding.run()


@way("Allocate", "Bind of sums")
def an_allocation_instead_of_a_binding(job):
    binding = job.program()
    with job.call():
        if job.odd:
            job.session.allocate("f32", 4)
        else:
            binding.program.bind(x=torch.ones(64))


@way("Run of sums", "Close")
def another_number_of_steps(job):
    binding = job.program()
    with job.call():
        for _ in range(2 if job.odd else 3):
            binding.run()
        job.session.close()


# Time, and ends of processes.


@way()
def a_long_evaluation(job):
    job.train(0)
    if job.odd:
        time.sleep(6)
    job.train(1)
    assert job.weight[0].item() == -11, job.weight


@way("waited 2 s for rank 1", "rank 1 has come to call", timeout=2)
def a_rank_is_too_late(job):
    job.train(0)
    if job.odd:
        time.sleep(4)
    job.train(1)


@way("Close", "Run of FusedSGD_step")
def a_process_exits(job):
    job.train(0)
    if job.odd:
        sys.exit(0)
    job.train(1)


@way("rank 1 left: UNAVAILABLE: its process ended")
def a_process_ends_at_once(job):
    job.train(0)
    if job.odd:
        os._exit(3)
    job.train(1)


@way("rank 1 left: UNAVAILABLE: its process ended")
def a_process_is_killed(job):
    job.train(0)
    if job.odd:
        os.kill(os.getpid(), signal.SIGKILL)
    job.train(1)


@way("rank 1 left: CANCELLED: KeyError: 'no loss'")
def a_process_ends_by_an_exception(job):
    job.train(0)
    if job.odd:
        raise KeyError("no loss")
    job.train(1)


def take(name, rank, folder):
    function, _, timeout = WAYS[name]
    session = coconet.Session(dist.group.WORLD, effort="fast", budget=0.3, timeout=timeout,
                              cache_file=os.path.join(folder, "tuning.db"))
    job = Job(rank, session, folder)
    message = ""
    try:
        function(job)
    except (coconet.Error, ValueError) as failure:
        message = f"{type(failure).__name__}: {failure}"
    ended = time.monotonic()
    print("JSON" + json.dumps({"way": name, "began": job.call_began, "ended": ended,
                               "message": message,
                               "weights": [weight[0].item() for weight in job.made]}), flush=True)
    with contextlib.suppress(coconet.Error):
        session.close()


def main():
    rank, size, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank,
                            world_size=size)
    for name in sys.argv[4:]:
        take(name, rank, folder)
        dist.barrier()


if __name__ == "__main__":
    main()
