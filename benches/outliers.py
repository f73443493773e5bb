#!/usr/bin/env python3
"""Measures int8 activations with fixed scales on the software NPU, with and without outliers on the CPU:
perplexity, share of outliers, and the time of a prompt.

usage: outliers.py LAPWING MODEL CALIBRATION TEXTFILE [--clips SHARE,...] [--prunes SHARE,...] [--at SHARE]
                   [--ctx N] [--tokens N] [--rounds N] [--args 'OPTION...']

LAPWING is the program, MODEL a file with quantised matrices (or --args '--requant int8:row'). The ranges are measured
on CALIBRATION, the perplexity of TEXTFILE. The array is emulated by one CPU thread and is not throttled: times are
those of the emulation, by the CPU's kernels, and outliers take a second thread. Times are medians over rounds; each
round measures every form once. Prints a table.
"""

import argparse
import json
import shlex
import statistics
import subprocess

# So fast that the emulation is never held back.
ARRAY = "npu=systolic:gflops=100000,gbps=100000,submit=0,idle-submit=0,sync=0,prepare=0,prepare-gweight=0"


def lapwing(args, command, more):
    line = [args.program, command, "-m", args.model, "--json"] + shlex.split(args.args) + more
    return json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)


def devices(keys):
    if keys is None:
        return []
    return ["--device", f"cpu=cores:threads=1+{ARRAY}{keys}", "--strategy", "chunk-graph"]


def forms(args):
    """Name, keys of the device (None: the CPU alone), and further options of each form."""
    yield "f32, on the CPU", None, ["--exact", "-t", "1"]
    yield "int8 in blocks of 32, dynamic", "", []
    for clip in ["1"] + args.clips.split(","):
        yield f"int8, clip {clip}, limited", f",activations=int8,outliers=none,clip={clip}", []
    for clip in args.clips.split(","):
        yield f"int8, clip {clip}, outliers on the CPU", f",activations=int8,clip={clip}", []
    for prune in args.prunes.split(","):
        keys = f",activations=int8,clip={args.at},prune={prune}"
        yield f"int8, clip {args.at}, outliers on the CPU, {prune} pruned", keys, []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("calibration")
    parser.add_argument("text")
    parser.add_argument("--clips", default="0.9999,0.999,0.99")
    parser.add_argument("--prunes", default="0.5,0.85,0.95,1")
    parser.add_argument("--at", default="0.999")
    parser.add_argument("--ctx", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--args", default="")
    args = parser.parse_args()
    lapwing(args, "ranges", [args.calibration])
    all_forms = list(forms(args))
    loss = {}
    for name, keys, more in all_forms:
        report = lapwing(args, "perplexity", devices(keys) + more + ["-c", str(args.ctx), args.text])
        loss[name] = (report["perplexity"], next(iter(report["outliers"]), None))
    times = {name: [] for name, _, _ in all_forms}
    for _ in range(args.rounds):
        for name, keys, more in all_forms:
            short = ["-p", str(args.tokens), "-n", "1", "-r", "1"]
            report = lapwing(args, "bench", devices(keys) + more + short)
            rate = report["results"][0]["tokens_per_second"]["median"]
            times[name].append(args.tokens / rate * 1000)
    print("| activations | perplexity | outliers | products with any | channels of each | prompt, ms |")
    print("|---|---|---|---|---|---|")
    for name, _, _ in all_forms:
        perplexity, found = loss[name]
        cells = ["", "", ""]
        if found and found["shadowed"]:
            share = found["shadowed"] / found["products"]
            channels = found["columns"] / found["shadowed"]
            cells = [f"{found['share'] * 100:.3f} %", f"{share * 100:.0f} %", f"{channels:.1f}"]
        ms = statistics.median(times[name])
        print(f"| {name} | {perplexity:.3f} | {' | '.join(cells)} | {ms:.0f} |", flush=True)


if __name__ == "__main__":
    main()
