"""What training loops do with gradients and weights between a backward pass and a step, with the
fused optimizers and with torch's; one rank. Skipped where no torch is."""

import sys
import unittest
import warnings

try:
    import torch
except ImportError as absent:
    print(f"skipped: {sys.executable} has no PyTorch ({absent}); COCONET_PYTHON may name another")
    sys.exit(0)

import coconet.torch as fused
from coconet.torch._buffers import HAS_REFERENCE_COUNTS
import torch_models


def zeros(*shape):
    return torch.nn.Parameter(torch.zeros(*shape))


def backward(p, factors):
    (p * torch.tensor(factors)).sum().backward()


# Each takes what makes an optimizer, and returns what is compared.


def clamped_through_data(make):
    p = zeros(3)
    o = make([p])
    backward(p, [1.0, 10.0, 100.0])
    p.grad.data = p.grad.data.clamp(max=5.0)
    o.step()
    p.grad.data = p.grad.data * 0
    o.step()
    return p, p.grad


def set_in_place(make):
    p = zeros(3)
    o = make([p])
    p.grad = torch.ones(3)
    o.step()
    p.grad.set_(torch.full((3,), 7.0))
    o.step()
    return p, p.grad


def transposed_gradient(make):
    p = zeros(2, 2)
    o = make([p])
    backward(p, [[1.0, 2.0], [3.0, 4.0]])
    p.grad.data = p.grad.data.t()
    o.step()
    return p, p.grad


def converted_and_back(make):
    layer = torch.nn.Linear(1, 1, bias=False)
    layer.weight.data.zero_()
    o = make(layer.parameters())
    for x, convert, to_none in ((1.0, layer.double, True), (10.0, layer.bfloat16, False),
                                (100.0, layer.double, False), (2.0, layer.double, True)):
        o.zero_grad(set_to_none=to_none)
        layer(torch.tensor([[x]])).sum().backward()
        o.step()
        convert()
        layer.float()
    return layer.weight


def channels_last_and_back(make):
    p = zeros(2, 3, 2, 2)
    o = make([p])
    for i, form in enumerate((torch.channels_last, torch.contiguous_format) * 2):
        o.zero_grad()
        (p * torch.arange(24.0).view(p.shape) * (i + 1)).sum().backward()
        o.step()
        p.data = p.data.to(memory_format=form)
    return p


def kept_and_restored(make):
    p = zeros(2)
    o = make([p])
    backward(p, 3.0)
    saved, p.grad = p.grad, None
    backward(p, 100.0)
    p.grad = saved
    o.step()
    o.zero_grad(set_to_none=False)
    backward(p, 5.0)
    o.step()
    return p, saved


def kept_of_each_task(make):
    p = zeros(2)
    o = make([p])
    for _ in range(2):
        kept = []
        for task in (1.0, 10.0):
            o.zero_grad()
            backward(p, task)
            kept.append(p.grad)
        p.grad = sum(kept)
        o.step()
    return (p, *kept)


def sharpness_aware(make):
    p = torch.nn.Parameter(torch.ones(2))
    o = make([p])
    (p ** 2).sum().backward()
    first = p.grad
    with torch.no_grad():
        p.add_(0.1 * first)
    o.zero_grad()
    (p ** 2).sum().backward()
    with torch.no_grad():
        p.sub_(0.1 * first)
    p.grad = p.grad * 0.5 + first * 0.5
    o.step()
    return p, first


def penalty_of_gradients(make):
    p = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    o = make([p])
    (p ** 3).sum().backward(create_graph=True)
    (p.grad ** 2).sum().backward()
    o.step()
    return p


def exchanged_gradients(make):
    p, q = zeros(2), zeros(2)
    o = make([p, q])
    backward(p, 1.0)
    backward(q, 10.0)
    o.step()
    p.grad, q.grad = q.grad, p.grad
    o.step()
    o.step()
    return p, q, p.grad, q.grad


def moved_gradient(make):
    p, q = zeros(2), zeros(2)
    o = make([p, q])
    backward(p, 1.0)
    backward(q, 10.0)
    o.step()
    q.grad, p.grad = p.grad, None
    o.step()
    return p, q, q.grad


def one_gradient_of_two(make):
    p, q = zeros(2), zeros(2)
    o = make([p, q])
    backward(p, 1.0)
    o.step()
    q.grad = p.grad
    o.step()
    p.grad.mul_(3)
    o.step()
    return p, q


