"""The fused optimizers against torch's: torch_test.py [CASE...]. Skipped where no torch is."""

import os
import pathlib
import sys
import tempfile
import unittest

from meeting import run_ranks, start_ranks

try:
    import torch
except ImportError as absent:
    print(f"skipped: {sys.executable} has no PyTorch ({absent}); COCONET_PYTHON may name another")
    sys.exit(0)

CASES = str(pathlib.Path(__file__).with_name("torch_cases.py"))


class TorchTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_case(self, case, ranks=2, *arguments):
        outputs = run_ranks(CASES, ranks, case, self.folder, *arguments, timeout=250)
        meeting = pathlib.Path(self.folder) / "meeting"
        if meeting.exists():
            meeting.unlink()
        return outputs

    def test_optimizers(self):
        self.run_case("optimizers")

    def test_modules(self):
        self.run_case("modules")

    def test_ddp_on_two(self):
        self.run_case("ddp")

    def test_ddp_on_four(self):
        self.run_case("ddp", 4)

    def test_groups(self):
        self.run_case("groups")

    def test_missing(self):
        self.run_case("missing")

    def test_clipping(self):
        self.run_case("clipping")

    def test_scaling(self):
        self.run_case("scaling")

    def test_accumulation(self):
        self.run_case("accumulation")

    def test_lamb(self):
        self.run_case("lamb")

    def test_narrow(self):
        self.run_case("narrow")

    def test_late(self):
        self.run_case("late", 3)

    def test_mistakes(self):
        self.run_case("mistakes")

    def test_fork(self):
        self.run_case("fork")

    def test_beside(self):
        self.run_case("beside")

    def test_objects(self):
        self.run_case("objects")

    def test_checkpoints(self):
        self.run_case("checkpoints")
        self.resumes_alone()

    def resumes_alone(self):
        """A checkpoint of two ranks goes on in one process, with torch's optimizer and ours."""
        import coconet.torch as fused
        from torch_models import Gpt, batch, difference, session
        saved = torch.load(self.folder + "/checkpoint.pt")
        models = [Gpt(dtype=torch.float64), Gpt(dtype=torch.float64)]
        for model in models:
            model.load_state_dict(saved["model"])
        with session(self.folder + "/cache.db") as alone:
            optimizers = [fused.FusedAdam(models[0].parameters(), session=alone),
                          torch.optim.Adam(models[1].parameters())]
            for model, optimizer in zip(models, optimizers):
                optimizer.load_state_dict(saved["optimizer"])
                for step in range(3):
                    optimizer.zero_grad()
                    model(*batch(step, 0)).backward()
                    optimizer.step()
        self.assertLess(difference(*models), 1e-11)

    def test_resume(self):
        """Killed between two checkpoints and started again: the same weights, bit by bit."""
        self.run_case("resume", 2, 30)
        straight = torch.load(self.folder + "/end.pt")
        os.unlink(self.folder + "/last.pt")
        killed = start_ranks(CASES, 2, "resume", self.folder, 30, 18)
        for process in killed:
            process.communicate(timeout=250)
        self.assertEqual([process.returncode for process in killed], [-9, -9])
        os.unlink(self.folder + "/meeting")
        self.run_case("resume", 2, 30)
        resumed = torch.load(self.folder + "/end.pt")
        for name, weight in straight.items():
            self.assertTrue(torch.equal(weight, resumed[name]), name)


if __name__ == "__main__":
    unittest.main(argv=["torch_test.py"] + [f"TorchTest.test_{case}" for case in sys.argv[1:]])
