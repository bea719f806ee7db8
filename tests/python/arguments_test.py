"""Numbers and arrays that callers give: each arrives as it is, or is refused, on all ranks."""

import copy
import decimal
import pickle
import time
import types
import unittest
import unittest.mock

import numpy as np

import coconet
from coconet import _groups
from meeting import run_threads

try:
    import torch
except ImportError:
    torch = None

FAST = {"cache_file": ":none:", "effort": "fast", "budget": 1}


def numbers(session):
    """A binding with a state of each kind of dtype."""
    dtypes = ("i8", "i32", "i64", "u64", "bool", "f16", "f32", "f64")
    return session.compile("\n".join(
        ["coconet 1", "program numbers"] +
        [f"state {dtype}_s : {dtype}[2]\nupdate({dtype}_s, {dtype}_s)" for dtype in dtypes] +
        ["input c : i64[]", "output y = i64_s + c"])).bind()


class NumbersTest(unittest.TestCase):

    def test_integers_are_not_wrapped(self):
        with coconet.Session(**FAST) as session, numbers(session) as bound:
            for call in (lambda: bound.set(c=-2**63 - 1), lambda: bound.set(c=2**63),
                         lambda: session.compile("coconet 1", N=2**64 + 4),
                         lambda: session.compile("coconet 1", N=[3, 2**64 + 4]),
                         lambda: session.compile("coconet 1", N=-1),
                         lambda: session.allocate("i32", 2**64 + 1),
                         lambda: session.allocate("i32", [2, 2**64 + 1]),
                         lambda: bound.run_steps(2**64 + 2),
                         lambda: coconet.Session(memory_limit=2**64),
                         lambda: coconet.Session(stages=2**32 + 1),
                         lambda: coconet.Session(nodes=2**32)):
                with self.assertRaisesRegex(ValueError, "want an integer from"):
                    call()
            self.assertEqual(session.allocate("i32", np.int64(3)).shape, (3,))

    def test_zero_is_not_the_default(self):
        for options in ({"timeout": 0}, {"budget": 0}, {"stages": 0}, {"memory_limit": 0},
                        {"timeout": float("nan")}, {"budget": float("inf")}):
            with self.assertRaises(ValueError):
                coconet.Session(**options)

    def test_what_is_written_is_held_or_refused(self):
        with coconet.Session(**FAST) as session, numbers(session) as bound:
            for dtype, given in (("i8", [127, -128.0]), ("i32", [2**31 - 1, -2**31]),
                                 ("i64", [2**63 - 1, 2**53 + 1]), ("u64", [2**64 - 1, 2**53 + 1]),
                                 ("u64", [decimal.Decimal(2**53 + 1), 1.0]), ("bool", [True, 0]),
                                 ("f16", [65504, -1]), ("f32", [float("inf"), 0.5]),
                                 ("f64", [1e300, 2**53])):
                bound.write(dtype + "_s", given)
                self.assertEqual(bound[dtype + "_s"].tolist(), [int(x) if dtype[0] in "iu" else x
                                                                for x in given])
            bound.write("i32_s", 7)
            self.assertEqual(bound["i32_s"].tolist(), [7, 7])
            for dtype, given in (("i8", 128), ("i8", [1, -129]), ("i32", 1.5), ("i32", [1, 1.5]),
                                 ("i32", 2**32 + 5), ("i64", 2**63), ("i64", [float("nan"), 0]),
                                 ("u64", -1), ("u64", [2.0**64, 0]), ("bool", 2), ("f16", 1e6)):
                with self.assertRaisesRegex(coconet.InvalidArgument, "write: want"):
                    bound.write(dtype + "_s", given)
            self.assertEqual(bound["i8_s"].tolist(), [127, -128])

    def test_constants_of_programs_are_exact(self):
        program = coconet.Program("constant")
        x = program.input("x", "i64", [1], "local")
        program.output("y", x + decimal.Decimal(2**53 + 1))
        with coconet.Session(**FAST) as session, session.compile(program).bind() as bound:
            bound.run()
            self.assertEqual(bound["y"].tolist(), [2**53 + 1])

    def test_what_one_rank_refuses_is_an_error_on_all(self):
        def overflow():
            raise OverflowError("too large")

        class Raises:
            __array_interface__ = property(lambda self: overflow())

        def body(group):
            with coconet.Session(group, **FAST, timeout=30) as session:
                is_wrong = group.rank == 1
                program = session.compile("coconet 1\nstate s : i32[2]\ninput x : i32[2] local\n"
                                          "update(s, s + all_reduce(sum, x))")
                bound = program.bind()
                began = time.monotonic()
                for call in (lambda: bound.write("s", 2**31 if is_wrong else 4),
                             lambda: bound.write("s", Raises() if is_wrong else 4),
                             lambda: program.bind(x=Raises() if is_wrong else np.zeros(2, "i4")),
                             lambda: session.allocate("f32", 2**64 if is_wrong else 4)):
                    with self.assertRaises(Exception):
                        call()
                self.assertLess(time.monotonic() - began, 10)
                bound.write("s", [1, 2])
                return bound["s"].tolist()

        self.assertEqual(run_threads(2, body), [[1, 2]] * 2)


