"""8-bit floats, compared with those of ml_dtypes. Skipped where that is not installed."""

import ctypes
import sys
import unittest

import numpy as np

try:
    import ml_dtypes
    TYPES = {"f8e4m3": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2}
except (ImportError, AttributeError) as absent:
    print(f"skipped: {sys.executable} has no ml_dtypes ({absent}); COCONET_PYTHON may name another")
    sys.exit(0)

import coconet

FAST = {"cache_file": ":none:", "effort": "fast", "budget": 1}
CODES = np.arange(256, dtype=np.uint8)
HELD = {"f32": np.float32, "f16": np.float16, "f64": np.float64, "bf16": ml_dtypes.bfloat16,
        "i32": np.int32, "i64": np.int64, "i8": np.int8, "u8": np.uint8}


def around(numbers, dtype):
    """The numbers, those in the middle of two, and what is next to each, as far as the type has
    them."""
    numbers = np.sort(numbers[np.isfinite(numbers)])
    beyond = numbers[-1] + (numbers[-1] - numbers[-2]) * np.array([0.5, 1, 2, 1e4])
    middles = np.concatenate([(numbers[1:] + numbers[:-1]) / 2, beyond, -beyond])
    near = np.concatenate([numbers, middles]).astype(dtype)
    sides = [np.nextafter(near, dtype(side)) for side in (-np.inf, np.inf)]
    return np.concatenate([near, *sides, np.array([np.inf, -np.inf, np.nan, 1e-30, -0.0], dtype)])


def run(text, **arrays):
    with coconet.Session(**FAST) as session, session.compile(text).bind(**arrays) as bound:
        bound.run()


def bytes_of(array):
    """The bits of 8-bit floats, in which all NaNs are one."""
    bits = array.view(np.uint8).copy()
    bits[np.isnan(array.astype(np.float32))] = 0x7f
    return bits


