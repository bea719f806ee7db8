"""Trains GPT-2 with PyTorch on what torch_test.cc wrote, and compares losses and weights.

Usage: gpt_step.py FOLDER

FOLDER/manifest.txt has a line "size NAME NUMBER" for each size of the model and of the run, and a
line "weight NAME EXTENT..." for each weight. The folder has NAME.before and NAME.after, f32; for
each step and rank tokens.STEP.RANK and targets.STEP.RANK, i32; and losses, f32.

The model is trained in double, and in single precision as PyTorch rounds it. What differs from
double may be as much as PyTorch's single precision does, and a rounding of the weights in each
step. Prints the greatest share of that bound. Exits with 3 where there is no PyTorch.
"""

import math
import pathlib
import sys

try:
    import numpy as np
    import torch
    import torch.nn.functional as F
except ImportError as missing:
    print(f"absent: {missing}")
    sys.exit(3)


def read_manifest(folder):
    sizes, shapes = {}, {}
    for line in (folder / "manifest.txt").read_text().splitlines():
        kind, name, *numbers = line.split()
        if kind == "size":
            sizes[name] = float(numbers[0])
        else:
            shapes[name] = [int(n) for n in numbers]
    return sizes, shapes


def loss_of(p, tokens, targets, layers, heads, sequence):
    """The mean over all positions of GPT-2's cross entropy."""
    x = F.embedding(tokens, p["embeddings"]).reshape(-1, sequence, p["embeddings"].shape[1])
    x = x + p["positions"]
    batch, _, width = x.shape
    past = torch.ones(sequence, sequence, dtype=torch.bool).tril()
    norm = lambda x, name: F.layer_norm(
        x, (width,), p[name + ".scale"], p[name + ".shift"], 1e-5)
    linear = lambda x, name: x @ p[name + ".weight"] + p[name + ".bias"]
    for layer in range(layers):
        h = f"h{layer}"
        q, k, v = linear(norm(x, h + ".norm1"), h + ".qkv").split(width, dim=2)
        q, k, v = (t.reshape(batch, sequence, heads, -1).transpose(1, 2) for t in (q, k, v))
        scores = (q @ k.transpose(2, 3)) / math.sqrt(width // heads)
        shares = torch.softmax(scores.masked_fill(~past, float("-inf")), dim=-1)
        sums = (shares @ v).transpose(1, 2).reshape(batch, sequence, width)
        x = x + linear(sums, h + ".out")
        x = x + linear(F.gelu(linear(norm(x, h + ".norm2"), h + ".up")), h + ".down")
    logits = norm(x, "norm") @ p["embeddings"].T
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets)


def train(folder, dtype):
    sizes, shapes = read_manifest(folder)
    p = {
        name: torch.tensor(
            np.fromfile(folder / f"{name}.before", np.float32).reshape(shape)
        ).to(dtype).requires_grad_()
        for name, shape in shapes.items()
    }
    optimizer = torch.optim.AdamW(
        p.values(), lr=sizes["lr"], betas=(sizes["beta1"], sizes["beta2"]), eps=sizes["eps"],
        weight_decay=sizes["weight_decay"])
    read = lambda name, step: torch.tensor(
        np.concatenate([
            np.fromfile(folder / f"{name}.{step}.{rank}", np.int32)
            for rank in range(int(sizes["ranks"]))
        ]).astype(np.int64))
    losses = []
    for step in range(int(sizes["steps"])):
        optimizer.zero_grad()
        loss = loss_of(p, read("tokens", step), read("targets", step), int(sizes["layers"]),
                       int(sizes["heads"]), int(sizes["sequence"]))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {name: w.detach().double().numpy() for name, w in p.items()}, np.array(losses)


def main(folder):
    torch.set_num_threads(1)
    exact, exact_losses = train(folder, torch.float64)
    rounded, rounded_losses = train(folder, torch.float32)
    after = {
        name: np.fromfile(folder / f"{name}.after", np.float32).reshape(w.shape)
        for name, w in exact.items()
    }
    after["losses"] = np.fromfile(folder / "losses", np.float32)
    exact["losses"], rounded["losses"] = exact_losses, rounded_losses
    before = np.fromfile(folder / "embeddings.before", np.float32).reshape(exact["embeddings"].shape)
    moved = np.abs(exact["embeddings"] - before).max()
    wrong, most = 0, 0.0
    for name, want in exact.items():
        roundings = len(exact_losses) * np.finfo(np.float32).eps * max(1e-2, np.abs(want).max())
        bound = np.abs(rounded[name] - want).max() + roundings
        share = np.abs(after[name] - want).max() / bound
        most = max(most, share)
        if not share <= 1:
            wrong += 1
            print(f"{name}: off by {share * bound:.3g}, bound {bound:.3g}")
    print(f"torch {torch.__version__}: losses {exact_losses[0]:.4f} to {exact_losses[-1]:.4f}, "
          f"weights moved by {moved:.3g}; {len(exact)} tensors, {wrong} wrong, the worst at "
          f"{most:.2f} of its bound")
    return 1 if wrong or not exact_losses[-1] < exact_losses[0] else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