class ArraysTest(unittest.TestCase):

    def test_a_copy_is_one(self):
        with coconet.Session(**FAST) as session:
            array = session.allocate("f32", 2)
            makers = [np.array, lambda a: np.array(a, copy=True),
                      lambda a: a.__array__(copy=True), lambda a: np.asarray(a, np.float64)]
            if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
                makers.append(lambda a: np.from_dlpack(a, copy=True))
            if torch is not None:
                makers.append(lambda a: torch.utils.dlpack.from_dlpack(a.__dlpack__(copy=True)))
            for make in makers:
                array.numpy()[:] = 1
                made = make(array)
                array.numpy()[:] = 2
                self.assertEqual(made.tolist(), [1, 1])
            with self.assertRaisesRegex(ValueError, "only as a copy"):
                array.__array__(np.float64, copy=False)
            self.assertEqual(np.asarray(array).ctypes.data, array.numpy().ctypes.data)
            with self.assertRaisesRegex(BufferError, "lies on device"):
                array.__dlpack__(dl_device=(2, 0))

    def test_objects_of_a_session_are_not_copied(self):
        with coconet.Session(**FAST) as session, numbers(session) as bound:
            for kept in (session, bound.program, bound, bound.scalar("c"),
                         session.allocate("f32", 2)):
                for call in (copy.copy, copy.deepcopy, pickle.dumps):
                    with self.assertRaisesRegex(TypeError, "belongs to this process's session"):
                        call(kept)

    def test_the_forms_of_the_array_interface(self):
        content = np.arange(8, dtype=np.uint8)
        buffers = [{"data": content.tobytes()}, {"data": bytearray(content.tobytes())},
                   {"data": memoryview(content), "offset": 2},
                   {"data": (content.ctypes.data, True)}]
        with coconet.Session(**FAST) as session:
            program = session.compile("coconet 1\ninput x : u8[6] local\noutput y = x + 1")
            for buffer in buffers:
                given = types.SimpleNamespace(
                    __array_interface__={"version": 3, "shape": (6,), "typestr": "|u1", **buffer})
                want = content[buffer.get("offset", 0):][:6] + 1
                with program.bind(x=given) as bound:
                    bound.run()
                    np.testing.assert_array_equal(bound["y"], want)
            with self.assertRaisesRegex(TypeError, "want one of f32"):
                program.bind(x=np.zeros(6, "m8[s]"))

    @unittest.skipIf(torch is None, "no torch")
    def test_lazily_negated_tensors_are_refused(self):
        negative = torch._neg_view(torch.ones(2))
        with coconet.Session(**FAST) as session, numbers(session) as bound:
            for call in (lambda: bound.write("f32_s", negative),
                         lambda: bound.read("f32_s", negative),
                         lambda: bound.program.bind(f32_s=negative)):
                with self.assertRaisesRegex((TypeError, ValueError), "resolve_neg"):
                    call()
            bound.write("f32_s", negative.resolve_neg())
            self.assertEqual(bound["f32_s"].tolist(), [-1, -1])


class TimeoutTest(unittest.TestCase):

    @unittest.skipIf(torch is None or not torch.distributed.is_available(), "no torch.distributed")
    def test_a_time_out_that_is_none_counts_as_unset(self):
        default = float(torch.distributed.distributed_c10d.default_pg_timeout.total_seconds())
        group = type("ProcessGroup", (), {})()
        for text, want in (("20s", default), ("-5", default), ("0", default), ("inf", default),
                           ("nan", default), ("", default), ("20", None), ("0.5", None)):
            with unittest.mock.patch.dict("os.environ", COCONET_TIMEOUT=text):
                self.assertEqual(_groups.timeout_of(group), want, text)


if __name__ == "__main__":
    unittest.main()
