#!/usr/bin/env python3
"""A job of one rank whose tensors are PyTorch's: they are taken over without copies (DLPack, Adopt), and a step is run, enqueued in a
stream, and captured in torch.cuda.graph.

    torch_job.py [--host]

--host: on the host's cores, without streams, to try the script itself. Exits with code 3 and a line if there is no PyTorch or no GPU.
"""

import sys

PROGRAM = """
coconet 1
program job

input g : f32[N] local
state p : f32[N] replicated

update(p, p - all_reduce(sum, g) / world)
"""
ELEMENTS = 1 << 16


def skip(why):
    print(f"torch: {why}")
    sys.exit(3)


def expect(torch, p, want, after):
    have = p.cpu()
    if not torch.equal(have, torch.full_like(have, want)):
        print(f"torch: after {after}: want {want}, have {have.min().item()} to {have.max().item()}")
        sys.exit(1)


def main():
    host = sys.argv[1:] == ["--host"]
    try:
        import torch
    except ImportError as error:
        skip(f"no PyTorch ({error})")
    if not host and not torch.cuda.is_available():
        skip(f"PyTorch {torch.__version__} sees no GPU")
    import coconet
    warnings = []
    device = "cpu" if host else "cuda"
    with coconet.Session(backend="host" if host else "cuda", budget=10, cache_file=":none:", warn=warnings.append) as session:
        tuned = session.compile(PROGRAM, N=ELEMENTS)
        g = torch.full((ELEMENTS,), 1.0, device=device)
        p = torch.full((ELEMENTS,), 100.0, device=device)
        with tuned.bind(g=g, p=p) as bound:
            bound.run()
            expect(torch, p, 99, "run")
            done = "run"
            if not host:
                torch.cuda.synchronize()
                stream = torch.cuda.Stream()
                with torch.cuda.stream(stream):
                    bound.enqueue(stream)
                bound.wait()
                expect(torch, p, 98, "enqueue")
                torch.cuda.synchronize()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    bound.enqueue(torch.cuda.current_stream())
                for _ in range(3):
                    graph.replay()
                torch.cuda.synchronize()
                bound.wait()
                expect(torch, p, 95, "a graph replayed three times")
                done = "run, enqueue, graph"
    copied = [line for line in warnings if "copied" in line]
    if copied and not host:  # the host's allocator gives memory that peers cannot reach
        print(f"torch: {copied[0]}")
        sys.exit(1)
    print(f"torch: PyTorch {torch.__version__}: {done}, {'with' if copied else 'without'} copies")


if __name__ == "__main__":
    main()
