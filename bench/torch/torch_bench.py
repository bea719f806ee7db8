#!/usr/bin/env python3
"""The fused optimizers beside PyTorch's own, over gloo; a table, and JSON.

    bazel run -c opt //bench/torch -- [--python=PYTHON] [--case=adam,small,tensors,train,start]
        [--quick] [--seconds=10] [--budget=60] [--cache=DIR] [--json=FILE] [--markdown=FILE]

PYTHON is an interpreter that has PyTorch; without one the rows say "absent". Ranks are processes of
one thread, each on a core; both sides run in the same processes, in rounds.
"""

import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
BARS = {  # case: field, what it should be
    "adam 16Mi x2": [("ratio", ">=", 3.5), ("over_program", "<=", 1.05)],
    "adam 16Mi x4": [("ratio", ">=", 5), ("over_program", "<=", 1.05)],
    "adam 1Ki x2": [("ratio", ">=", 20), ("ours_us", "<=", 30)],
    "gpt2 tensors x2": [("ratio", ">=", 3)],
    "gpt2 training x2": [("ratio", ">=", 1)],
    "start": [("over_cpp_ms", "<=", 150)],
}


def cases(o):
    """Name, ranks, and arguments of cases.py, of all rows that are wanted."""
    mi = 16 if not o.quick else 1
    rows = []
    if "adam" in o.case:
        rows += [(f"adam {mi}Mi x{ranks}", ranks, ["--case=adam", f"--n={mi << 20}"])
                 for ranks in (2, 4)]
    if "small" in o.case:
        rows.append(("adam 1Ki x2", 2, ["--case=adam", "--n=1024"]))
    if "tensors" in o.case:
        rows.append(("gpt2 tensors x2", 2, ["--case=tensors", f"--divisor={64 if o.quick else 1}"]))
    if "train" in o.case:
        small = ["--layers=2", "--width=128", "--vocabulary=1000", "--steps=3"]
        rows.append(("gpt2 training x2", 2, ["--case=train", *(small if o.quick else [])]))
    return rows