class Float8Test(unittest.TestCase):

    def test_every_code_has_ml_dtypes_value(self):
        for name, held in TYPES.items():
            codes = CODES.view(held)
            for to in ("f32", "f16", "f64", "bf16"):
                wide, sums = np.zeros(256, HELD[to]), np.zeros(256, np.float32)
                run(f"""coconet 1
input codes : {name}[256] replicated
output wide = cast({to}, codes)
output sums = cast(f32, codes + codes)
""", codes=codes, wide=wide, sums=sums)
                want = codes.astype(np.float32)
                np.testing.assert_array_equal(wide.astype(np.float32), want)
                np.testing.assert_array_equal(np.signbit(wide.astype(np.float32))[~np.isnan(want)],
                                              np.signbit(want)[~np.isnan(want)])

    def test_conversions_are_those_of_ml_dtypes(self):
        for name, held in TYPES.items():
            numbers = CODES.view(held).astype(np.float64)
            for source in ("f32", "f16"):
                x = around(numbers, HELD[source])
                self.check(name, source, x, x.astype(np.float32).astype(held))
            x = numbers[np.isfinite(numbers)].astype(ml_dtypes.bfloat16)
            self.check(name, "bf16", x, x.astype(np.float32).astype(held))
            for source in ("i32", "i64"):
                x = np.concatenate([np.arange(-70000, 70000, 7), np.arange(-600, 600)])
                self.check(name, source, x.astype(HELD[source]), x.astype(np.float32).astype(held))

    def test_numbers_of_64_bits_are_rounded_once(self):
        for name, held in TYPES.items():
            numbers = CODES.view(held).astype(np.float64)
            numbers = np.unique(numbers[np.isfinite(numbers) & (numbers != 0) | (CODES == 0)])
            for side, want in ((-np.inf, numbers[:-1]), (np.inf, numbers[1:])):
                x = np.nextafter((numbers[1:] + numbers[:-1]) / 2, side)
                self.check(name, "f64", x, np.copysign(want, x).astype(held))
        n = np.array([2**8 + 2**4 + 1, 2**8 + 2**4, -2**8 - 2**4 - 1], np.int64)
        self.check("f8e4m3", "i64", n, np.array([288, 256, -288], TYPES["f8e4m3"]))

    def check(self, name, source, x, want):
        stored, used = np.zeros(len(x), TYPES[name]), np.zeros(len(x), np.float32)
        run(f"""coconet 1
input x : {source}[{len(x)}] replicated
output stored = cast({name}, x)
output used = cast(f32, cast({name}, x))
""", x=x, stored=stored, used=used)
        np.testing.assert_array_equal(bytes_of(stored), bytes_of(want), f"{source} to {name}")
        np.testing.assert_array_equal(used, want.astype(np.float32), f"{source} to {name}")

    def test_bits_are_those_of_bytes(self):
        for name, held in TYPES.items():
            numbers = CODES.view(held)
            is_there = ~np.isnan(numbers.astype(np.float32))
            for to in ("u8", "i8"):
                bits, back = np.zeros(256, HELD[to]), np.zeros(256, held)
                run(f"""coconet 1
input x : {name}[256] replicated
input n : {to}[256] replicated
output bits = bit_cast({to}, x)
output back = bit_cast({name}, n)
""", x=numbers, n=CODES.copy().view(HELD[to]), bits=bits, back=back)
                np.testing.assert_array_equal(bits.view(np.uint8)[is_there], CODES[is_there])
                np.testing.assert_array_equal(bytes_of(back), bytes_of(numbers))

    def test_states_and_arrays_have_its_dtype(self):
        for name, held in TYPES.items():
            text = f"""coconet 1
input g : {name}[N] local
state p : {name}[N] replicated
update(p, p + all_reduce(sum, g) / 2)
"""
            with coconet.Session(**FAST) as session:
                tuned = session.compile(text, N=7)
                p = tuned.allocate("p")
                self.assertEqual((p.dtype, p.numpy().dtype, p.nbytes), (name, np.dtype(held), 7))
                with tuned.bind(p=p, g=np.ones(7, held)) as bound:
                    bound.write("p", [1, 2, 3, -4, 0.5, 0, 8])
                    bound.run()
                    want = np.array([1.5, 2.5, 3.5, -3.5, 1, 0.5, 8.5], np.float32).astype(held)
                    self.assertEqual(bound.read("p").dtype, np.dtype(held))
                    np.testing.assert_array_equal(bytes_of(bound.read("p")), bytes_of(want))
                    with self.assertRaisesRegex(coconet.InvalidArgument, f"which {name} holds|that "
                                                f"{name} holds"):
                        bound.write("p", [1e6] * 7)
                with self.assertRaisesRegex(ValueError, name):
                    tuned.bind(p=np.zeros(7, np.uint8), g=np.ones(7, held))

    def test_products_have_scales_of_blocks(self):
        random = np.random.default_rng(5)
        x = random.standard_normal((70, 512)).astype(TYPES["f8e4m3"])
        w = random.standard_normal((384, 512)).astype(TYPES["f8e5m2"])
        of_x = random.uniform(0.25, 4, (70, 4)).astype(np.float32)
        of_w = random.uniform(0.25, 4, (3, 4)).astype(np.float32)
        program = coconet.Program("scaled")
        operands = [program.input(name, dtype, shape, "replicated") for name, dtype, shape in (
            ("x", "f8e4m3", ["M", "K"]), ("w", "f8e5m2", ["N", "K"]),
            ("of_x", "f32", ["M", "L"]), ("of_w", "f32", ["P", "L"]))]
        program.output("y", coconet.matmul(*operands, transpose_b=True))
        y = np.zeros((70, 384), np.float32)
        with coconet.Session(**FAST) as session:
            tuned = session.compile(program, M=70, N=384, K=512, L=4, P=3)
            with tuned.bind(x=x, w=w, of_x=of_x, of_w=of_w, y=y) as bound:
                bound.run()
        left = x.astype(np.float64) * np.repeat(of_x, 128, 1)
        right = w.astype(np.float64) * np.repeat(np.repeat(of_w, 128, 0), 128, 1)
        np.testing.assert_allclose(y, left @ right.T, rtol=0,
                                   atol=2.0**-24 * 514 * (abs(left) @ abs(right).T).max())

    def test_dlpack_has_its_codes(self):
        for name, code in (("f8e4m3", 10), ("f8e5m2", 12)):
            with coconet.Session(**FAST) as session:
                array = session.allocate(name, [2, 3])
                view = array._coconet_view()
                self.assertEqual((view.tensor.dtype.code, view.tensor.dtype.bits), (code, 8))
                self.assertEqual(ctypes.sizeof(view.tensor.dtype), 4)

    def test_torch_has_it_where_its_version_does(self):
        try:
            import torch
        except ImportError:
            return
        for name, held in TYPES.items():
            dtype = getattr(torch, np.dtype(held).name, None)
            if dtype is None:
                continue
            x = torch.arange(-8, 8, dtype=torch.float32)
            y = torch.zeros(16, dtype=dtype)
            run(f"""coconet 1
input x : f32[16] replicated
output y = cast({name}, 1.1 * x)
""", x=x, y=y)
            self.assertTrue(torch.equal(y.float(), (1.1 * x).to(dtype).float()))
            with coconet.Session(**FAST) as session:
                self.assertIs(session.allocate(name, [3]).torch().dtype, dtype)


if __name__ == "__main__":
    unittest.main()
