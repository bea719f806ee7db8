"""Random HLO modules of integers and collectives, and what XLA makes of them on the CPU, for
hlo_cases_test.

Usage, where `pip install jax` was run: python tests/hlo/random_modules.py FILE --modules=N --seed=S
integers.cases: --modules=40 --seed=1

Module k of a seed S is drawn from S + k alone. It is for 1, 2 or 4 ranks, which are partitions or
replicas, has integers of all types, pred, and floats that are small integers, and works on them by
whatever operations have one right answer. Where XLA leaves it open (docs/hlo.md), the module for
XLA says what the language does, or is not drawn.
"""

import argparse
import random

import cases
import random_blocks


class Module:

    def __init__(self, seed, all_results=False):
        self.draw = random.Random(seed)
        self.ranks = self.draw.choice([1, 1, 2, 2, 4])
        self.has_partitions = self.draw.random() < 0.7
        self.names = self.channels = 0
        self.combiners, self.computations = {}, []
        entry = random_blocks.Block(self, 0, True)
        self.parameters = []
        for number in range(self.draw.randint(1, 3)):
            dtype = self.draw.choice(random_blocks.kIntegers + ("pred",))
            self.parameters.append(entry.add(dtype, entry.dims(), "parameter", [str(number)]))
        for _ in range(self.draw.randint(4, 22)):
            entry.step()
        self.data = [
            [entry.numbers(p.dtype, random_blocks.size(p.dims)) for _ in range(self.ranks)]
            for p in self.parameters
        ]
        for number, value in enumerate(self.parameters):  # a scalar is the same on all ranks
            if not value.dims:
                self.data[number] = [self.data[number][0]] * self.ranks
        last = len(entry.values)
        chosen = sorted(
            {last - 1, *(self.draw.randrange(last) for _ in range(self.draw.randint(1, 3)))}
        )
        if all_results:
            chosen = range(last)
        self.results = [entry.values[i] for i in chosen]
        entry.tuple_of(self.results, "ROOT results")
        self.entry = entry
        # A result may take the place of a parameter.
        self.aliases = ""
        for result, value in enumerate(self.results):
            same = [
                p for p, parameter in enumerate(self.parameters) if parameter.shape == value.shape
            ]
            if not self.aliases and same and self.draw.random() < 0.5:
                self.aliases = (
                    f", input_output_alias={{ {{{result}}}: ({same[0]}, {{}}, may-alias) }}"
                )

    def name(self):
        self.names += 1
        return f"v{self.names}"

    def channel(self):
        self.channels += 1
        return self.channels

    def computation(self, name, block):
        self.computations.append((name, block))

    def combiner(self, opcode, dtype):
        name = f"{opcode}.{dtype}"
        self.combiners[name] = (
            f"{name} {{\n  a = {dtype}[] parameter(0)\n  b = {dtype}[] parameter(1)\n"
            f"  ROOT r = {dtype}[] {opcode}(a, b)\n}}"
        )
        return name

    def first_greatest(self, dtype, index):
        name = f"first.{dtype}.{index}"
        self.combiners[name] = f"""{name} {{
  a = {dtype}[] parameter(0)
  i = {index}[] parameter(1)
  b = {dtype}[] parameter(2)
  j = {index}[] parameter(3)
  more = pred[] compare(a, b), direction=GT
  same = pred[] compare(a, b), direction=EQ
  before = pred[] compare(i, j), direction=LT
  tie = pred[] and(same, before)
  left = pred[] or(more, tie)
  v = {dtype}[] select(left, a, b)
  k = {index}[] select(left, i, j)
  ROOT r = ({dtype}[], {index}[]) tuple(v, k)
}}"""
        return name

    def text(self, for_xla=False):
        counts = ""
        if self.ranks > 1:
            counts = (
                f", num_partitions={self.ranks}"
                if self.has_partitions and not for_xla
                else f", replica_count={self.ranks}"
            )
        lines = [
            f"HloModule random{'' if for_xla else self.aliases}{counts}",
            *self.combiners.values(),
        ]
        for name, block in self.computations + [("ENTRY entry", self.entry)]:
            lines += [f"{name} {{", *(block.for_xla if for_xla else block.lines), "}"]
        return "\n".join(lines) + "\n"


def main():
    options = argparse.ArgumentParser()
    options.add_argument("file")
    options.add_argument("--modules", type=int, default=20)
    options.add_argument("--seed", type=int, required=True)
    options.add_argument("--all-results", action="store_true", help="every value is a result")
    options = options.parse_args()
    with open(options.file, "w") as out:
        for seed in range(options.seed, options.seed + options.modules):
            module = Module(seed, options.all_results)
            given = [
                [cases.array(p.dtype, p.dims, numbers) for numbers in of_ranks]
                for p, of_ranks in zip(module.parameters, module.data)
            ]
            found = cases.run_by_xla(module.text(for_xla=True), given, module.ranks)
            cases.write(out, f"seed {seed}", module.ranks, module.text(), given, found)


if __name__ == "__main__":
    main()
