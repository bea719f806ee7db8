"""The statements of random programs of integers, and what NumPy computes for each."""

import numpy as np

import oracle

LOCAL, REPLICATED, FLAT = "local", "replicated", "flat"  # a layout is one of these, or a sliced dim


class NoOperands(Exception):
    """No value of the program is one that a statement could take."""


class Value:
    """A tensor. Its data: one array, of a local one a list, one for each rank."""

    def __init__(self, name, dtype, shape, layout, floats=False):
        self.name, self.dtype, self.shape, self.floats = name, dtype, tuple(shape), floats
        self.layout = 0 if layout == FLAT and len(shape) == 1 else layout

    @property
    def local(self):
        return self.layout == LOCAL

    @property
    def sliced(self):
        return self.layout == FLAT or isinstance(self.layout, int)

    @property
    def elements(self):
        return int(np.prod(self.shape, dtype=int))


def place(layout):
    """As text."""
    return layout if layout in (LOCAL, REPLICATED) else "sliced(%s)" % layout


def part_of(array, layout, bounds, rank):
    """A rank's part, with the other dimensions whole."""
    if layout == FLAT:
        return array.reshape(-1)[bounds[rank]:bounds[rank + 1]]
    return array[(slice(None),) * layout + (slice(bounds[rank], bounds[rank + 1]),)]


