"""Ranks that call differently: each is told within a second, in words that name both calls.

diverging_test.py [WAY...] takes some ways, or all; "few" those of the default tests.
"""

import json
import pathlib
import sys
import tempfile
import unittest

from meeting import start_ranks

try:
    import torch  # noqa: F401
except ImportError as absent:
    print(f"skipped: {sys.executable} has no PyTorch ({absent}); COCONET_PYTHON may name another")
    sys.exit(0)

from diverging_ranks import WAYS

SCRIPT = str(pathlib.Path(__file__).with_name("diverging_ranks.py"))
ENDS = [name for name in WAYS if name.startswith("a_process")]
FEW = ["a_step_is_skipped", "a_step_is_made_twice", "two_programs_in_another_order",
       "states_on_one_rank", "other_states_are_loaded", "a_weight_is_changed_on_one_rank",
       "weights_change_places_on_one_rank", "groups_of_two_optimizers_in_another_order",
       "a_batch_is_dropped_whole_before_the_end", "an_exception_is_caught",
       "a_scaler_finds_inf_on_one_rank", "a_read_on_one_rank", "a_rank_is_too_late",
       "a_process_is_killed"]
PREFIXES = {-sum(10.0**i for i in range(n)) for n in range(5)} | {-1101.0}


class DivergingTest(unittest.TestCase):
    ways = list(WAYS)

    def take(self, names):
        """What each way came to, by name and rank; the text of all ranks."""
        with tempfile.TemporaryDirectory() as folder:
            ranks = start_ranks(SCRIPT, 2, folder, *names)
            outputs = [rank.communicate(timeout=200)[0] for rank in ranks]
        found = {name: {} for name in names}
        for rank, output in enumerate(outputs):
            for line in output.splitlines():
                if line.startswith("JSON"):
                    result = json.loads(line[4:])
                    found[result["way"]][rank] = result
        return found, outputs

    def check(self, name, results, outputs):
        _, words, _ = WAYS[name]
        last_call = max((result["began"] for result in results.values()), default=0)
        for rank, result in results.items():
            message = result["message"]
            if not words:
                self.assertEqual(message, "", (name, rank))
            for word in words:
                self.assertIn(word, message, (name, rank))
            if words and "waited" not in message:
                self.assertLess(result["ended"] - last_call, 1.0, (name, rank))
            for weight in result["weights"]:
                self.assertIn(weight, PREFIXES, (name, rank))
        if name == "a_long_evaluation":
            self.assertIn("coconet: rank 0 has waited 5 s for rank 1", outputs[0])
            self.assertIn("Run of FusedSGD_step", outputs[0])

    def test_ways(self):
        names = [name for name in self.ways if name not in ENDS]
        found, outputs = self.take(names)
        for name in names:
            self.assertEqual(sorted(found[name]), [0, 1], (name, outputs))
            with self.subTest(name):
                self.check(name, found[name], outputs)

    def test_ends_of_processes(self):
        for name in ENDS:
            if name in self.ways:
                with self.subTest(name):
                    found, outputs = self.take([name])
                    self.assertEqual(sorted(found[name]), [0], outputs)
                    self.check(name, found[name], outputs)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        DivergingTest.ways = FEW if sys.argv[1:] == ["few"] else sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
