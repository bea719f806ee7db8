"""How a dimension is cut over ranks."""


def part_of(extent, ranks, rank):
    """The range of an extent that a rank has (docs/language.md, "Types")."""
    per = -(-extent // ranks)
    multiple = 64
    while multiple > 1 and multiple > per / 16:
        multiple //= 2
    per = -(-per // multiple) * multiple
    return min(rank * per, extent), min((rank + 1) * per, extent)
