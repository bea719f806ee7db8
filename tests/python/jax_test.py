"""Arrays of JAX, without copies. Skipped where no JAX is."""

import sys
import unittest

import numpy as np

try:
    import jax
    import jax.numpy as jnp
except ImportError as absent:
    print(f"skipped: {sys.executable} has no JAX ({absent}); COCONET_PYTHON may name another")
    sys.exit(0)

import coconet

FAST = {"cache_file": ":none:", "effort": "fast", "budget": 1}
SCALED = """coconet 1
program scaled
input x : f32[R, C] replicated
input w : bf16[C] replicated
state s : f32[R, C] replicated
update(s, s + x * cast(f32, w))
"""


class JaxTest(unittest.TestCase):

    def test_binds_arrays_and_gives_them_back(self):
        x = jnp.arange(35, dtype=jnp.float32).reshape(5, 7)
        w = jnp.linspace(1, 2, 7, dtype=jnp.bfloat16)
        with coconet.Session(**FAST) as session:
            tuned = session.compile(SCALED, R=5, C=7)
            s = tuned.allocate("s")
            s.numpy()[:] = 0
            with tuned.bind(x=x, w=w, s=s) as bound:
                bound.run()
                bound.run()
                want = 2 * x * w.astype(jnp.float32)
                np.testing.assert_array_equal(np.from_dlpack(s), want)
                np.testing.assert_array_equal(bound.read("s"), want)
                copied = jnp.array(jax.dlpack.from_dlpack(s))
            self.assertTrue((copied == want).all())

    def test_refuses_to_write_what_is_immutable(self):
        with coconet.Session(**FAST) as session:
            tuned = session.compile(SCALED, R=5, C=7)
            with self.assertRaisesRegex(TypeError, "read-only"):
                tuned.bind(s=jnp.zeros((5, 7), dtype=jnp.float32))

    def test_refuses_other_dtypes_and_shapes(self):
        with coconet.Session(**FAST) as session:
            tuned = session.compile(SCALED, R=5, C=7)
            w = jnp.ones(7, dtype=jnp.bfloat16)
            with self.assertRaisesRegex(ValueError, "i32"):
                tuned.bind(x=jnp.ones((5, 7), dtype=jnp.int32), w=w)
            with self.assertRaisesRegex(ValueError, r"\[7, 5\]"):
                tuned.bind(x=jnp.ones((7, 5), dtype=jnp.float32), w=w)


if __name__ == "__main__":
    unittest.main()
