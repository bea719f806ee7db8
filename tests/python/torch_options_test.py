"""Options of groups against torch's optimizers, as they are given and as they change; one rank.
Skipped where no torch is."""

import sys
import unittest

try:
    import torch
except ImportError as absent:
    print(f"skipped: {sys.executable} has no PyTorch ({absent}); COCONET_PYTHON may name another")
    sys.exit(0)

import inspect
import os
import tempfile
import unittest.mock
import warnings

import coconet
import coconet.torch as fused
from coconet.torch import _options
from coconet.torch._agreement import Batches
import torch_models

PAIRS = {"sgd": (fused.FusedSGD, torch.optim.SGD), "adam": (fused.FusedAdam, torch.optim.Adam),
         "adamw": (fused.FusedAdamW, torch.optim.AdamW)}
HAS_DECOUPLED = "decoupled_weight_decay" in inspect.signature(torch.optim.Adam).parameters


class OptionsTest(torch_models.SessionTest):

    def both(self, kind, groups=lambda ps: ps, steps=4, at=lambda optimizer, step: None,
             dtype=torch.float64, **arguments):
        """Runs both optimizers on equal gradients; their weights must agree."""
        weights, optimizers = [], []
        for cls, more in zip(PAIRS[kind], ({"session": self.session}, {})):
            ps = [torch.nn.Parameter(torch.arange(1, 4, dtype=dtype) + i) for i in range(2)]
            optimizers.append(cls(groups(ps), **{"lr": 0.1, **arguments}, **more))
            for step in range(steps):
                at(optimizers[-1], step)
                for i, p in enumerate(ps):
                    p.grad = torch.tensor([0.5, -1, 2], dtype=dtype) * (step + 1 + i)
                optimizers[-1].step()
            weights.append(torch.cat([p.detach() for p in ps]))
        far = (weights[0] - weights[1]).abs().max().item()
        self.assertLess(far, 1e-12 if dtype == torch.float64 else 1e-5, weights)
        return optimizers

    def fails(self, words, function, error=ValueError):
        with self.assertRaises(error) as caught:
            function()
        self.assertIn(words, str(caught.exception))

    def test_every_option_of_torch_has_a_row(self):
        for _, theirs in PAIRS.values():
            for name in theirs([torch.nn.Parameter(torch.zeros(1))], lr=0.1).defaults:
                self.assertIn(name, _options.OPTIONS)

    def test_a_tensor_is_read_at_each_step(self):
        def halve(optimizer, step):
            if step:
                for name in ("lr", "weight_decay"):
                    optimizer.param_groups[0][name].mul_(0.5)

        for kind in PAIRS:
            with self.subTest(kind):
                self.both(kind, lambda ps: [{
                    "params": ps, "lr": torch.tensor(0.125, dtype=torch.float64),
                    "weight_decay": torch.tensor(0.25, dtype=torch.float64)}], at=halve)

    def test_a_list_of_betas_is_read_at_each_step(self):
        def change(optimizer, step):
            optimizer.param_groups[0]["betas"][step % 2] = 0.1 * step

        for kind in ("adam", "adamw"):
            optimizer, _ = self.both(kind, lambda ps: [{"params": ps, "betas": [0.9, 0.999]}],
                                     at=change)
            optimizer.param_groups[0]["betas"][1] = 1.5
            self.fails("betas[1]=1.5", optimizer.step)

    def test_what_is_read_once_is_no_tensor(self):
        for name in ("max_grad_norm", "loss_scale"):
            self.fails(f"{name} is a Tensor", lambda: self.ours(**{name: torch.tensor(1.0)}),
                       TypeError)

    def test_the_number_of_a_batch_is_an_integer(self):
        batches = Batches()
        for number in (0, 7, 2**63 - 1, torch.tensor(3)):
            batches.begin(number)
            self.assertEqual(batches.number, int(number))
        for number in ("a", 1.5, None.__class__):
            self.fails("want an integer", lambda: batches.begin(number), TypeError)
        self.fails("want an integer from 0", lambda: batches.begin(-1))

    def test_a_tensor_of_one_element_is_a_rate(self):
        optimizer = self.ours_of({"lr": torch.tensor([0.125])}, "sgd")
        p = optimizer.param_groups[0]["params"][0]
        p.grad = torch.ones(2)
        optimizer.step()
        self.assertEqual(p.tolist(), [0.875, 0.875])
        self.fails("one element", lambda: self.ours(lr=torch.zeros(2)))
        self.fails("group 0: lr is a tensor of torch.float32[2]",
                   lambda: self.ours_of({"lr": torch.zeros(2)}))
        self.fails("lr='0.1'", lambda: self.ours_of({"lr": "0.1"}), TypeError)

    def ours(self, kind="adam", **arguments):
        return PAIRS[kind][0]([torch.nn.Parameter(torch.ones(2))],
                              **{"session": self.session, **arguments})

    def ours_of(self, group, kind="adam"):
        return PAIRS[kind][0]([{"params": [torch.nn.Parameter(torch.ones(2))], **group}],
                              session=self.session, lr=0.1)

    def test_momentum_later_and_off_and_on(self):
        def switch(optimizer, step):
            for group, values in zip(optimizer.param_groups, ([0, 0.9, 0.9, 0, 0.5, 0.5],
                                                              [0.5, 0.5, 0, 0, 0, 0.9])):
                group["momentum"] = values[step]

        for more in ({}, {"dampening": 0.25}, {"nesterov": True, "momentum": 0.5}):
            self.both("sgd", steps=6, at=switch, **more)
            self.both("sgd", lambda ps: [{"params": ps[:1]}, {"params": ps[1:]}], steps=6,
                      at=switch, **more)

    def test_switches_of_groups(self):
        def toggle(optimizer, step):
            group = optimizer.param_groups[step % 2]
            group["maximize"] = not group["maximize"]
            if "nesterov" in group:
                group.update(nesterov=step % 3 == 0, momentum=0.5)

        for kind in PAIRS:
            self.both(kind, lambda ps: [{"params": ps[:1]}, {"params": ps[1:]}], steps=5, at=toggle,
                      weight_decay=0.1)

    @unittest.skipUnless(HAS_DECOUPLED, "this torch's Adam has no decoupled_weight_decay")
    def test_decoupled_weight_decay(self):
        def of_groups(ps):
            return [{"params": ps[:1], "decoupled_weight_decay": True}, {"params": ps[1:]}]

        self.both("adam", weight_decay=0.5, decoupled_weight_decay=True)
        self.both("adam", of_groups, weight_decay=0.5)

        def toggle(optimizer, step):
            optimizer.param_groups[0]["decoupled_weight_decay"] = step % 2 == 0

        self.both("adam", of_groups, weight_decay=0.5, at=toggle)
        self.both("adamw", weight_decay=0.5, at=toggle)

    def test_it_is_there_with_every_version_of_torch(self):
        p, q = (torch.nn.Parameter(torch.ones(2, dtype=torch.float64)) for _ in range(2))
        ours = fused.FusedAdam([p], lr=0.1, weight_decay=0.5, decoupled_weight_decay=True,
                               session=self.session)
        theirs = torch.optim.AdamW([q], lr=0.1, weight_decay=0.5)
        for _ in range(3):
            p.grad, q.grad = torch.ones_like(p), torch.ones_like(q)
            ours.step()
            theirs.step()
        self.assertLess((p - q).abs().max().item(), 1e-13)

    def test_what_is_refused_is_refused_wherever_it_comes(self):
        for name in ("amsgrad", "differentiable", "capturable"):
            self.fails(name, lambda: self.ours_of({name: True}))
            optimizer = self.ours()
            self.fails(name, lambda: optimizer.add_param_group(
                {"params": [torch.nn.Parameter(torch.ones(1))], name: True}))
            self.assertEqual(len(optimizer.param_groups), 1)
            saved = optimizer.state_dict()
            saved["param_groups"][0][name] = True
            saved["param_groups"][0]["lr"] = 7
            self.fails(f"{name}=True", lambda: optimizer.load_state_dict(saved))
            self.assertEqual(optimizer.param_groups[0]["lr"], 1e-3)
            optimizer.param_groups[0][name] = True
            optimizer.param_groups[0]["params"][0].grad = torch.ones(2)
            self.fails("group 0: " + name, optimizer.step)
            self.assertEqual(optimizer.param_groups[0]["params"][0].tolist(), [1, 1])
        for foreach in ({"foreach": True}, {"fused": True}):
            self.ours(**foreach)
        self.fails("momentum", lambda: self.ours_of({"momentum": 0.9}))

    def test_an_option_that_torch_adds_later(self):
        class Later(torch.optim.Adam):

            def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0,
                         amsgrad=False, *, maximize=False, centered=False):
                super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)
                self.defaults["centered"] = centered

        class Ours(fused.FusedAdam):
            _torch = Later

        p = torch.nn.Parameter(torch.ones(2))
        optimizer = Ours([p], session=self.session)
        self.fails("centered=True", lambda: Ours([p], centered=True, session=self.session))
        optimizer.param_groups[0]["centered"] = True
        p.grad = torch.ones(2)
        self.fails("centered=True: want False", optimizer.step)

    def test_values_out_of_range_are_refused_in_groups(self):
        for name in ("lr", "eps", "weight_decay"):
            self.fails(f"group 0: {name}=-1.0", lambda: self.ours_of({name: -1.0}))
        self.fails("betas[1]=1.0", lambda: self.ours_of({"betas": (0.9, 1.0)}))
        self.fails("momentum=-1.0", lambda: self.ours_of({"momentum": -1.0}, "sgd"))

    def test_keys_of_the_caller_are_left_alone(self):
        optimizer = self.ours_of({"name": "head", "layers": [1, 2], "at": torch.zeros(3)})
        p = optimizer.param_groups[0]["params"][0]
        for _ in range(3):
            p.grad = torch.ones(2)
            optimizer.step()
            optimizer.param_groups[0]["at"] = torch.ones(3)
        self.assertLess(p[0].item(), 1 - 0.29)

    def test_parameters_of_a_group_that_change(self):
        def grow(optimizer, step):
            group = optimizer.param_groups[0]
            if step == 2:
                group["params"] = group["params"] + self.more[type(optimizer)]

        self.more = {cls: [torch.nn.Parameter(torch.ones(2, dtype=torch.float64))]
                     for cls in PAIRS["adam"]}
        for p, in self.more.values():
            p.grad = torch.ones_like(p)
        self.both("adam", at=grow, steps=5)
        ours, theirs = (p for p, in self.more.values())
        self.assertLess((ours - theirs).abs().max().item(), 1e-12)
        self.assertLess(ours[0].item(), 1)

    def test_defaults_of_the_process_change_nothing(self):
        weights = torch.nn.Parameter(torch.ones(3))
        try:
            torch.set_default_dtype(torch.float64)
            if hasattr(torch, "set_default_device"):
                torch.set_default_device("meta")
            optimizer = fused.FusedAdamW([weights], lr=0.5, max_grad_norm=1.0, loss_scale="dynamic",
                                         session=self.session)
            for _ in range(2):
                weights.grad = torch.full((3,), 65536.0, dtype=torch.float32, device="cpu")
                optimizer.step()
            state = optimizer.state_dict()["state"][0]
        finally:
            torch.set_default_dtype(torch.float32)
            if hasattr(torch, "set_default_device"):
                torch.set_default_device(None)
        self.assertEqual({str(value.dtype) for value in state.values()}, {"torch.float32"})
        self.assertAlmostEqual(optimizer.grad_norm, 3 ** 0.5, places=6)
        self.assertAlmostEqual(weights[0].item(), 1 * (1 - 0.005) ** 2 - 1 + 0.0025, places=3)

    def test_norms_are_those_of_the_widest_dtype(self):
        for dtype, scales in ((torch.float64, (1, 1e20, 1e150)), (torch.float32, (1, 1e25))):
            for scale in scales:
                p, q = (torch.nn.Parameter(torch.ones(4, dtype=dtype)) for _ in range(2))
                ours = fused.FusedSGD([p], lr=0.1, max_grad_norm=0.01, session=self.session)
                theirs = torch.optim.SGD([q], lr=0.1)
                p.grad, q.grad = (torch.full((4,), scale, dtype=dtype) for _ in range(2))
                ours.step()
                if dtype == torch.float32:  # torch's norm is inf from 1e19 on
                    q.grad = torch.full((4,), 0.005)
                else:
                    torch.nn.utils.clip_grad_norm_([q], 0.01)
                theirs.step()
                self.assertAlmostEqual(ours.grad_norm / (2 * scale), 1, places=7)
                self.assertLess((p - q).abs().max().item(),
                                1e-15 if dtype == torch.float64 else 1e-6)

    def test_norms_of_mixed_dtypes(self):
        ps = [torch.nn.Parameter(torch.ones(2, dtype=dtype))
              for dtype in (torch.float32, torch.float64, torch.bfloat16)]
        ours = fused.FusedSGD(ps, lr=1.0, max_grad_norm=1.0, session=self.session)
        for p, scale in zip(ps, (3e20, 4e20, 0)):
            p.grad = torch.full((2,), scale, dtype=p.dtype)
        ours.step()
        self.assertAlmostEqual(ours.grad_norm / (5e20 * 2 ** 0.5), 1, places=6)
        self.assertAlmostEqual(ps[1][0].item(), 1 - 0.8 / 2 ** 0.5, places=6)
        self.assertAlmostEqual(ps[0][0].item(), 1 - 0.6 / 2 ** 0.5, places=6)

    def test_max_grad_norm_later(self):
        optimizer = self.ours("sgd", lr=1.0)
        p = optimizer.param_groups[0]["params"][0]
        for norm in (None, 0.5, 0.25, None):
            before, optimizer.max_grad_norm = p.detach().clone(), norm
            p.grad = torch.ones(2)
            optimizer.step()
            self.assertAlmostEqual((p - before).norm().item(), norm or 2 ** 0.5, places=5)
        for wrong in (0, -1, float("nan")):
            self.fails("max_grad_norm", lambda: setattr(optimizer, "max_grad_norm", wrong))

    def test_a_loss_scale_has_a_floor_and_a_ceiling(self):
        optimizer = self.ours("sgd", lr=1.0, loss_scale="dynamic")
        p = optimizer.param_groups[0]["params"][0]

        def step(value):
            p.grad = torch.full((2,), value)
            optimizer.step()

        for _ in range(32):
            step(float("inf"))
        self.assertEqual(optimizer.loss_scale, 2.0 ** -16)
        self.fails("inf or nan at a loss scale", lambda: step(float("nan")), FloatingPointError)
        self.assertEqual(p.tolist(), [1, 1])
        step(2.0 ** -16)
        self.assertEqual(p.tolist(), [0, 0])
        for wrong in (0, -1, float("inf"), "static"):
            self.fails("loss_scale", lambda: self.ours(loss_scale=wrong))