class Statements:
    """A program that grows, statement by statement. `random` draws, `ranks` is the world's size,
    and a tensor has `most` elements at most. `computed` has values with their operands, and the
    functions that make the data of the former from those of the latter."""

    def __init__(self, random, ranks, most, has_floats):
        self.random, self.ranks, self.most, self.has_floats = random, ranks, most, has_floats
        self.lines, self.values, self.computed = [], [], []

    def add(self, text, dtype, shape, layout, operands, compute):
        """A value that is `compute` of the operands' data."""
        if np.prod(shape, dtype=int) > self.most:
            raise NoOperands()
        value = Value("v%d" % len(self.values), dtype, shape, layout,
                      dtype in oracle.FLOATS or any(o.floats for o in operands))
        self.lines.append("%s = %s" % (value.name, text))
        self.values.append(value)
        self.computed.append((value, operands, compute))
        return value

    def draw(self, wanted=lambda value: True, otherwise=None):
        """One of the values, rather a late one."""
        some = [value for value in self.values if wanted(value)] or [otherwise]
        if some == [None]:
            raise NoOperands()
        return some[max(self.random.randrange(len(some)), self.random.randrange(len(some)))]

    def joined(self, operands):
        """Shape and layout of an elementwise operation; None where they do not go together."""
        try:
            shape = np.broadcast_shapes(*(o.shape for o in operands))
        except ValueError:
            return None
        if np.prod(shape) > self.most:
            return None
        layouts = {o.layout for o in operands if o.sliced}
        if len(layouts) > 1 or any(o.sliced and o.shape != shape for o in operands):
            return None
        if layouts:
            return shape, layouts.pop()
        return shape, LOCAL if any(o.local for o in operands) else REPLICATED

    def elementwise(self, text, dtype, operands, function):
        shape, layout = self.joined(operands)

        def compute(*data):
            def on(rank):
                arrays = [np.atleast_1d(d[rank] if o.local else d) for o, d in zip(operands, data)]
                return function(*arrays).reshape(shape)
            if not any(o.local for o in operands):
                return on(0)
            whole = [on(rank) for rank in range(self.ranks)]
            return whole if layout == LOCAL else self.own_parts(whole, shape, layout)

        return self.add(text, dtype, shape, layout, operands, compute)

    def bounds(self, shape, layout):
        extent = np.prod(shape, dtype=int) if layout == FLAT else shape[layout]
        return oracle.part_bounds(int(extent), self.ranks)

    def own_parts(self, whole, shape, layout):
        bounds = self.bounds(shape, layout)
        parts = [part_of(array, layout, bounds, rank) for rank, array in enumerate(whole)]
        return np.concatenate(parts, axis=0 if layout == FLAT else layout).reshape(shape)

    def each(self, operands, function):
        """Computes local results by rank, others once."""
        def compute(*data):
            def on(rank):
                return function(*(d[rank] if o.local else d for o, d in zip(operands, data)))
            if any(o.local for o in operands):
                return [on(rank) for rank in range(self.ranks)]
            return on(0)
        return compute

    # ---- Operands.
    def literal(self, dtype):
        """A number of the type, written in full."""
        low, high = oracle.least(dtype), oracle.greatest(dtype)
        bits = oracle.bits_of(dtype)
        some = [0, 1, 2, 3, 7, 10, -1, -2, bits - 1, bits, bits + 1, low, low + 1, high, high - 1,
                high // 2, high // 2 + 1, 0x55555555, 0xdeadbeef, 0x9e3779b9, 6364136223846793005,
                (1 << 53) + 1, -(1 << 53) - 1, (1 << 62) + 500, 0x8000000000000001,
                1 << self.random.randrange(bits), self.random.randint(low, high)]
        return self.random.choice([number for number in some if low <= number <= high])

    def written(self, number):
        """In digits, or as arithmetic on plain numbers, which is exact while 64 bits hold it."""
        part = self.random.randint(-99, 99)
        if self.random.random() < 0.8 or not -(1 << 63) <= number - part < 1 << 64:
            return str(number)
        return "(%d %s %d)" % (number - part, "-" if part < 0 else "+", abs(part))

    def operand_like(self, value, letter):
        """Another operand of the same dtype: its text, and the value or the number."""
        draw = self.random
        if letter == "n" and value.dtype in oracle.FLOATS or value.dtype == "bool":
            other = self.draw(lambda o: o.dtype == value.dtype and self.joined([value, o]))
            return other.name, other
        if draw.random() < 0.3:
            number = self.literal(value.dtype)
            return self.written(number), number
        other = self.draw(lambda o: o.dtype == value.dtype and self.joined([value, o]))
        if other is value or draw.random() < 0.3:
            other = self.draw(lambda o: o.dtype != value.dtype and o.dtype not in oracle.FLOATS and
                              self.joined([value, o]), other)
            if other.dtype != value.dtype:
                other = self.cast_of(other, value.dtype)
        return other.name, other

    def cast_of(self, value, dtype):
        return self.elementwise("cast(%s, %s)" % (dtype, value.name), dtype, [value],
                                lambda a: oracle.cast(value.dtype, dtype, a))

    # ---- The kinds of statements
    def add_elementwise(self):
        draw = self.random
        name = draw.choice(tuple(oracle.ELEMENTWISE))
        form, letters, function = oracle.ELEMENTWISE[name]
        if name.startswith("shift") and draw.random() < 0.7:
            return self.add_shift(form, function)
        wanted = {"i": lambda v: v.dtype in oracle.INTEGERS,
                  "n": lambda v: v.dtype not in ("bool", "bf16"),
                  "b": lambda v: v.dtype == "bool"}[letters[0]]
        first = self.draw(wanted)
        texts, operands, numbers = [first.name], [first], {}
        for at, letter in enumerate(letters[1:], 1):
            text, other = self.operand_like(first, letter)
            texts.append(text)
            if isinstance(other, Value):
                operands.append(other)
            else:
                numbers[at] = np.array([other], oracle.HELD[first.dtype])
        turned = len(texts) == 2 and draw.random() < 0.5
        if turned:
            texts.reverse()

        def both(*arrays):
            arrays = list(arrays) + list(numbers.values())
            return function(*(reversed(arrays) if turned else arrays))

        pieces = form.split("$")
        text = "".join(piece + (texts[i] if i < len(texts) else "")
                       for i, piece in enumerate(pieces))
        return self.elementwise(text, "bool" if name in oracle.COMPARISONS else first.dtype,
                                operands, both)

    def add_shift(self, form, function):
        """By few places, most of them within the width."""
        first = self.draw(lambda v: v.dtype in oracle.INTEGERS)
        bits = oracle.bits_of(first.dtype)
        by = self.draw(lambda v: v.dtype == first.dtype and self.joined([first, v]))
        most = np.array([bits + self.random.choice((-1, 2))], oracle.HELD[first.dtype])
        texts = [first.name, "rem(%s, %d)" % (by.name, most[0])]
        pieces = form.split("$")
        text = pieces[0] + texts[0] + pieces[1] + texts[1] + pieces[2]
        return self.elementwise(text, first.dtype, [first, by],
                                lambda a, b: function(a, oracle.remainder(b, most)))

    def add_select(self):
        condition = self.draw(lambda v: v.dtype == "bool")
        first = self.draw(lambda v: self.joined([condition, v]))
        if first.dtype in oracle.INTEGERS and self.random.random() < 0.3:
            number = self.literal(first.dtype)
            held = np.array([number], oracle.HELD[first.dtype])
            return self.elementwise("select(%s, %s, %d)" % (condition.name, first.name, number),
                                    first.dtype, [condition, first],
                                    lambda c, a: oracle.select(c, a, held))
        second = self.draw(lambda v: v.dtype == first.dtype and
                           self.joined([condition, first, v]))
        return self.elementwise("select(%s, %s, %s)" % (condition.name, first.name, second.name),
                                first.dtype, [condition, first, second], oracle.select)

    def add_cast(self):
        kinds = oracle.INTEGERS + ("bool",)
        if self.has_floats and self.random.random() < 0.5:
            kinds = oracle.FLOATS
        value = self.draw()
        if value.dtype in oracle.FLOATS and self.random.random() < 0.8:
            kinds = oracle.INTEGERS
        return self.cast_of(value, self.random.choice(kinds))

    def add_bit_cast(self):
        value = self.draw(lambda v: v.dtype in oracle.INTEGERS)
        kinds = oracle.INTEGERS + (oracle.FLOATS if self.has_floats else ())
        dtype = self.random.choice([kind for kind in kinds
                                    if oracle.bits_of(kind) == oracle.bits_of(value.dtype)])
        return self.elementwise("bit_cast(%s, %s)" % (dtype, value.name), dtype, [value],
                                lambda a: oracle.bit_cast(dtype, a))

    def add_bits_of_floats(self):
        """What bits a NaN and a zero have is not determined: ones stand for them."""
        value = self.draw(lambda v: v.dtype in ("f16", "f32", "f64"))
        bits = oracle.bits_of(value.dtype)
        dtype = self.random.choice(("i%d" % bits, "u%d" % bits))
        one = np.ones(1, oracle.HELD[value.dtype])

        def function(a):
            return oracle.bit_cast(dtype, np.where((a == a) & (a != 0), a, one))

        return self.elementwise(
            "bit_cast(%s, select(%s == %s and %s != 0, %s, 1))" % ((dtype,) + (value.name,) * 4),
            dtype, [value], function)

    def add_iota(self):
        value = self.draw(lambda v: v.shape)
        dim = self.random.randrange(len(value.shape))
        dtype = self.random.choice(("i32", "i64"))
        counted = np.arange(value.shape[dim], dtype=oracle.HELD[dtype])
        counted = counted.reshape((-1,) + (1,) * (len(value.shape) - dim - 1))
        whole = np.broadcast_to(counted, value.shape)
        return self.add("iota(%s, %s, %d)" % (dtype, value.name, dim), dtype, value.shape,
                        value.layout, [value],
                        lambda data: [whole] * self.ranks if value.local else whole)

    def add_scalar(self):
        """A number of the world, a constant, or an extent."""
        draw = self.random
        dtype = draw.choice(oracle.INTEGERS)
        kind = draw.choice(("world", "rank", "count", "extent", "const", "const"))
        if kind == "rank":
            ranks = [np.full((), rank, oracle.HELD[dtype]) for rank in range(self.ranks)]
            return self.add("rank(%s)" % dtype, dtype, (), LOCAL, [], lambda: ranks)
        value = self.draw(lambda v: v.shape)
        dim = draw.randrange(len(value.shape))
        text, number = {
            "world": ("world(%s)" % dtype, self.ranks),
            "count": ("count(%s, [%s])" % (dtype, ", ".join(map(str, value.shape))),
                      value.elements),
            "extent": ("extent(%s, %s, %d)" % (dtype, value.name, dim), value.shape[dim]),
            "const": (None, self.literal(dtype))}[kind]
        if number > oracle.greatest(dtype):
            raise NoOperands()
        array = np.full((), number, oracle.HELD[dtype])
        return self.add(text or "const(%d, %s)" % (number, dtype), dtype, (), REPLICATED, [],
                        lambda: array)

    def add_fold(self):
        draw = self.random
        value = self.draw(lambda v: v.shape and v.dtype in oracle.INTEGERS)
        name, kind = draw.choice((("sum", "sum"), ("sum", "sum"), ("amax", "max"), ("amin", "min")))
        dims = tuple(sorted(draw.sample(range(len(value.shape)),
                                        draw.randint(1, len(value.shape)))))
        every = len(dims) == len(value.shape)
        if not every and value.layout == FLAT:
            raise NoOperands()
        shape = () if every else tuple(1 if d in dims else n for d, n in enumerate(value.shape))
        layout = value.layout
        if value.sliced and (every or layout in dims):
            bounds, layout = self.bounds(value.shape, value.layout), LOCAL

            def compute(data):
                parts = (part_of(data, value.layout, bounds, rank) for rank in range(self.ranks))
                return [oracle.fold(kind, part, None if every else dims, value.dtype).reshape(shape)
                        for part in parts]
        else:
            compute = self.each([value], lambda data: oracle.fold(kind, data, dims,
                                                                  value.dtype).reshape(shape))
        named = "" if every and draw.random() < 0.7 else "".join(", %d" % dim for dim in dims)
        return self.add("%s(%s%s)" % (name, value.name, named), value.dtype, shape, layout, [value],
                        compute)

    def add_argmax(self):
        value = self.draw(lambda v: v.shape and v.dtype in oracle.INTEGERS and v.layout != FLAT)
        dim = self.random.randrange(len(value.shape))
        dtype = self.random.choice(("i32", "i64"))
        layout = REPLICATED if value.layout == dim else value.layout
        shape = tuple(1 if d == dim else n for d, n in enumerate(value.shape))
        shape = shape if len(shape) > 1 else ()  # a fold of all dimensions
        return self.add("argmax(%s, %s, %d)" % (dtype, value.name, dim), dtype, shape, layout,
                        [value], self.each([value], lambda data: oracle.argmax(
                            data, dim, dtype).reshape(shape)))

    def add_view(self):
        draw = self.random
        value = self.draw(lambda v: v.shape and v.layout != FLAT)
        rank = len(value.shape)
        others = [d for d in range(rank) if d != value.layout]
        kind = draw.choice(("transpose", "reshape", "expand", "reverse", "slice"))
        if kind == "transpose":
            order = draw.sample(range(rank), rank)
            layout = order.index(value.layout) if value.sliced else value.layout
            shape = [value.shape[d] for d in order]
            return self.view("transpose(%s%s)" % (value.name, "".join(", %d" % d for d in order)),
                             value, shape, layout, lambda data: data.transpose(order))
        if kind in ("reverse", "slice"):
            if not others:
                raise NoOperands()
            dim = draw.choice(others)
            if kind == "reverse":
                return self.view("reverse(%s, %d)" % (value.name, dim), value, value.shape,
                                 value.layout, lambda data: np.flip(data, dim))
            begin = draw.randrange(max(value.shape[dim], 1))
            end = draw.randint(min(begin + 1, value.shape[dim]), value.shape[dim])
            shape = [end - begin if d == dim else n for d, n in enumerate(value.shape)]
            chosen = (slice(None),) * dim + (slice(begin, end),)
            return self.view("slice(%s, %d, %d, %d)" % (value.name, dim, begin, end), value, shape,
                             value.layout, lambda data: data[chosen])
        if value.sliced:
            raise NoOperands()
        if kind == "reshape":
            shape = [value.elements]
            if draw.random() < 0.5:
                shape = [n for n in value.shape for n in draw.choice(((n,), (1, n), (n, 1)))][:4]
                shape = shape if np.prod(shape) == value.elements else [1, value.elements]
        else:
            shape = [draw.choice((n, 2, 3)) if n == 1 else n for n in value.shape]
            shape = draw.choice(([], [2], [1])) + shape
        function = np.reshape if kind == "reshape" else np.broadcast_to
        return self.view("%s(%s, [%s])" % (kind, value.name, ", ".join(map(str, shape))), value,
                         shape, value.layout, lambda data: function(data, shape))

    def view(self, text, value, shape, layout, function):
        return self.add(text, value.dtype, shape, layout, [value], self.each([value], function))

    def add_concat(self):
        draw = self.random
        first = self.draw(lambda v: v.shape and not v.sliced)
        dim = draw.randrange(len(first.shape))

        def fits(other):
            return (other.dtype == first.dtype and not other.sliced and
                    len(other.shape) == len(first.shape) and
                    all(d == dim or a == b
                        for d, (a, b) in enumerate(zip(first.shape, other.shape))))

        operands = [first] + [self.draw(fits) for _ in range(draw.randint(0, 2))]
        shape = list(first.shape)
        shape[dim] = sum(o.shape[dim] for o in operands)
        layout = LOCAL if any(o.local for o in operands) else REPLICATED
        return self.add("concat(%s, %d)" % (", ".join(o.name for o in operands), dim), first.dtype,
                        shape, layout, operands,
                        self.each(operands, lambda *data: np.concatenate(data, dim)))

    def add_gather(self):
        draw = self.random
        table = self.draw(lambda v: v.shape and v.layout != FLAT)
        indices = self.draw(lambda v: v.dtype == "i32" and not v.sliced)
        if table.sliced and indices.local:
            raise NoOperands()
        dim = draw.randrange(len(table.shape))
        near = np.array([table.shape[dim] + 1], "i4")
        is_near = draw.random() < 0.6
        shape = table.shape[:dim] + indices.shape + table.shape[dim + 1:]
        if len(shape) > 4:
            raise NoOperands()

        def rows(data, index):
            if is_near:
                index = oracle.remainder(np.atleast_1d(index), near).reshape(index.shape)
            return oracle.gather(data, index, dim)

        operands = [table, indices]
        row = "rem(%s, %d)" % (indices.name, near[0]) if is_near else indices.name
        text = "gather(%s, %s, %d)" % (table.name, row, dim)
        if table.layout == dim:
            bounds = self.bounds(table.shape, dim)

            def compute(data, index):
                held = []
                for rank in range(self.ranks):
                    own = np.zeros_like(data)
                    part_of(own, dim, bounds, rank)[...] = part_of(data, dim, bounds, rank)
                    held.append(rows(own, index))
                return held
            return self.add(text, table.dtype, shape, LOCAL, operands, compute)
        layout = table.layout
        if table.sliced:
            layout = layout if layout < dim else layout + len(indices.shape) - 1
        elif indices.local:
            layout = LOCAL
        return self.add(text, table.dtype, shape, layout, operands, self.each(operands, rows))

    def add_keep_rows(self):
        value = self.draw(lambda v: len(v.shape) > 1 and not v.sliced and
                          v.dtype not in oracle.FLOATS + ("bool",))
        counts = self.draw(lambda v: v.dtype == "i32" and not v.sliced and v.shape and
                           len(v.shape) < len(value.shape) and
                           value.shape[:len(v.shape)] == v.shape)
        row = len(counts.shape)

        def keep(data, count):
            numbers = np.arange(data.shape[row])
            kept = numbers < count[..., None]
            kept = kept.reshape(kept.shape + (1,) * (data.ndim - row - 1))
            return np.where(kept, data, np.zeros(1, data.dtype))

        layout = LOCAL if value.local or counts.local else REPLICATED
        return self.add("keep_rows(%s, %s)" % (value.name, counts.name), value.dtype, value.shape,
                        layout, [value, counts], self.each([value, counts], keep))

    def add_send(self):
        """There is one stage: nothing arrives."""
        value = self.draw(lambda v: v.dtype not in oracle.FLOATS)
        return self.view("send(%s, %s)" % (value.name, self.random.choice(("next", "previous"))),
                         value, value.shape, value.layout, np.zeros_like)

    def add_collective(self):
        draw = self.random
        value = self.draw(lambda v: v.dtype in oracle.INTEGERS)
        if draw.random() < 0.6:
            value = self.draw(lambda v: v.dtype in oracle.INTEGERS and v.local, value)
        if value.sliced:
            if draw.random() < 0.3 and value.layout != FLAT and len(value.shape) > 1:
                other = draw.choice([d for d in range(len(value.shape)) if d != value.layout])
                return self.add("all_to_all(%s, %d)" % (value.name, other), value.dtype,
                                value.shape, other, [value], lambda data: data)
            return self.add("all_gather(%s)" % value.name, value.dtype, value.shape, REPLICATED,
                            [value], lambda data: data)
        if not value.local:
            if not value.shape:
                raise NoOperands()
            dim = draw.choice((FLAT,) + tuple(range(len(value.shape))))
            return self.add("shard(%s, %s)" % (value.name, dim), value.dtype, value.shape, dim,
                            [value], lambda data: data)
        kind = draw.choice(("sum", "sum", "max", "min"))
        name = draw.choice(("all_reduce", "all_reduce", "reduce_scatter", "broadcast", "reduce"))
        if name == "reduce_scatter":
            if not value.shape:
                raise NoOperands()
            dim = draw.choice((FLAT,) + tuple(range(len(value.shape))))
            return self.add("reduce_scatter(%s, %s, %s)" % (kind, value.name, dim), value.dtype,
                            value.shape, dim, [value],
                            lambda data: oracle.reduce_ranks(kind, data))
        if name == "all_reduce":
            return self.add("all_reduce(%s, %s)" % (kind, value.name), value.dtype, value.shape,
                            REPLICATED, [value], lambda data: oracle.reduce_ranks(kind, data))
        root = draw.randrange(self.ranks)
        if name == "broadcast":
            return self.add("broadcast(%s, %d)" % (value.name, root), value.dtype, value.shape,
                            REPLICATED, [value], lambda data: data[root])
        return self.add("reduce(%s, %s, %d)" % (kind, value.name, root), value.dtype, value.shape,
                        LOCAL, [value],
                        lambda data: [oracle.reduce_ranks(kind, data) if rank == root else
                                      np.zeros_like(data[rank]) for rank in range(self.ranks)])

    # With their weights.
    KINDS = ((add_elementwise, 40), (add_select, 5), (add_cast, 12), (add_bit_cast, 4),
             (add_bits_of_floats, 2), (add_iota, 2), (add_scalar, 4), (add_fold, 6),
             (add_argmax, 2), (add_view, 6), (add_concat, 2), (add_gather, 3), (add_keep_rows, 2),
             (add_collective, 8), (add_send, 1))
