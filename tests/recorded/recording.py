"""How a program, its data and what every rank should find are written:

    program NUMBER RANKS STEPS BYTES      the text
    floats NAME ...                       results that follow from floats
    given STEP NAME BYTES                 an input, in the first step a state: all elements, of a
                                          local one of all ranks, one after the other
    want STEP NAME BYTES                  a result likewise
    end

Behind a line with a number of bytes follow these bytes.
"""


def write(out, number, ranks, text, floats, steps):
    """`steps` has pairs of dictionaries: what is given, and what is wanted. A local tensor is a
    list of arrays, one for each rank."""
    text = text.encode()
    out.write(b"program %d %d %d %d\n" % (number, ranks, len(steps), len(text)) + text)
    out.write(" ".join(["floats"] + floats).encode() + b"\n")
    for step, data in enumerate(steps):
        for word, tensors in zip(("given", "want"), data):
            for name, arrays in tensors.items():
                parts = arrays if isinstance(arrays, list) else [arrays]
                content = b"".join(a.tobytes() for a in parts)
                out.write(("%s %d %s %d\n" % (word, step, name, len(content))).encode() + content)
    out.write(b"end\n")