def views_of_one_buffer(make):
    p, q, flat = zeros(2), zeros(3), torch.zeros(5)
    o = make([p, q])
    p.grad, q.grad = flat[:2], flat[2:]
    for number in (1.0, 2.0):
        flat.fill_(number)
        o.step()
    backward(p, 4.0)
    o.step()
    o.zero_grad(set_to_none=False)
    backward(q, 7.0)
    o.step()
    return p, q, flat


def zeroed_in_place(make):
    p, q = zeros(2), zeros(2)
    o = make([p, q])
    backward(p, 1.0)
    kept, q.grad = p.grad, torch.ones(2)
    o.step()
    o.zero_grad(set_to_none=False)
    o.step()
    return p, q, kept, q.grad


def exchanged_weights(make):
    p, q = zeros(2), zeros(2)
    o = make([p, q])
    backward(p, 1.0)
    backward(q, 10.0)
    o.step()
    p.data, q.data = q.data, p.data
    o.step()
    return p, q


def other_weights_for_a_while(make):
    p = torch.nn.Parameter(torch.arange(4.0).view(2, 2))
    o = make([p])
    for _ in range(2):
        o.zero_grad()
        kept, p.data = p.data, torch.ones(2, 2).t().contiguous().t() * 5
        (p * p).sum().backward()
        p.data = kept
        o.step()
    return p


def transposed_weights(make):
    p = torch.nn.Parameter(torch.arange(4.0).view(2, 2))
    o = make([p])
    backward(p, 1.0)
    o.step()
    p.data = p.data.t()
    o.step()
    p.grad = None
    backward(p, [[1.0, 2.0], [3.0, 4.0]])
    o.step()
    return p


def infinite_weights(make):
    p = torch.nn.Parameter(torch.tensor([1.0, -torch.inf]))
    o = make([p])
    p.grad = torch.tensor([1.0, 0.0])
    o.step()
    return p


CASES = [function for name, function in list(globals().items())
         if getattr(function, "__code__", None) is not None and
         function.__code__.co_varnames[:1] == ("make",)]
KINDS = [(fused.FusedSGD, torch.optim.SGD, {}),
         (fused.FusedSGD, torch.optim.SGD, {"momentum": 0.5, "nesterov": True}),
         (fused.FusedAdam, torch.optim.Adam, {}), (fused.FusedAdamW, torch.optim.AdamW, {})]


class GradientsTest(torch_models.SessionTest):

    def ours(self, ps, kind=fused.FusedSGD, **options):
        return kind(ps, lr=0.25, session=self.session, **options)

    def test_as_with_torchs_optimizers(self):
        for mine, theirs, options in KINDS:
            for case in CASES:
                with self.subTest(case=case.__name__, kind=mine.__name__, **options), \
                        warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)
                    warnings.simplefilter("error", RuntimeWarning)
                    torch.manual_seed(0)
                    have = case(lambda ps: self.ours(ps, mine, **options))
                    torch.manual_seed(0)
                    want = case(lambda ps: theirs(ps, lr=0.25, **options))
                    for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in (have, want))):
                        torch.testing.assert_close(a.detach(), b.detach(), rtol=1e-6, atol=1e-7)

    def test_gradients_that_overflow_when_squared(self):
        numbers = []
        for make in (lambda ps: self.ours(ps, fused.FusedAdam),
                     lambda ps: torch.optim.Adam(ps, lr=0.25)):
            p = torch.nn.Parameter(torch.ones(2))
            o = make([p])
            for gradient in (5e19, 1.0, 1.0):
                p.grad = torch.tensor([1.0, gradient])
                o.step()
            numbers.append(p.detach())
        torch.testing.assert_close(*numbers)

    @unittest.skipUnless(HAS_REFERENCE_COUNTS, "this version of torch cannot tell")
    def test_views_that_are_kept_are_warned_of(self):
        p = zeros(2)
        o = self.ours([p])
        for factor in (1.0, 2.0):
            backward(p, factor)
            o.step()
            view = p.grad.detach()
            o.zero_grad(set_to_none=True)
        with self.assertWarnsRegex(RuntimeWarning, "a view of a gradient is kept"):
            backward(p, 3.0)
        del view
        average = torch.full((2,), 9.0)
        p.data, average = average, p.data
        with self.assertWarnsRegex(RuntimeWarning, "exchange values by copy_"):
            o.step()
        self.assertEqual(p.tolist(), [8.25, 8.25])
        del average


if __name__ == "__main__":
    unittest.main()
