"""Instructions of random HLO modules (random_modules.py)."""

kSigned, kUnsigned = ("s8", "s16", "s32", "s64"), ("u8", "u16", "u32", "u64")
kIntegers = kSigned + kUnsigned
kMostElements = 96


def bits_of(dtype):
    return 1 if dtype == "pred" else int(dtype[1:])


def limits(dtype):
    bits = bits_of(dtype)
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if dtype in kSigned else (0, 2**bits - 1)


def neutral(opcode, dtype):
    """What changes nothing when it is combined."""
    low, high = limits(dtype)
    all_bits = -1 if dtype in kSigned else high
    return {"maximum": low, "minimum": high, "and": all_bits, "multiply": 1}.get(opcode, 0)


def size(dims):
    elements = 1
    for extent in dims:
        elements *= extent
    return elements


def listed(numbers):
    return ",".join(map(str, numbers))


def shape_text(dtype, dims):
    return f"{dtype}[{listed(dims)}]"


def number_text(dtype, number):
    return ("true" if number else "false") if dtype == "pred" else str(number)


def literal(dtype, dims, numbers):
    """The text of an array's numbers, in row-major order."""
    if not dims:
        return number_text(dtype, numbers[0])
    step = len(numbers) // dims[0] if dims[0] else 0
    rows = [literal(dtype, dims[1:], numbers[i * step : (i + 1) * step]) for i in range(dims[0])]
    return "{ " + ", ".join(rows) + " }"


class Value:

    def __init__(self, name, dtype, dims, small=False):
        self.name, self.dtype, self.dims = name, dtype, tuple(dims)
        # Whether products and sums of two such floats are exact.
        self.small = small

    @property
    def shape(self):
        return shape_text(self.dtype, self.dims)


