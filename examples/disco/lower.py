"""Writes the XLA HLO text of a model's data-parallel training step.

Usage: lower.py --model=bert --ranks=4 --out=DIR [--preset=paper|small] [--batch=N]

Writes DIR/bert.hlo, as JAX hands it to XLA: before partitioning, fusion and combining. Nothing is
compiled, no weights are allocated. --model=all writes all six. A batch is the examples of a rank.
"""

import argparse
import importlib
import os
import pathlib

kModels = ("vgg19", "resnet50", "transformer", "rnnlm", "bert", "reformer")


def parse():
    parser = argparse.ArgumentParser(description="Writes the HLO text of a training step.")
    parser.add_argument("--model", required=True, choices=(*kModels, "all"))
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder, made if absent")
    parser.add_argument("--preset", choices=("paper", "small"), default="paper")
    parser.add_argument("--batch", type=int, help="examples of a rank, else as the preset has it")
    options = parser.parse_args()
    if options.ranks < 1 or (options.batch is not None and options.batch < 1):
        parser.error("--ranks and --batch must be at least 1")
    return options


def write(name, options):
    import jax
    import training_step

    model = importlib.import_module(name)
    dims = getattr(model, options.preset.upper())
    batch = options.batch or dims.batch
    lowered, params = training_step.lower(model, dims, batch, options.ranks)
    text = lowered.compiler_ir("hlo").as_hlo_text()
    # Large constants would be left out of the text.
    assert "{...}" not in text, name
    path = options.out / f"{name}.hlo"
    path.write_text(text)
    leaves = jax.tree.leaves(params)
    millions = sum(leaf.size for leaf in leaves) / 1e6
    print(f"{path}: {millions:.3f} million parameters in {len(leaves)} gradients, batch {batch} on "
          f"each of {options.ranks} ranks, {text.count(chr(10))} lines")  # fmt: skip


def main():
    options = parse()
    # JAX reads both when it is imported.
    flags = os.environ.get("XLA_FLAGS", "")
    count = f"--xla_force_host_platform_device_count={options.ranks}"
    os.environ["XLA_FLAGS"] = f"{flags} {count}".strip()
    os.environ["JAX_PLATFORMS"] = "cpu"
    options.out.mkdir(parents=True, exist_ok=True)
    for name in kModels if options.model == "all" else (options.model,):
        write(name, options)


if __name__ == "__main__":
    main()
