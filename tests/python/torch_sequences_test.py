"""Random sequences of optimizer calls on one to four ranks, against torch's optimizers with the
mean of the ranks' gradients, and against LAMB in NumPy. COCONET_TEST_SEQUENCES=N makes N sequences,
which COCONET_SEED repeats. Skipped where no torch is."""

import collections
import json
import os
import pathlib
import sys
import tempfile
import time
import unittest

from meeting import run_ranks

try:
    import torch
except ImportError as absent:
    print(f"skipped: {sys.executable} has no PyTorch ({absent}); COCONET_PYTHON may name another")
    sys.exit(0)

from torch_sequences import SIZES, kind_of, world_of

SCRIPT = str(pathlib.Path(__file__).with_name("torch_sequences.py"))
COUNT = int(os.environ.get("COCONET_TEST_SEQUENCES", "32"))
SEED = int(os.environ.get("COCONET_SEED", time.time_ns() % (1 << 31)))
NUMBERS = range(SEED, SEED + COUNT)


class SequencesTest(unittest.TestCase):

    def test_sequences(self):
        began, results = time.monotonic(), []
        for size in SIZES:
            numbers = [number for number in NUMBERS if world_of(number) == size]
            if numbers:
                with tempfile.TemporaryDirectory() as folder:
                    outputs = run_ranks(SCRIPT, size, folder, *numbers,
                                        timeout=100 + 10 * len(numbers))
                results += [json.loads(line[4:]) for line in outputs[0].splitlines()
                            if line.startswith("JSON")]
        failures = [result for result in results if result["messages"]]
        print(f"{len(results)} sequences from COCONET_SEED={SEED} in "
              f"{time.monotonic() - began:.0f} s, with torch {torch.__version__}; "
              f"{len(failures)} failed")
        counts = collections.Counter((kind_of(result["number"]), world_of(result["number"]))
                                     for result in results)
        print("by optimizer and ranks:", dict(sorted(counts.items())))
        refusals = sum((collections.Counter(result["refusals"]) for result in results),
                       collections.Counter())
        print("refused:", json.dumps(refusals, indent=1, sort_keys=True))
        print("the greatest difference is", max(result["far"] for result in results),
              "of what rounding allows")
        for result in failures:
            print(f"COCONET_SEED={result['number']} COCONET_TEST_SEQUENCES=1", *result["log"],
                  *dict.fromkeys(result["messages"]), sep="\n  ")
        self.assertEqual(sorted(result["number"] for result in results), list(NUMBERS))
        self.assertEqual([result["number"] for result in failures], [])


if __name__ == "__main__":
    unittest.main()