class Block:
    """The instructions of a computation, and the values that they may use."""

    def __init__(self, module, depth, has_collectives):
        self.module, self.draw, self.depth = module, module.draw, depth
        self.has_collectives = has_collectives
        self.lines, self.for_xla, self.values = [], [], []

    # ---- Instructions

    def line(self, text, for_xla=None):
        self.lines.append("  " + text)
        self.for_xla += ["  " + t for t in (for_xla if for_xla is not None else [text])]

    def add(self, dtype, dims, opcode, operands, attributes="", for_xla=None, small=False):
        """An instruction whose value may be used; `for_xla`: lines before, and that of the same
        name, as a function of the name."""
        assert size(dims) <= 4 * kMostElements, (opcode, dims)
        value = Value(self.module.name(), dtype, dims, small)
        names = ", ".join(o if isinstance(o, str) else o.name for o in operands)
        text = f"{value.name} = {value.shape} {opcode}({names}){attributes}"
        self.line(text, for_xla(value.name) if for_xla else None)
        self.values.append(value)
        return value

    def constant(self, dtype, dims, numbers):
        return self.add(dtype, dims, "constant", [literal(dtype, dims, numbers)])

    def scalar(self, dtype, number):
        return self.constant(dtype, (), [number])

    def filled(self, dtype, dims, number):
        return self.broadcast(self.scalar(dtype, number), (), dims)

    def broadcast(self, a, at, dims):
        return self.add(
            a.dtype, dims, "broadcast", [a], f", dimensions={{{listed(at)}}}", small=a.small
        )

    def convert(self, a, dtype):
        small = dtype == "f32" and bits_of(a.dtype) <= 8
        return self.add(dtype, a.dims, "convert", [a], small=small)

    def reshape(self, a, dims):
        return self.add(a.dtype, dims, "reshape", [a], small=a.small)

    def sliced(self, a, ranges):
        dims = [(end - begin + step - 1) // step for begin, end, step in ranges]
        text = ", ".join(f"[{b}:{e}:{s}]" if s > 1 else f"[{b}:{e}]" for b, e, s in ranges)
        return self.add(a.dtype, dims, "slice", [a], f", slice={{{text}}}", small=a.small)

    # ---- What is drawn

    def number(self, dtype):
        low, high = limits(dtype)
        kind = self.draw.random()
        if dtype == "pred" or kind < 0.4:
            return self.draw.randint(max(low, -9), min(high, 9))
        if kind < 0.65:
            return self.draw.choice([low, low + 1, high, high - 1, high // 2, high // 2 + 1])
        if kind < 0.75:
            return 2 ** self.draw.randrange(bits_of(dtype) - 1)
        return self.draw.randint(low, high)

    def numbers(self, dtype, count):
        kind = self.draw.random()
        if kind < 0.2:
            return [self.number(dtype)] * count
        if kind < 0.4 and dtype != "pred":  # at equal distances, modulo the type's range
            low, high = limits(dtype)
            first, step = self.number(dtype), self.number(dtype)
            return [(first + i * step - low) % (high - low + 1) + low for i in range(count)]
        if kind < 0.5:
            some = [self.number(dtype) for _ in range(2)]
            return [self.draw.choice(some) for _ in range(count)]
        return [self.number(dtype) for _ in range(count)]

    def dims(self, most=3):
        while True:
            dims = [
                self.draw.choice([1, 2, 2, 3, 4, 5, 7]) for _ in range(self.draw.randint(0, most))
            ]
            if size(dims) <= kMostElements:
                return tuple(dims)

    def any(self, accepts=lambda v: True):
        """A value that is accepted, a late one rather; a constant where there is none."""
        found = [v for v in self.values if accepts(v)]
        if found and self.draw.random() < 0.5:
            return self.draw.choice(found[-6:])
        return self.draw.choice(found) if found else None

    def integers(self, accepts=lambda v: True):
        value = self.any(lambda v: v.dtype in kIntegers and accepts(v))
        if value is None:
            dtype, dims = self.draw.choice(kIntegers), self.dims()
            value = self.constant(dtype, dims, self.numbers(dtype, size(dims)))
        return value

    def like(self, dtype, dims):
        """A value of a type and shape, made of others where there is none."""
        found = [v for v in self.values if v.dtype == dtype and v.dims == dims]
        kind = self.draw.random()
        if found and kind < 0.6:
            return self.draw.choice(found)
        if kind < 0.75 and dtype != "f32":
            return self.constant(dtype, dims, self.numbers(dtype, size(dims)))
        if kind < 0.85 and dtype in kIntegers and dims:
            return self.add(
                dtype, dims, "iota", [], f", iota_dimension={self.draw.randrange(len(dims))}"
            )
        other = self.any(
            lambda v: v.dims == dims
            and v.dtype != "f32"
            and (dtype != "f32" or bits_of(v.dtype) <= 8)
        )
        if other is not None:
            return other if other.dtype == dtype else self.convert(other, dtype)
        if dtype == "f32":
            return self.convert(self.like("s8", dims), "f32")
        scalar = self.any(lambda v: v.dtype == dtype and not v.dims)
        if scalar is not None:
            return self.broadcast(scalar, (), dims)
        return self.constant(dtype, dims, self.numbers(dtype, size(dims)))

    # ---- Steps

    def step(self):
        steps = [self.binary] * 5 + [
            self.divided,
            self.shifted,
            self.shifted,
            self.unary,
            self.compared,
            self.compared,
            self.chosen,
            self.clamped,
            self.converted,
            self.converted,
            self.cast_bits,
            self.counted,
            self.literals,
            self.widened,
            self.reshaped,
            self.transposed,
            self.cut,
            self.padded,
            self.joined,
            self.reversed,
            self.reduced,
            self.reduced,
            self.windows,
            self.taken,
            self.put,
            self.gathered,
            self.gathered_windows,
            self.greatest,
            self.floats,
            self.preds,
            self.multiplied,
        ]
        if self.depth < 2:
            steps += [self.loop, self.branch, self.call]
        if self.has_collectives and self.module.ranks > 1:
            steps += [self.collective] * 5 + [self.device]
        self.draw.choice(steps)()

    def binary(self):
        a = self.integers()
        opcode = self.draw.choice(
            ["add", "subtract", "multiply", "maximum", "minimum", "and", "or", "xor"]
        )
        self.add(a.dtype, a.dims, opcode, [a, self.like(a.dtype, a.dims)])

    def divided(self):
        a = self.integers()
        b = self.like(a.dtype, a.dims)
        opcode = self.draw.choice(["divide", "remainder"])

        def for_xla(name):
            shape, preds = a.shape, shape_text("pred", a.dims)
            return [
                f"{name}.0 = {a.dtype}[] constant(0)",
                f"{name}.1 = {a.dtype}[] constant(1)",
                f"{name}.zero = {shape} broadcast({name}.0), dimensions={{}}",
                f"{name}.one = {shape} broadcast({name}.1), dimensions={{}}",
                f"{name}.none = {preds} compare({b.name}, {name}.zero), direction=EQ",
                f"{name}.by = {shape} select({name}.none, {name}.one, {b.name})",
                f"{name}.some = {shape} {opcode}({a.name}, {name}.by)",
                f"{name} = {shape} select({name}.none, {name}.zero, {name}.some)",
            ]

        self.add(a.dtype, a.dims, opcode, [a, b], for_xla=for_xla)

    def shifted(self):
        a = self.integers()
        b = self.like(a.dtype, a.dims)
        if self.draw.random() < 0.7:
            b = self.add(
                a.dtype, a.dims, "and", [b, self.filled(a.dtype, a.dims, bits_of(a.dtype) - 1)]
            )
        opcode = self.draw.choice(["shift-left", "shift-right-logical", "shift-right-arithmetic"])
        self.add(a.dtype, a.dims, opcode, [a, b])

    def unary(self):
        a = self.integers()
        opcodes = ["not", "negate", "popcnt", "count-leading-zeros"] + (
            ["abs", "sign"] if a.dtype in kSigned else []
        )
        opcode = self.draw.choice(opcodes)

        def for_xla(name):
            """Counts in the unsigned type: XLA widens constants of narrow signed types first."""
            bits = shape_text(f"u{bits_of(a.dtype)}", a.dims)
            return [
                f"{name}.bits = {bits} bitcast-convert({a.name})",
                f"{name}.zeros = {bits} count-leading-zeros({name}.bits)",
                f"{name} = {a.shape} bitcast-convert({name}.zeros)",
            ]

        counts_signed = opcode == "count-leading-zeros" and a.dtype in kSigned
        self.add(a.dtype, a.dims, opcode, [a], for_xla=for_xla if counts_signed else None)

    def compared(self):
        a = self.any() or self.integers()
        direction = self.draw.choice(["EQ", "NE", "LT", "LE", "GT", "GE"])
        self.add(
            "pred", a.dims, "compare", [a, self.like(a.dtype, a.dims)], f", direction={direction}"
        )

    def chosen(self):
        a = self.any() or self.integers()
        holds = self.like("pred", a.dims if self.draw.random() < 0.8 else ())
        b = self.like(a.dtype, a.dims)
        self.add(a.dtype, a.dims, "select", [holds, a, b], small=a.small and b.small)

    def clamped(self):
        a = self.integers()
        dims = a.dims if self.draw.random() < 0.5 else ()
        low = self.like(a.dtype, dims)
        # XLA assumes that limits are in order.
        high = self.add(a.dtype, dims, "maximum", [low, self.like(a.dtype, dims)])
        self.add(a.dtype, a.dims, "clamp", [low, a, high])

    def converted(self):
        a = self.any() or self.integers()
        self.convert(a, self.draw.choice(kIntegers + ("pred", "f32")))

    def cast_bits(self):
        a = self.integers()
        to = [t for t in kIntegers if bits_of(t) == bits_of(a.dtype) and t != a.dtype]
        self.add(to[0], a.dims, "bitcast-convert", [a])

    def counted(self):
        dims = self.dims() or (3,)
        dtype = self.draw.choice(kIntegers + ("f32",))
        self.add(
            dtype,
            dims,
            "iota",
            [],
            f", iota_dimension={self.draw.randrange(len(dims))}",
            small=True,
        )

    def literals(self):
        dtype, dims = self.draw.choice(kIntegers + ("pred",)), self.dims()
        self.constant(dtype, dims, self.numbers(dtype, size(dims)))

    def widened(self):
        a = self.any(lambda v: size(v.dims) <= kMostElements // 2) or self.integers()
        dims, at = list(a.dims), list(range(len(a.dims)))
        for _ in range(self.draw.randint(1, 2)):
            place, extent = self.draw.randint(0, len(dims)), self.draw.choice([1, 2, 3])
            if size(dims) * extent <= kMostElements:
                dims.insert(place, extent)
                at = [d + (d >= place) for d in at]
        self.broadcast(a, at, dims)

    def reshaped(self):
        a = self.any() or self.integers()
        left, dims = size(a.dims), []
        while left > 1:
            extent = self.draw.choice([d for d in range(1, left + 1) if left % d == 0])
            dims.append(extent)
            left //= extent
            if len(dims) == 4:
                break
        if left > 1:
            dims.append(left)
        if self.draw.random() < 0.2:
            dims.insert(self.draw.randint(0, len(dims)), 1)
        self.reshape(a, dims)

    def transposed(self):
        a = self.any(lambda v: len(v.dims) > 1) or self.any() or self.integers()
        order = list(range(len(a.dims)))
        self.draw.shuffle(order)
        self.add(
            a.dtype,
            [a.dims[d] for d in order],
            "transpose",
            [a],
            f", dimensions={{{listed(order)}}}",
            small=a.small,
        )

    def cut(self):
        a = self.any(lambda v: v.dims) or self.integers(lambda v: v.dims)
        if not a.dims:
            return
        ranges = []
        for extent in a.dims:
            begin = self.draw.randint(0, extent - 1)
            ranges.append(
                (begin, self.draw.randint(begin + 1, extent), self.draw.choice([1, 1, 2, 3]))
            )
        self.sliced(a, ranges)

    def padded(self):
        a = self.any(lambda v: v.dims) or self.integers(lambda v: v.dims)
        if not a.dims:
            return
        texts, dims = [], []
        for extent in a.dims:
            between = self.draw.choice([0, 0, 0, 1, 2])
            whole = extent + (extent - 1) * between
            before, after = self.draw.randint(-1, 2), self.draw.randint(-1, 2)
            if whole + before + after < 1 or whole < 3:
                before, after = max(before, 0), max(after, 0)
            dims.append(whole + before + after)
            texts.append(f"{before}_{after}_{between}" if between else f"{before}_{after}")
        if size(dims) <= kMostElements:
            filler = self.like(a.dtype, ())
            self.add(
                a.dtype,
                dims,
                "pad",
                [a, filler],
                f", padding={'x'.join(texts)}",
                small=a.small and filler.small,
            )

    def joined(self):
        a = self.any(lambda v: v.dims) or self.integers(lambda v: v.dims)
        if not a.dims:
            return
        dim = self.draw.randrange(len(a.dims))
        fits = [
            v
            for v in self.values
            if v.dtype == a.dtype
            and len(v.dims) == len(a.dims)
            and all(d == dim or v.dims[d] == a.dims[d] for d in range(len(a.dims)))
        ]
        parts = [self.draw.choice(fits) for _ in range(self.draw.randint(1, 4))]
        dims = list(a.dims)
        dims[dim] = sum(p.dims[dim] for p in parts)
        if size(dims) <= kMostElements:
            self.add(
                a.dtype,
                dims,
                "concatenate",
                parts,
                f", dimensions={{{dim}}}",
                small=all(p.small for p in parts),
            )

    def reversed(self):
        a = self.any(lambda v: v.dims) or self.integers()
        dims = [d for d in range(len(a.dims)) if self.draw.random() < 0.6]
        self.add(a.dtype, a.dims, "reverse", [a], f", dimensions={{{listed(dims)}}}", small=a.small)

    def reduced(self):
        a = self.any(lambda v: v.dims and v.dtype != "f32") or self.integers()
        dims = [d for d in range(len(a.dims)) if self.draw.random() < 0.6]
        opcode = self.draw.choice(
            ["and", "or"]
            if a.dtype == "pred"
            else ["add", "add", "maximum", "minimum", "and", "or", "xor", "multiply"]
        )
        kept = [extent for d, extent in enumerate(a.dims) if d not in dims]
        self.add(
            a.dtype,
            kept,
            "reduce",
            [a, self.beginning(opcode, a.dtype, size(kept) < size(a.dims))],
            f", dimensions={{{listed(dims)}}}, to_apply={self.module.combiner(opcode, a.dtype)}",
        )

    def beginning(self, opcode, dtype, may_differ):
        """A value to begin a reduction with: the neutral one, which XLA wants it to be, or any
        where more of them change nothing. XLA leaves it away where nothing is to be combined."""
        is_any = (
            may_differ
            and opcode in ("maximum", "minimum", "and", "or")
            and self.draw.random() < 0.4
        )
        return self.like(dtype, ()) if is_any else self.scalar(dtype, neutral(opcode, dtype))

    def greatest(self):
        """The greatest element along a dimension, and its first index."""
        a = self.integers(lambda v: v.dims)
        if not a.dims:
            return
        dim, dtype = self.draw.randrange(len(a.dims)), self.draw.choice(("s32", "s64", "u16", "s8"))
        places = self.add(dtype, a.dims, "iota", [], f", iota_dimension={dim}")
        kept = [extent for d, extent in enumerate(a.dims) if d != dim]
        results = [Value("", a.dtype, kept), Value("", dtype, kept)]
        begin = [self.scalar(a.dtype, limits(a.dtype)[0]), self.scalar(dtype, limits(dtype)[1])]
        name = self.module.name()
        self.line(
            f"{name} = ({results[0].shape}, {results[1].shape}) reduce({a.name}, {places.name}, "
            f"{begin[0].name}, {begin[1].name}), dimensions={{{dim}}}, "
            f"to_apply={self.module.first_greatest(a.dtype, dtype)}"
        )
        self.elements(name, results)

    def windows(self):
        a = self.integers(lambda v: v.dims)
        if not a.dims:
            return
        opcode = self.draw.choice(["add", "maximum", "minimum", "multiply", "or"])
        sizes, strides, pads, dilations, dims = [], [], [], [], []
        for extent in a.dims:
            window = self.draw.randint(1, min(3, extent))
            dilation = self.draw.choice([1, 1, 2]) if (window - 1) * 2 < extent else 1
            before, after = (self.draw.randint(0, window - 1) for _ in range(2))
            stride = self.draw.choice([1, 1, 2])
            reach = (window - 1) * dilation + 1
            dims.append((extent + before + after - reach) // stride + 1)
            sizes.append(window)
            strides.append(stride)
            dilations.append(dilation)
            pads.append(f"{before}_{after}")
        join = lambda numbers: "x".join(map(str, numbers))
        # Paddings have the initial value, and so may what is combined: it is neutral.
        self.add(
            a.dtype,
            dims,
            "reduce-window",
            [a, self.scalar(a.dtype, neutral(opcode, a.dtype))],
            f", window={{size={join(sizes)} stride={join(strides)} pad={join(pads)} "
            f"rhs_dilate={join(dilations)}}}, to_apply={self.module.combiner(opcode, a.dtype)}",
        )

    def indices(self, dims, count):
        """Integers of one type as many times. XLA takes unsigned ones of half their range and more
        for negative; those that it is given are less, and as far behind all rows."""
        dtype, none = self.draw.choice(kIntegers), 127
        found = [self.like(dtype, dims) for _ in range(count)]
        if dtype in kUnsigned:
            for i, index in enumerate(found):
                low = Value(self.module.name(), dtype, dims)
                number = literal(dtype, dims, [none] * size(dims))
                self.line(
                    f"{low.name} = {low.shape} copy({index.name})",
                    [
                        f"{low.name}.most = {low.shape} constant({number})",
                        f"{low.name} = {low.shape} minimum({index.name}, {low.name}.most)",
                    ],
                )
                found[i] = low
        return found

    def taken(self):
        a = self.any(lambda v: v.dims) or self.integers(lambda v: v.dims)
        if not a.dims or max(a.dims) > kMostElements:
            return
        sizes = [self.draw.randint(1, extent) for extent in a.dims]
        self.add(
            a.dtype,
            sizes,
            "dynamic-slice",
            [a] + self.indices((), len(sizes)),
            f", dynamic_slice_sizes={{{listed(sizes)}}}",
            small=a.small,
        )

    def put(self):
        a = self.any(lambda v: v.dims) or self.integers(lambda v: v.dims)
        if not a.dims or max(a.dims) > kMostElements:
            return
        update = self.like(a.dtype, tuple(self.draw.randint(1, extent) for extent in a.dims))
        self.add(
            a.dtype,
            a.dims,
            "dynamic-update-slice",
            [a, update] + self.indices((), len(a.dims)),
            small=a.small and update.small,
        )

    def gathered(self):
        """Rows along one dimension by index."""
        a = self.any(lambda v: v.dims) or self.integers(lambda v: v.dims)
        if not a.dims or max(a.dims) > kMostElements:
            return
        dim, count = self.draw.randrange(len(a.dims)), self.draw.randint(1, 5)
        index = self.indices((count,), 1)[0]
        sizes = [1 if d == dim else extent for d, extent in enumerate(a.dims)]
        kept = [extent for d, extent in enumerate(a.dims) if d != dim]
        if size(kept) * count > kMostElements:
            return
        self.add(
            a.dtype,
            [count] + kept,
            "gather",
            [a, index],
            f", offset_dims={{{listed(range(1, len(a.dims)))}}}, collapsed_slice_dims={{{dim}}}, "
            f"start_index_map={{{dim}}}, index_vector_dim=1, slice_sizes={{{listed(sizes)}}}",
            small=a.small,
        )

    def gathered_windows(self):
        """Windows whose first places are vectors of indices."""
        a = self.any(lambda v: len(v.dims) > 1) or self.integers(lambda v: len(v.dims) > 1)
        if len(a.dims) < 2 or max(a.dims) > kMostElements:
            return
        indexed = sorted(self.draw.sample(range(len(a.dims)), 2))
        self.draw.shuffle(indexed)
        count = self.draw.randint(1, 3)
        sizes = [self.draw.randint(1, extent) for extent in a.dims]
        collapsed = [d for d in indexed if sizes[d] == 1 and self.draw.random() < 0.7]
        kept = [extent for d, extent in enumerate(sizes) if d not in collapsed]
        if size(kept) * count > kMostElements:
            return
        index = self.indices((count, 2), 1)[0]
        of_batch = self.draw.randint(0, len(kept))  # the dimension of the result
        dims = kept[:of_batch] + [count] + kept[of_batch:]
        offsets = [d for d in range(len(dims)) if d != of_batch]
        self.add(
            a.dtype,
            dims,
            "gather",
            [a, index],
            f", offset_dims={{{listed(offsets)}}}, "
            f"collapsed_slice_dims={{{listed(sorted(collapsed))}}}, "
            f"start_index_map={{{listed(indexed)}}}, index_vector_dim=1, "
            f"slice_sizes={{{listed(sizes)}}}",
            small=a.small,
        )

    def floats(self):
        """Sums and products of small integers, which f32 has exactly, and functions of them."""
        a = self.any(lambda v: v.dtype == "f32" and v.small)
        if a is None:
            a = self.convert(self.like("s8", self.dims()), "f32")
        kind = self.draw.random()
        if kind < 0.4:
            b = self.any(lambda v: v.dtype == "f32" and v.small and v.dims == a.dims) or a
            self.add(
                "f32",
                a.dims,
                self.draw.choice(["add", "subtract", "multiply", "maximum", "minimum"]),
                [a, b],
            )
        elif kind < 0.7:
            self.add(
                "f32",
                a.dims,
                self.draw.choice(["negate", "abs", "floor", "ceil", "sign"]),
                [a],
                small=True,
            )
        else:
            half = self.add("f32", a.dims, "multiply", [a, self.halves(a.dims)])
            self.add(
                "f32",
                a.dims,
                self.draw.choice(["floor", "ceil", "round-nearest-even", "round-nearest-afz"]),
                [half],
            )

    def halves(self, dims):
        scalar = Value(self.module.name(), "f32", ())
        self.line(f"{scalar.name} = f32[] constant(0.5)")
        return self.broadcast(scalar, (), dims)

    def preds(self):
        a = self.any(lambda v: v.dtype == "pred")
        if a is None:
            return self.compared()
        if self.draw.random() < 0.2:
            return self.add("pred", a.dims, "not", [a])
        self.add(
            "pred", a.dims, self.draw.choice(["and", "or", "xor"]), [a, self.like("pred", a.dims)]
        )

    def multiplied(self):
        """A product of matrices, summed over any dimension of each."""
        a = self.integers(lambda v: v.dims)
        if not a.dims:
            return
        of_a, rank = self.draw.randrange(len(a.dims)), self.draw.randint(1, 2)
        of_b = self.draw.randrange(rank)
        dims = [self.draw.choice([1, 2, 3]) for _ in range(rank)]
        dims[of_b] = a.dims[of_a]
        kept = [e for d, e in enumerate(a.dims) if d != of_a] + [
            e for d, e in enumerate(dims) if d != of_b
        ]
        if size(kept) <= kMostElements:
            self.add(
                a.dtype,
                kept,
                "dot",
                [a, self.like(a.dtype, tuple(dims))],
                f", lhs_contracting_dims={{{of_a}}}, rhs_contracting_dims={{{of_b}}}",
            )

    # ---- Computations

    def inner(self, parameters, steps, has_collectives):
        """A block of drawn steps on parameters of these types."""
        block = Block(self.module, self.depth + 1, has_collectives)
        for number, value in enumerate(parameters):
            block.add(value.dtype, value.dims, "parameter", [str(number)], small=value.small)
        for _ in range(steps):
            block.step()
        return block

    def elements(self, value, shapes):
        """Takes the elements of a tuple."""
        return [
            self.add(s.dtype, s.dims, "get-tuple-element", [value], f", index={i}")
            for i, s in enumerate(shapes)
        ]

    def tuple_of(self, values, name=None):
        name = name or self.module.name()
        shapes = "(" + ", ".join(v.shape for v in values) + ")"
        self.line(f"{name} = {shapes} tuple({', '.join(v.name for v in values)})")
        return name, shapes

    def some(self, most):
        return [self.any() or self.integers() for _ in range(self.draw.randint(1, most))]

    def loop(self):
        """A loop with a constant number of turns; its counter may be used."""
        turns, dtype = self.draw.randint(0, 4), self.draw.choice(
            ("s32", "s32", "u32", "s64", "u8", "s16")
        )
        first = self.scalar(dtype, self.draw.choice([0, 0, 1]))
        last = int(self.lines[-1].split("constant(")[1].split(")")[0]) + turns
        carried = [first] + self.some(3)
        name, shapes = self.tuple_of(carried)
        body = Block(self.module, self.depth + 1, self.has_collectives)
        body.line(f"{name}.in = {shapes} parameter(0)")
        inside = body.elements(f"{name}.in", carried)
        inside[0].dims = ()
        one = body.scalar(dtype, 1)
        for _ in range(self.draw.randint(1, 4)):
            body.step()
        results = [body.add(dtype, (), "add", [inside[0], one])]
        results += [body.like(v.dtype, v.dims) for v in carried[1:]]
        body.tuple_of(results, f"ROOT {name}.out")
        condition = Block(self.module, self.depth + 1, False)
        condition.line(f"{name}.at = {shapes} parameter(0)")
        condition.line(f"{name}.i = {dtype}[] get-tuple-element({name}.at), index=0")
        condition.line(f"{name}.n = {dtype}[] constant({last})")
        condition.line(f"ROOT {name}.more = pred[] compare({name}.i, {name}.n), direction=LT")
        self.module.computation(f"{name}.body", body)
        self.module.computation(f"{name}.condition", condition)
        looped = self.module.name()
        self.line(
            f"{looped} = {shapes} while({name}), condition={name}.condition, body={name}.body"
        )
        self.elements(looped, [Value("", v.dtype, v.dims) for v in carried])

    def branch(self):
        """Branches of one type, one of which is taken by a constant, or by data."""
        is_pred = self.draw.random() < 0.5
        count = 2 if is_pred else self.draw.randint(1, 3)
        by = self.like("pred", ()) if is_pred else self.like("s32", ())
        result = self.any() or self.integers()
        names, operands = [], []
        for _ in range(count):
            argument = self.any() or self.integers()
            block = self.inner([argument], self.draw.randint(0, 3), False)
            root = block.like(result.dtype, result.dims)
            block.root(root)
            names.append(self.module.name())
            self.module.computation(names[-1], block)
            operands.append(argument)
        attributes = (
            f", true_computation={names[0]}, false_computation={names[1]}"
            if is_pred
            else f", branch_computations={{{', '.join(names)}}}"
        )
        self.add(result.dtype, result.dims, "conditional", [by] + operands, attributes)

    def root(self, value):
        self.line(f"ROOT {self.module.name()} = {value.shape} copy({value.name})")

    def call(self):
        arguments = self.some(3)
        block = self.inner(arguments, self.draw.randint(1, 4), self.has_collectives)
        result = block.any()
        block.root(result)
        name = self.module.name()
        self.module.computation(name, block)
        self.add(result.dtype, result.dims, "call", arguments, f", to_apply={name}")

    # ---- Ranks

    def groups(self):
        """Groups of all ranks, or of equal parts, and how many ranks one has."""
        ranks = list(range(self.module.ranks))
        of = self.draw.choice([d for d in (1, 2, 4) if self.module.ranks % d == 0])
        self.draw.shuffle(ranks)
        kind = self.draw.random()
        if kind < 0.25:
            return "{}", self.module.ranks
        if kind < 0.4:
            return f"[{self.module.ranks // of},{of}]<=[{self.module.ranks}]", of
        if kind < 0.5:
            ranks.sort()
            of = self.module.ranks
        groups = [ranks[i : i + of] for i in range(0, len(ranks), of)]
        return "{" + ",".join("{" + listed(g) + "}" for g in groups) + "}", of

    def across(self, dtype, dims, opcode, operands, attributes, groups):
        """A collective; of partitions it has a channel, of replicas none."""
        value = Value(self.module.name(), dtype, dims)
        names = ", ".join(o.name for o in operands)

        def text(groups):
            listed_groups = "" if groups is None else f", replica_groups={groups}"
            return f"{value.name} = {value.shape} {opcode}({names}){listed_groups}{attributes}"

        channel = f", channel_id={self.module.channel()}"
        if opcode in ("all-reduce", "all-gather", "reduce-scatter"):
            channel += ", use_global_device_ids=true"
        everyone = "{{" + listed(range(self.module.ranks)) + "}}"  # which XLA wants to be told
        self.line(
            text(groups) + (channel if self.module.has_partitions else ""),
            [text(everyone if groups == "{}" else groups)],
        )
        self.values.append(value)

    def collective(self):
        self.draw.choice(
            [
                self.all_reduce,
                self.all_reduce,
                self.all_reduce_of_several,
                self.all_gather,
                self.reduce_scatter,
                self.all_to_all,
                self.permute,
            ]
        )()

    def all_reduce(self):
        a = self.any(lambda v: v.dtype != "f32") or self.integers()
        opcode = self.draw.choice(
            ["and", "or"] if a.dtype == "pred" else ["add", "maximum", "minimum"]
        )
        self.across(
            a.dtype,
            a.dims,
            "all-reduce",
            [a],
            f", to_apply={self.module.combiner(opcode, a.dtype)}",
            self.groups()[0],
        )

    def all_reduce_of_several(self):
        a = self.integers()
        b = self.convert(self.integers(), a.dtype)
        combiner = self.module.combiner(self.draw.choice(["add", "maximum", "minimum"]), a.dtype)
        name = self.module.name()
        text = (
            f"{name} = ({a.shape}, {b.shape}) all-reduce({a.name}, {b.name}), "
            f"replica_groups={self.groups()[0]}, to_apply={combiner}"
        )
        channel = f", channel_id={self.module.channel()}, use_global_device_ids=true"
        self.line(text + (channel if self.module.has_partitions else ""), [text])
        self.elements(name, [a, b])

    def all_gather(self):
        a = self.any(lambda v: v.dims and size(v.dims) <= kMostElements // 4) or self.integers()
        if not a.dims or size(a.dims) > kMostElements // 4:
            return
        dim, (groups, of) = self.draw.randrange(len(a.dims)), self.groups()
        dims = list(a.dims)
        dims[dim] *= of
        self.across(a.dtype, dims, "all-gather", [a], f", dimensions={{{dim}}}", groups)

    def multiple(self, of):
        """An array, one of whose dimensions is a multiple of `of`, and that dimension."""
        fits = [
            (v, d)
            for v in self.values
            for d, extent in enumerate(v.dims)
            if extent % of == 0 and v.dtype in kIntegers
        ]
        if fits:
            return self.draw.choice(fits)
        dims = (of * self.draw.randint(1, 2), self.draw.randint(1, 3))
        return self.like(self.draw.choice(kIntegers), dims), 0

    def reduce_scatter(self):
        groups, of = self.groups()
        a, dim = self.multiple(of)
        dims = list(a.dims)
        dims[dim] //= of
        opcode = self.draw.choice(["add", "maximum", "minimum"])
        self.across(
            a.dtype,
            dims,
            "reduce-scatter",
            [a],
            f", dimensions={{{dim}}}, to_apply={self.module.combiner(opcode, a.dtype)}",
            groups,
        )

    def all_to_all(self):
        groups, of = self.groups()
        a, dim = self.multiple(of)
        self.across(a.dtype, a.dims, "all-to-all", [a], f", dimensions={{{dim}}}", groups)

    def permute(self):
        a = self.any() or self.integers()
        sources, targets = (list(range(self.module.ranks)) for _ in range(2))
        self.draw.shuffle(sources)
        self.draw.shuffle(targets)
        count = self.draw.randint(1, self.module.ranks)
        pairs = ",".join(f"{{{s},{t}}}" for s, t in list(zip(sources, targets))[:count])
        self.across(
            a.dtype, a.dims, "collective-permute", [a], f", source_target_pairs={{{pairs}}}", None
        )

    def device(self):
        number = Value(self.module.name(), "u32", ())
        opcode = "partition-id" if self.module.has_partitions else "replica-id"
        self.line(f"{number.name} = u32[] {opcode}()", [f"{number.name} = u32[] replica-id()"])
        self.values.append(number)
