#!/usr/bin/env python3
"""Measures speculative decoding on texts of several kinds: pairs of runs with and without drafts.

usage: speculation.py LAPWING TARGET DRAFTER... [--pairs N] [--tokens N] [--kinds KIND,...]

LAPWING is the program, TARGET a model, and each DRAFTER a value of --draft, with
further options after a space, such as "self:q4_0 --draft-width 2". The runs of a pair follow each
other, in alternating order, so that a change of the machine's speed meets both. Prints a table of medians:
tokens per second without and with drafts, their ratio, tokens per pass, and the accepted share. The ids of both
runs are compared.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

TEXTS = {
    "edited code": "Rewrite this function with type hints and a docstring. Answer with the whole function only.\n\n"
    "def merge_intervals(intervals):\n"
    "    intervals = sorted(intervals, key=lambda interval: interval[0])\n"
    "    merged = []\n"
    "    for interval in intervals:\n"
    "        if not merged or merged[-1][1] < interval[0]:\n"
    "            merged.append(interval)\n"
    "        else:\n"
    "            merged[-1] = (merged[-1][0], max(merged[-1][1], interval[1]))\n"
    "    return merged\n",
    "repeating text": "Repeat the following list four times, exactly:\n"
    "1. Fetch the archive.\n2. Check its hash.\n3. Unpack it into a folder.\n4. Build with two jobs.\n",
    "new code": "Write a Python class for a least-recently-used cache with get and put in constant time, "
    "with a short test.",
    "prose": "Describe a walk through an old harbour town at dawn.",
}


def run(program, model, draft, text, tokens):
    command = [program, "run", "-m", model, "--json", "--temp", "0", "-n", str(tokens), "--draft", *draft.split(), text]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("target")
    parser.add_argument("drafters", nargs="+")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=192)
    parser.add_argument("--kinds", default=",".join(TEXTS))
    args = parser.parse_args()
    print("| text | drafter | without, tok/s | with, tok/s | ratio | tokens per pass | accepted |")
    print("|---|---|---|---|---|---|---|")
    for kind in args.kinds.split(","):
        for drafter in args.drafters:
            speeds, stats = [], None
            for pair in range(args.pairs):
                order = ["none", drafter] if pair % 2 == 0 else [drafter, "none"]
                runs = {one: run(args.program, args.target, one, TEXTS[kind], args.tokens) for one in order}
                if runs["none"]["ids"] != runs[drafter]["ids"]:
                    sys.exit(f"{kind}, {drafter}: the ids differ; this is a bug")
                speeds.append([runs[one]["timings"]["decode_tokens_per_second"] for one in ("none", drafter)])
                stats = runs[drafter]["draft"]
            without, with_drafts = (statistics.median(column) for column in zip(*speeds))
            ratio = statistics.median(b / a for a, b in speeds)
            accepted = stats["accepted"] / stats["drafted"] if stats["drafted"] else 0.0
            name = pathlib.Path(drafter).stem
            print(
                f"| {kind} | {name} | {without:.1f} | {with_drafts:.1f} | {ratio:.2f} | "
                f"{stats['tokens_per_step']:.2f} | {100 * accepted:.0f} % |",
                flush=True,
            )


main()
