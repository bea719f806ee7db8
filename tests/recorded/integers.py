"""Random programs of integers, and what every rank should find, as NumPy computes it.

    integers.py --seed=N --first=F --count=C --elements=E [--every_value] > FILE

Program F + i is a function of the seed and its number alone. It has 25 results or more. FILE is
as recording.py says.
"""

import argparse
import random
import sys

import numpy as np

import oracle
import recording
from statements import FLAT, LOCAL, REPLICATED, NoOperands, Statements, Value, place

LEAST_RESULTS = 25


class Program(Statements):
    """A function of its arguments: drawn first, computed when it is written."""

    def __init__(self, seed, number, elements):
        draw = random.Random("%d %d" % (seed, number))
        super().__init__(draw, draw.choice((1, 1, 2, 2, 3, 4)), elements, draw.random() < 0.4)
        self.arrays = np.random.default_rng([seed, number])
        self.number = number
        self.inputs, self.states, self.updates, self.outputs = [], [], {}, []
        self.extents = [draw.choice((1, 2, 3, 3, 4, 5, 7, 8, 9, 15, 17, 33, 64, 65, 130))
                        for _ in range(3)]
        if draw.random() < 0.1:
            self.extents[0] = 0
        self.declare()
        self.grow()

    def draw_shape(self):
        draw = self.random
        shape = [draw.choice(self.extents) for _ in range(draw.choice((1, 1, 2, 2, 3)))]
        while np.prod(shape) > self.most:
            shape[shape.index(max(shape))] = draw.choice((1, 2, 3, 5, 7))
        return tuple(shape)

    def draw_layout(self, shape):
        layout = self.random.choice((LOCAL, LOCAL, REPLICATED, REPLICATED, "sliced"))
        if layout != "sliced":
            return layout
        return self.random.choice((FLAT,) + tuple(range(len(shape)))) if shape else REPLICATED

    def declare(self):
        draw = self.random
        main = self.draw_shape()
        for dtype in draw.choices(oracle.INTEGERS, k=draw.randint(5, 8)) + ["bool"]:
            shape = main if draw.random() < 0.6 else self.draw_shape()
            self.declared("input", dtype, shape, self.draw_layout(shape))
        for _ in range(draw.randint(1, 3)):
            self.declared("input", draw.choice(oracle.INTEGERS), (), REPLICATED)
        if self.has_floats:
            for dtype in draw.sample(oracle.FLOATS, k=2):
                self.declared("input", dtype, main, self.draw_layout(main))
        for _ in range(draw.randint(0, 3)):
            shape = draw.choice(((), main, self.draw_shape()))
            layout = draw.choice((REPLICATED, LOCAL, "auto")) if shape else REPLICATED
            self.declared("state", draw.choice(oracle.INTEGERS), shape, layout)

    def declared(self, kind, dtype, shape, layout):
        value = Value("%s%d" % ("xs"[kind == "state"], len(self.values)), dtype, shape,
                      REPLICATED if layout == "auto" else layout, dtype in oracle.FLOATS)
        text = layout if layout == "auto" else place(layout)
        self.lines.append("%s %s : %s[%s] %s" % (kind, value.name, dtype,
                                                 ", ".join(map(str, shape)), text))
        self.values.append(value)
        (self.states if kind == "state" else self.inputs).append(value)

    def grow(self):
        """Until there are enough results: three of four values are results, and all that nothing
        uses."""
        draw = self.random
        statements = draw.randint(36, 48)
        kinds, weights = zip(*self.KINDS)
        while len(self.computed) < statements:
            try:
                draw.choices(kinds, weights)[0](self)
            except NoOperands:
                pass
        used = {id(o) for _, operands, _ in self.computed for o in operands}
        results = [value for value, _, _ in self.computed
                   if id(value) not in used or draw.random() < 0.75]
        if len(results) < LEAST_RESULTS:
            results = [value for value, _, _ in self.computed]
        self.outputs = results
        for state in self.states:
            fitting = [v for v, _, _ in self.computed if v.dtype == state.dtype and
                       v.shape == state.shape and v.layout == state.layout]
            if fitting and draw.random() < 0.9:
                self.updates[state.name] = draw.choice(fitting)

    # ---- Text and data.
    def text(self, every_value):
        outputs = [v for v, _, _ in self.computed] if every_value else self.outputs
        lines = ["coconet 1", "program integers%d" % self.number] + self.lines
        lines += ["update(%s, %s)" % (state, value.name) for state, value in self.updates.items()]
        return "\n".join(lines + ["output r%s = %s" % (v.name[1:], v.name) for v in outputs]) + "\n"

    def draw_array(self, dtype, shape):
        """Ends of the type, small numbers and any, mixed."""
        count = int(np.prod(shape, dtype=int))
        draw = self.arrays
        if dtype == "bool":
            return draw.integers(0, 2, shape).astype("?")
        if dtype in oracle.FLOATS:
            return self.draw_floats(dtype, count).reshape(shape)
        held, bits = oracle.HELD[dtype], oracle.bits_of(dtype)
        low, high = oracle.least(dtype), oracle.greatest(dtype)
        every = np.frombuffer(draw.bytes(count * held.itemsize), held)
        ends = np.array([low, low + 1, high, high - 1, 0, 1, high // 2, high // 2 + 1], held)
        small = np.arange(max(low, -9), bits + 3).astype(held)
        kind = draw.choice(4, count, p=draw.dirichlet((1, 1, 1, 1)))
        return np.select([kind == 0, kind == 1, kind == 2],
                         [every, ends[draw.integers(0, len(ends), count)],
                          small[draw.integers(0, len(small), count)]],
                         every >> held.type(bits // 2)).astype(held).reshape(shape)

    def draw_floats(self, dtype, count):
        draw = self.arrays
        sign = draw.choice((-1.0, 1.0), count)
        sizes = np.ldexp(draw.random(count) + 1, draw.integers(-3, 70, count))
        special = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 0.5, -0.99, 127.9, 128, 255.9, 256,
                            -128.9, -129, 32768, 65535.9, 2.0**31, 2.0**31 - 1, -2.0**31, 2.0**32,
                            2.0**53 + 2, 2.0**63, -2.0**63, 2.0**64, 1e300, -1e300, 5e-324])
        reals = np.where(draw.random(count) < 0.3, special[draw.integers(0, len(special), count)],
                         sign * sizes)
        return oracle.cast("f64", dtype, reals)

    def draw_data(self, value):
        if value.local:
            return [self.draw_array(value.dtype, value.shape) for _ in range(self.ranks)]
        return self.draw_array(value.dtype, value.shape)

    def compute(self, data):
        """By name, from the inputs and states on."""
        for value, operands, function in self.computed:
            result = function(*(data[o.name] for o in operands))
            for array in result if value.local else [result]:
                assert array.dtype == oracle.HELD[value.dtype], (value.name, array.dtype)
                assert array.shape == value.shape, (value.name, array.shape)
            data[value.name] = result
        return data

    def write(self, out, every_value):
        outputs = [v for v, _, _ in self.computed] if every_value else self.outputs
        floats = ["r" + v.name[1:] for v in outputs if v.floats]
        floats += [state for state, value in self.updates.items() if value.floats]
        states = {state.name: self.draw_data(state) for state in self.states}
        steps = []
        for step in range(2 if self.states else 1):
            given = {value.name: self.draw_data(value) for value in self.inputs}
            data = self.compute({**given, **states})
            if step == 0:
                given.update(states)
            states = {state.name: data[self.updates[state.name].name]
                      if state.name in self.updates else states[state.name]
                      for state in self.states}
            steps.append((given, {**states, **{"r" + v.name[1:]: data[v.name] for v in outputs}}))
        recording.write(out, self.number, self.ranks, self.text(every_value), floats, steps)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--elements", type=int, default=64)
    parser.add_argument("--every_value", action="store_true")
    asked = parser.parse_args()
    np.seterr(all="ignore")
    with open(sys.stdout.fileno(), "wb", closefd=False) as out:
        for number in range(asked.first, asked.first + asked.count):
            Program(asked.seed, number, asked.elements).write(out, asked.every_value)


if __name__ == "__main__":
    main()
