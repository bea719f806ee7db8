"""The caller's memory and objects in the hands of the fused optimizers; one rank. Skipped where no
torch is."""

import copy
import io
import pickle
import sys
import unittest
import warnings

try:
    import torch
except ImportError as absent:
    print(f"skipped: {sys.executable} has no PyTorch ({absent}); COCONET_PYTHON may name another")
    sys.exit(0)

import coconet.torch as fused
import torch_models

HAS_USE_COUNTS = hasattr(torch._C, "_storage_Use_Count")
HAS_HOOKS = hasattr(torch.optim.Optimizer, "register_step_pre_hook")


def parameter(*shape, **more):
    return torch.nn.Parameter(torch.ones(*shape, **more))


class ObjectsTest(torch_models.SessionTest):

    def sgd(self, ps, **more):
        return fused.FusedSGD(ps, **{"lr": 0.1, "session": self.session, **more})

    def fails(self, words, function, error=ValueError):
        with self.assertRaises(error) as caught:
            function()
        self.assertIn(words, str(caught.exception))

    # Shared memory.

    def test_parameters_that_share_memory_are_named(self):
        a, b = parameter(3), parameter(3)
        b.data = a.data
        self.fails("parameter 1 of group 0 shares memory with parameter 0 of group 0",
                   lambda: self.sgd([a, b]))
        whole = torch.zeros(6)
        self.fails("parameter 0 of group 1 shares memory with parameter 0 of group 0",
                   lambda: self.sgd([{"params": [torch.nn.Parameter(whole[:4])]},
                                     {"params": [torch.nn.Parameter(whole[3:])]}]))
        frozen = torch.nn.Parameter(a.data.view(3, 1), requires_grad=False)
        self.fails("shares memory", lambda: self.sgd([frozen, a]))
        self.fails("elements that share memory",
                   lambda: self.sgd([torch.nn.Parameter(torch.ones(1).expand(4))]))
        self.fails("elements that share memory", lambda: self.sgd(
            [torch.nn.Parameter(torch.ones(4).as_strided((2, 3), (1, 1)))]))
        self.assertEqual(a.data_ptr(), b.data_ptr())
        with warnings.catch_warnings():  # of torch, which goes on
            warnings.simplefilter("ignore")
            self.fails("parameter 0 of group 0 is there twice", lambda: self.sgd([a, a]))
        self.sgd([parameter(3), parameter(1)])

    def test_columns_of_one_tensor_share_nothing(self):
        whole = torch.ones(4, 6)
        ps = [torch.nn.Parameter(whole[:, :2]), torch.nn.Parameter(whole[:, 2:])]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            optimizer = self.sgd(ps)
        for p in ps:
            p.grad = torch.arange(p.numel(), dtype=torch.float32).view(p.shape)
        optimizer.step()
        for p in ps:
            self.assertTrue(torch.allclose(p, 1 - 0.1 * p.grad))

    @unittest.skipUnless(HAS_USE_COUNTS, "this torch does not count the users of a storage")
    def test_a_tensor_that_stays_behind_is_warned_of(self):
        p = parameter(3)
        kept = p.data
        with self.assertWarnsRegex(RuntimeWarning, "other tensors lie in the memory of parameter 0"):
            self.sgd([p])
        del kept
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.sgd([p])
            self.sgd([parameter(2), parameter(3, 4)])

    @unittest.skipUnless(HAS_USE_COUNTS, "this torch does not count the users of a storage")
    def test_weights_in_memory_that_others_share_are_warned_of(self):
        p, q = parameter(3), parameter(2, 2)
        optimizer = self.sgd([p, q])
        flat = torch.zeros(4)
        q.data = flat.view(2, 2)
        with self.assertWarnsRegex(RuntimeWarning, r"\[2, 2\] .* memory that another tensor shares"):
            optimizer.step()
        flat.fill_(5)
        self.assertEqual(q.tolist(), [[0, 0], [0, 0]])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            torch.nn.utils.vector_to_parameters(torch.arange(7.0), [p, q])
            optimizer.step()
            p.data = torch.ones(3)
            optimizer.step()
        self.assertEqual((p.tolist(), q.tolist()), ([1, 1, 1], [[3, 4], [5, 6]]))

    # Views and memory formats.

    def test_memory_formats_are_kept(self):
        nets = [torch.nn.Conv2d(3, 5, 2).to(memory_format=torch.channels_last) for _ in range(2)]
        nets[1].load_state_dict(nets[0].state_dict())
        ours = fused.FusedAdam(nets[0].parameters(), session=self.session)
        theirs = torch.optim.Adam(nets[1].parameters())
        self.assertEqual(nets[0].weight.stride(), nets[1].weight.stride())
        for step in range(3):
            x = torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(step))
            for net, optimizer in zip(nets, (ours, theirs)):
                optimizer.zero_grad()
                net(x.to(memory_format=torch.channels_last)).square().mean().backward()
                optimizer.step()
        self.assertTrue(torch.allclose(nets[0].weight, nets[1].weight, atol=1e-5))
        state, expected = (each.state_dict()["state"][0] for each in (ours, theirs))
        self.assertEqual(state["exp_avg"].stride(), expected["exp_avg"].stride())
        self.assertTrue(torch.allclose(state["exp_avg"], expected["exp_avg"], atol=1e-6))

    def test_lazy_negation_and_transposition(self):
        p = torch.nn.Parameter(torch._neg_view(torch.full((2, 2), -1.0)))
        optimizer = self.sgd([p], lr=1.0)
        self.assertEqual(p.tolist(), [[1, 1], [1, 1]])
        p.grad = torch.ones(2, 2)
        optimizer.step()
        p.grad = torch._neg_view(p.grad)  # the same memory
        optimizer.step()
        self.assertEqual(p.tolist(), [[1, 1], [1, 1]])
        p.data = torch.tensor([[1.0, 2], [3, 4]])
        p.grad = torch.zeros(2, 2)
        optimizer.step()
        p.data = p.data.t()
        p.grad = torch.tensor([[0.0, 1], [0, 0]])
        optimizer.step()
        self.assertEqual(p.tolist(), [[1, 2], [2, 4]])
        p.data = torch._neg_view(p.data)
        p.grad = torch.zeros(2, 2)
        optimizer.step()
        self.assertEqual(p.tolist(), [[-1, -2], [-2, -4]])

    def test_memory_that_moves_to_others_is_an_error(self):
        p = parameter(3)
        optimizer = self.sgd([p])
        p.grad = torch.ones(3)
        optimizer.step()
        p.share_memory_()
        self.fails("was moved to other processes", optimizer.step, RuntimeError)

    def test_a_part_of_a_checkpoint_has_its_own_size(self):
        net = torch.nn.Sequential(torch.nn.Linear(100, 400), torch.nn.Linear(400, 2))
        optimizer = fused.FusedAdam(net.parameters(), session=self.session)
        net(torch.ones(1, 100)).sum().backward()
        optimizer.step()
        for part in (net[1].state_dict(), net[1].weight.grad, optimizer.state_dict()["state"][3]):
            file = io.BytesIO()
            torch.save(part, file)
            self.assertLess(len(file.getvalue()), 10000)

    def test_graphs_of_weights_before_a_step_are_refused(self):
        p = parameter(3)
        optimizer = self.sgd([p])
        loss = (p * p).sum()
        p.grad = torch.ones(3)
        optimizer.step()
        self.fails("modified by an inplace operation", loss.backward, RuntimeError)

    def test_gradients_of_another_dtype(self):
        p = torch.nn.Parameter(torch.ones(3, dtype=torch.bfloat16))
        if not hasattr(p, "grad_dtype"):
            self.skipTest("this torch has one dtype for both")
        optimizer = self.sgd([p])
        p.grad_dtype = None
        p.grad = torch.ones(3)
        self.fails("a gradient of torch.float32", optimizer.step)

    # Frozen parameters.

    def test_models_that_are_converted_are_refused(self):
        net = torch.nn.Linear(2, 3)
        optimizer = self.sgd(net.parameters())
        net(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        net.double()
        net(torch.ones(1, 2).double()).sum().backward()
        self.fails("make the optimizer after the model is converted", optimizer.step, RuntimeError)

    @unittest.skipUnless(hasattr(torch.Tensor, "register_post_accumulate_grad_hook"),
                         "this torch has no hooks after a gradient is accumulated")
    def test_another_hook_takes_the_gradient(self):
        taken = []

        def take(parameter):
            taken.append(parameter.grad)
            parameter.grad = None

        for is_first in (True, False):
            p = parameter(2)
            if is_first:
                p.register_post_accumulate_grad_hook(take)
            optimizer = self.sgd([p])
            if not is_first:
                p.register_post_accumulate_grad_hook(take)
            for factor in (2, 3):
                (p.sum() * factor).backward()
                optimizer.step()
            self.assertEqual(p.tolist(), [1, 1])
        self.assertEqual([gradient.tolist() for gradient in taken], [[2, 2], [3, 3]] * 2)

    def test_frozen_parameters_are_left_alone(self):
        for frozen in (torch.ones(4, dtype=torch.int8), torch.ones(4, dtype=torch.uint8),
                       torch.ones(4, dtype=torch.complex64), torch.ones(4, device="meta"),
                       torch.eye(2).to_sparse(), torch.ones(1).expand(3),
                       torch.ones(2, dtype=torch.bool)):
            ps = [torch.nn.Parameter(frozen, requires_grad=False), parameter(2)]
            optimizer = self.sgd(ps)
            ps[1].grad = torch.ones(2)
            optimizer.step()
            self.assertAlmostEqual(ps[1][0].item(), 0.9, places=6)
        self.fails("parameter 0 of group 0 is of torch.complex64",
                   lambda: self.sgd([parameter(2, dtype=torch.complex64)]))
        self.fails("on meta", lambda: self.sgd([parameter(2, device="meta")]))

    def test_a_frozen_parameter_is_trained_by_its_gradient(self):
        p, q = parameter(3), parameter(3, requires_grad=False)
        optimizer = self.sgd([p, q], lr=1.0)
        p.grad = torch.ones(3)
        optimizer.step()
        q.grad = torch.ones(3)
        optimizer.step()
        p.requires_grad_(False)
        optimizer.add_param_group({"params": [parameter(2)]})
        optimizer.step()
        self.assertEqual((p.tolist(), q.tolist()), ([-2] * 3, [-1] * 3))

    def test_states_of_parameters_that_are_frozen_stay(self):
        ps = [parameter(2), parameter(3)]
        theirs = [parameter(2), parameter(3)]
        optimizer, expected = (cls(of, lr=0.1, **more) for cls, of, more in (
            (fused.FusedAdam, ps, {"session": self.session}), (torch.optim.Adam, theirs, {})))

        def step(*numbers):
            for of in (ps, theirs):
                for i, p in enumerate(of):
                    p.grad = torch.ones_like(p) if i in numbers else None
            optimizer.step()
            expected.step()

        step(0, 1)
        for p in (ps[0], theirs[0]):
            p.requires_grad_(False)
        saved = optimizer.state_dict()
        optimizer = fused.FusedAdam(ps, lr=0.1, session=self.session)
        optimizer.load_state_dict(saved)
        step(1)
        self.assertEqual(sorted(optimizer.state_dict()["state"]), [0, 1])
        for p in (ps[0], theirs[0]):
            p.requires_grad_(True)
        step(0, 1)
        self.assertLess(max((a - b).abs().max().item() for a, b in zip(ps, theirs)), 1e-6)

    # Copies.

    def test_copies_train_like_torchs(self):
        net = torch.nn.Linear(3, 2)
        other = copy.deepcopy(net)
        pairs = []
        for model, optimizer in ((net, fused.FusedAdamW(net.parameters(), lr=0.1,
                                                        session=self.session)),
                                 (other, torch.optim.AdamW(other.parameters(), lr=0.1))):
            train(model, optimizer)
            copied, update = copy.deepcopy((model, optimizer))
            train(model, optimizer)
            train(copied, update)
            train(copied, update)
            self.assertEqual(update.state_dict()["state"][0]["step"], 3)
            pairs.append((model.weight.detach(), copied.weight.detach()))
        for ours, theirs in zip(*pairs):
            self.assertLess((ours - theirs).abs().max().item(), 1e-5)

    def test_models_are_copied_and_pickled(self):
        net = torch.nn.Linear(3, 2)
        self.optimizer = fused.FusedAdamW(net.parameters(), session=self.session)
        train(net, self.optimizer)
        for copied in (copy.deepcopy(net), pickle.loads(pickle.dumps(net)),
                       torch.optim.swa_utils.AveragedModel(net).module):
            before = net.weight.detach().clone()
            self.assertTrue(torch.equal(copied.weight, before))
            with torch.no_grad():
                copied.weight.zero_()
            self.assertTrue(torch.equal(net.weight, before))

    def test_optimizers_are_not_pickled(self):
        optimizer = self.sgd([parameter(3)])
        for function in (lambda: pickle.dumps(optimizer), lambda: copy.copy(optimizer),
                         lambda: torch.save(optimizer, io.BytesIO())):
            self.fails("save state_dict()", function, TypeError)

    # States.

    def test_state_is_there_after_a_step(self):
        p, q = parameter(3), parameter(3)
        ours = fused.FusedAdam([p], lr=0.1, session=self.session)
        theirs = torch.optim.Adam([q], lr=0.1)
        for step in range(4):
            for optimizer, weights in ((ours, p), (theirs, q)):
                self.assertEqual(len(optimizer.state), min(step, 1))
                if step == 2:  # changes in it count
                    optimizer.state[weights]["exp_avg"].zero_()
                if step == 3:
                    optimizer.state.clear()
                weights.grad = torch.full((3,), step + 1.0)
                optimizer.step()
                self.assertEqual(optimizer.state[weights]["step"], step + 1 if step < 3 else 1)
            self.assertTrue(torch.allclose(ours.state[p]["exp_avg"], theirs.state[q]["exp_avg"]))
            self.assertTrue(torch.allclose(p, q))

    def test_states_that_do_not_fit_change_nothing(self):
        net = torch.nn.Linear(3, 2)
        optimizer = fused.FusedAdam(net.parameters(), lr=0.1, session=self.session)
        train(net, optimizer)
        good = optimizer.state_dict()

        def wrong(words, change):
            bad = copy.deepcopy(good)
            change(bad)
            bad["param_groups"][0]["lr"] = 7
            self.fails(words, lambda: optimizer.load_state_dict(bad))
            self.assertEqual(optimizer.param_groups[0]["lr"], 0.1)
            self.assertTrue(torch.equal(optimizer.state_dict()["state"][0]["exp_avg"],
                                        good["state"][0]["exp_avg"]))

        wrong("parameter 0 of group 0: want exp_avg of shape [2, 3], have [3, 2]",
              lambda bad: bad["state"][0].update(exp_avg=torch.zeros(3, 2)))
        wrong("has no exp_avg_sq", lambda bad: bad["state"][1].pop("exp_avg_sq"))
        wrong("has no exp_avg, exp_avg_sq, step",
              lambda bad: bad["state"].update({0: {"momentum_buffer": torch.zeros(2, 3)}}))
        wrong("step=0.5", lambda bad: bad["state"][0].update(step=0.5))
        wrong("size of optimizer's group", lambda bad: bad["param_groups"][0]["params"].pop())
        optimizer.load_state_dict(good)

    # Gradient scalers.

    @unittest.skipUnless(hasattr(torch.amp, "GradScaler"), "this torch has no scaler for CPUs")
    def test_a_scaler_counts_for_its_own_steps_only(self):
        p, scaler = parameter(2), torch.amp.GradScaler("cpu", init_scale=2.0)
        optimizer = self.sgd([p], lr=1.0)
        optimizer.param_groups[0]["amsgrad"] = True
        scaler.scale(p.sum()).backward()
        self.fails("amsgrad", lambda: scaler.step(optimizer))
        del optimizer.param_groups[0]["amsgrad"]
        optimizer.step()  # of the gradients as they are
        self.assertEqual(p.tolist(), [-1, -1])
        p.grad[0] = float("inf")
        optimizer.step()
        self.assertEqual(p.tolist(), [-float("inf"), -3])

    # Hooks.

    @unittest.skipUnless(HAS_HOOKS, "this torch has no hooks of steps")
    def test_hooks_run_as_with_torch(self):
        from torch.optim.optimizer import (register_optimizer_step_post_hook,
                                           register_optimizer_step_pre_hook)
        seen = {}
        for cls, more in ((fused.FusedSGD, {"session": self.session}), (torch.optim.SGD, {})):
            p = parameter(2)
            optimizer, calls = cls([p], lr=0.1, **more), []
            note = lambda name: lambda o, args, kwargs: calls.append(
                (name, o is optimizer, args[0] is optimizer, len(args), sorted(kwargs)))

            def replace(o, args, kwargs):
                return (args[0], lambda: calls.append("replaced") or 5), kwargs

            handles = [register_optimizer_step_pre_hook(note("global pre")),
                       register_optimizer_step_post_hook(note("global post")),
                       optimizer.register_step_pre_hook(note("pre")),
                       optimizer.register_step_post_hook(note("post"))]
            try:
                p.grad = torch.ones(2)
                optimizer.step()
                handles.append(optimizer.register_step_pre_hook(replace))
                calls.append(optimizer.step())
                handles.append(optimizer.register_step_pre_hook(lambda *given: 1))
                self.fails("must return None or a tuple", optimizer.step, RuntimeError)
            finally:
                for handle in handles:
                    handle.remove()
            seen[cls] = calls
        self.assertEqual(*seen.values())

    def test_profiles_show_steps(self):
        p = parameter(2)
        optimizer = self.sgd([p])
        p.grad = torch.ones(2)
        optimizer.step()
        if not hasattr(torch.autograd.profiler, "_is_profiler_enabled"):
            self.skipTest("this torch does not say whether it records a profile")
        with torch.profiler.profile() as profile:
            optimizer.step()
        self.assertIn("Optimizer.step#FusedSGD.step", {event.name for event in profile.events()})


def train(model, optimizer):
    optimizer.zero_grad()
    model(torch.ones(4, 3)).square().sum().backward()
    optimizer.step()


if __name__ == "__main__":
    unittest.main()