def run_case(o, ranks, arguments, environment):
    """The row that rank 0 prints; or why there is none."""
    with tempfile.TemporaryDirectory() as folder:
        started = [subprocess.Popen(
            [o.python, str(HERE / "cases.py"), f"--rank={rank}", f"--ranks={ranks}",
             f"--meeting={folder}/meeting", f"--seconds={o.seconds}", f"--budget={o.budget}",
             f"--program={o.programs / 'adam.coco'}", *arguments],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                   for rank in range(ranks)]
        outputs = [process.communicate()[0] for process in started]
    for line in outputs[0].splitlines():
        if line.startswith("ROW ") and not any(process.returncode for process in started):
            return json.loads(line[4:])
    return {"failed": "\n".join(output[-1500:] for output in outputs)}


def start_row(o, environment):
    """From `import coconet` to the first step, over examples/adam, both with warm caches."""
    if not o.adam.exists():
        return {"failed": f"no {o.adam}"}
    with tempfile.TemporaryDirectory() as folder:
        theirs = dict(environment, COCONET_CACHE_DIR=folder + "/cpp")
        ours = dict(environment, COCONET_CACHE_DIR=folder + "/python")
        python = [o.python, str(HERE / "start.py"), f"--program={o.programs / 'adam.coco'}"]
        cpp_ms, python_ms = [], []
        for number in range(4 + 15):
            begin = time.perf_counter()
            subprocess.run([str(o.adam)], env=theirs, check=True, stdout=subprocess.DEVNULL)
            took = 1e3 * (time.perf_counter() - begin)
            ended = subprocess.run(python, env=ours, capture_output=True, text=True)
            if ended.returncode:
                return {"failed": ended.stderr[-1500:]}
            if number >= 4:  # the caches know the programs
                cpp_ms.append(took)
                python_ms.append(float(ended.stdout.split()[0]))
    middle = lambda values: sorted(values)[len(values) // 2]
    return {"ours_us": 1e3 * middle(python_ms), "baseline": "examples/adam, the whole process",
            "cpp_ms": middle(cpp_ms), "over_cpp_ms": middle(python_ms) - middle(cpp_ms),
            "ours_low_us": 1e3 * min(python_ms), "ours_high_us": 1e3 * max(python_ms)}


def complete(name, ranks, row):
    """Adds what follows from the times, and whether the bars are met."""
    row = {"case": name, "ranks": ranks, **row}
    if "torch_us" in row:
        row["ratio"] = row["torch_us"] / row["ours_us"]
    if "program_us" in row:
        row["over_program"] = row["ours_us"] / row["program_us"]
    if "backward_us" in row and name.startswith("gpt2 training"):
        for side in ("ours", "torch"):
            row[f"{side}_outside"] = max(0, 1 - row["backward_us"] / row[f"{side}_us"])
    bars = BARS.get(name, [])
    row["bar"] = ", ".join(f"{field} {sign} {limit}" for field, sign, limit in bars)
    missed = [field for field, sign, limit in bars
              if field not in row or (row[field] < limit if sign == ">=" else row[field] > limit)]
    row["met"] = None if not bars or "torch" in row and row["torch"] == "absent" else not missed
    row["missed"] = missed
    return row


def time_text(us):
    if us is None:
        return ""
    return f"{us / 1e3:.3g} ms" if us >= 1000 else f"{us:.3g} us"


def spread_text(row, side):
    low, high = row.get(f"{side}_low_us"), row.get(f"{side}_high_us")
    return "" if low is None else f" +- {time_text((high - low) / 2)}"


def table(rows):
    lines = [["case", "ours", "PyTorch", "ratio", "over the program", "outside torch", "bar",
              "met"]]
    for row in rows:
        if "failed" in row or row.get("torch") == "absent":
            why = "absent" if row.get("torch") == "absent" else "failed"
            lines.append([row["case"], why] + [""] * 4 + [row["bar"], ""])
            continue
        outside = [f"{100 * row[f'{side}_outside']:.0f} %" for side in ("ours", "torch")
                   if f"{side}_outside" in row]
        lines.append([
            row["case"], time_text(row["ours_us"]) + spread_text(row, "ours"),
            time_text(row.get("torch_us")) + spread_text(row, "torch"),
            f"{row['ratio']:.2f}" if "ratio" in row else
            f"{row['over_cpp_ms']:+.0f} ms over C++" if "over_cpp_ms" in row else "",
            f"{row['over_program']:.3f}" if "over_program" in row else "", " / ".join(outside),
            row["bar"], {True: "yes", False: "no", None: ""}[row["met"]]])
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    text = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |"
            for line in lines]
    text.insert(1, "| " + " | ".join("-" * width for width in widths) + " |")
    return "\n".join(text) + "\n"


def machine():
    cpu = ""
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.partition(":")[2].strip()
            break
    return {"cpu": cpu, "cores": len(os.sched_getaffinity(0)), "kernel": platform.release(),
            "python": platform.python_version(), "load": os.getloadavg()[0],
            "date": time.strftime("%Y-%m-%d")}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=os.environ.get("COCONET_PYTHON", "/usr/bin/python3"))
    parser.add_argument("--case", default="adam,small,tensors,train,start")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--budget", type=float, default=60)
    for name in ("cache", "json", "markdown"):
        parser.add_argument("--" + name)
    parser.add_argument("--adam", type=pathlib.Path, default=pathlib.Path("examples/adam"))
    parser.add_argument("--programs", type=pathlib.Path, default=pathlib.Path("examples"))
    o = parser.parse_args()
    o.case = o.case.split(",")
    o.adam, o.programs = o.adam.resolve(), o.programs.resolve()
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    standing = pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
    probe = subprocess.run([o.python, "-c", "import torch"], capture_output=True, text=True)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        environment["COCONET_CACHE_DIR"] = str(standing / o.cache) if o.cache else folder
        for name, ranks, arguments in cases(o):
            row = ({"torch": "absent", "why": probe.stderr.strip()[-200:]} if probe.returncode else
                   run_case(o, ranks, arguments, environment))
            rows.append(complete(name, ranks, row))
            print(table(rows[-1:]) if "failed" not in row else f"{name}: {row['failed']}",
                  file=sys.stderr, flush=True)
        if "start" in o.case:
            rows.append(complete("start", 2, start_row(o, environment)))
    for row in rows:
        row.update(machine())
    print(table(rows), end="")
    if o.json:
        text = "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n"
        (standing / o.json).write_text(text)
    if o.markdown:
        (standing / o.markdown).write_text(table(rows))
    return int(any("failed" in row for row in rows))


if __name__ == "__main__":
    sys.exit(main())