class TuningTest(unittest.TestCase):
    """Optimizers that make their session."""

    def test_how_to_tune_is_in_the_signatures(self):
        for optimizer in (fused.FusedSGD, fused.FusedAdam, fused.FusedAdamW, fused.FusedLAMB):
            arguments = inspect.signature(optimizer).parameters
            for name in ("group", "session", "max_grad_norm", "loss_scale", "policy", "budget",
                         "progress"):
                with self.subTest(optimizer=optimizer.__name__, argument=name):
                    self.assertEqual(arguments[name].kind, inspect.Parameter.KEYWORD_ONLY)
                    self.assertIn(name, fused.__doc__)

    def test_they_are_those_of_the_session(self):
        with tempfile.TemporaryDirectory() as folder:
            with unittest.mock.patch.dict(os.environ, COCONET_CACHE_DIR=folder):
                made = []

                def session(group, **options):
                    made.append(options)
                    return real(group, **options)

                real, lines = coconet.Session, []
                with unittest.mock.patch.object(coconet, "Session", session):
                    parameters = [torch.nn.Parameter(torch.ones(3)) for _ in range(3)]
                    alike = {"lr": 0.5, "policy": "baseline_on_miss", "budget": 2,
                             "progress": lines.append}
                    with warnings.catch_warnings():  # of what was missed
                        warnings.simplefilter("ignore")
                        optimizers = [fused.FusedSGD([p], **{**alike, **more}) for p, more in
                                      zip(parameters, ({}, {}, {"budget": 3}))]
                        for p, optimizer in zip(parameters, optimizers):
                            p.grad = torch.ones(3)
                            optimizer.step()
                            self.assertEqual(p[0].item(), 0.5)
        self.assertEqual([options["budget"] for options in made], [2, 3], "alike ones share one")
        self.assertEqual({options["policy"] for options in made}, {"baseline_on_miss"})
        for optimizer in optimizers:
            optimizer._session.close()

    def test_a_session_has_its_own(self):
        with coconet.Session(cache_file=":none:", effort="fast") as session:
            for name, value in (("policy", "tune"), ("budget", 3), ("progress", print)):
                with self.assertRaisesRegex(ValueError, f"{name}=.* and a session: want one"):
                    fused.FusedLAMB([torch.nn.Parameter(torch.ones(2))], session=session,
                                    **{name: value})

    def test_bad_ones_are_refused(self):
        p = torch.nn.Parameter(torch.ones(2))
        with self.assertRaisesRegex(ValueError, "policy='onlin'.*did you mean 'online'"):
            fused.FusedSGD([p], policy="onlin")
        with self.assertRaisesRegex(ValueError, "budget"):
            fused.FusedAdam([p], budget=-2)
        with self.assertRaisesRegex(TypeError, "polcy"):
            fused.FusedLAMB([p], polcy="tune")


if __name__ == "__main__":
    unittest.main()
