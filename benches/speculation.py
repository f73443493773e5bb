#!/usr/bin/env python3
"""Measures speculative decoding on texts of several kinds: pairs of runs with and without drafts.

usage: speculation.py LAPWING TARGET DRAFTER... [--pairs N] [--tokens N] [--kinds KIND,...]
       [--llama-server PROGRAM --gguf FILE [--spec=OPTIONS]...]

LAPWING is the program, TARGET a model, and each DRAFTER a value of --draft, with
further options after a space, such as "self:q4_0 --draft-width 2". The runs of a pair follow each
other, in alternating order, so that a change of the machine's speed meets both. Prints a table of medians:
tokens per second without and with drafts, their ratio, tokens per pass, and the accepted share. The ids of both
runs are compared.

With --llama-server, llama.cpp's server generates the same texts from FILE, which is TARGET, once without drafts and
once with each OPTIONS (such as --spec="--spec-type ngram-cache"); its requests follow the runs of each pair, and rows of
llama.cpp follow those of Lapwing. Its prompt cache is off, and speeds are those that it reports.
"""

import argparse
import json
import pathlib
import socket
import statistics
import subprocess
import sys
import time
import urllib.request

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


class LlamaServer:
    """llama.cpp's server with these options."""

    def __init__(self, program, gguf, options):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        command = [program, "-m", gguf, "--port", str(port), "-np", "1", "-c", "4096", *options.split()]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(300):
            if self.process.poll() is not None:
                sys.exit(f"llama-server {options} ended with {self.process.returncode}")
            try:
                urllib.request.urlopen(self.url + "/health").close()
                return
            except OSError:
                time.sleep(0.2)
        sys.exit(f"llama-server {options} does not answer")

    def timings(self, text, tokens):
        body = {"messages": [{"role": "user", "content": text}], "temperature": 0, "max_tokens": tokens, "cache_prompt": False}
        request = urllib.request.Request(
            self.url + "/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request) as response:
            return json.load(response)["timings"]


def row(kind, name, speeds, per_pass, accepted):
    without, with_drafts = (statistics.median(column) for column in zip(*speeds))
    ratio = statistics.median(b / a for a, b in speeds)
    print(
        f"| {kind} | {name} | {without:.1f} | {with_drafts:.1f} | {ratio:.2f} | {per_pass} | {100 * accepted:.0f} % |",
        flush=True,
    )


def measure(args, kind, drafter, servers):
    """The pairs of a drafter, and of llama.cpp's servers after each."""
    speeds, stats, others = [], None, {options: [] for options in args.spec}
    for pair in range(args.pairs):
        order = ["none", drafter] if pair % 2 == 0 else [drafter, "none"]
        runs = {one: run(args.program, args.target, one, TEXTS[kind], args.tokens) for one in order}
        if len(runs["none"]["ids"]) < 2:
            sys.exit(f"{kind}: the model's answer has no second token, so that decoding has no speed; leave it out with --kinds")
        if runs["none"]["ids"] != runs[drafter]["ids"]:
            sys.exit(f"{kind}, {drafter}: the ids differ; this is a bug")
        speeds.append([runs[one]["timings"]["decode_tokens_per_second"] for one in ("none", drafter)])
        stats = runs[drafter]["draft"]
        timings = {options: server.timings(TEXTS[kind], args.tokens) for options, server in servers.items()}
        for options in others:
            others[options].append([timings[""], timings[options]])
    accepted = stats["accepted"] / stats["drafted"] if stats["drafted"] else 0.0
    row(kind, pathlib.Path(drafter).stem, speeds, f"{stats['tokens_per_step']:.2f}", accepted)
    for options, pairs in others.items():
        last = pairs[-1][1]
        drafted = last.get("draft_n", 0)
        accepted = last.get("draft_n_accepted", 0) / drafted if drafted else 0.0
        pairs = [[timings["predicted_per_second"] for timings in pair] for pair in pairs]
        row(kind, f"llama.cpp {options}", pairs, "", accepted)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("target")
    parser.add_argument("drafters", nargs="+")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=192)
    parser.add_argument("--kinds", default=",".join(TEXTS))
    parser.add_argument("--llama-server")
    parser.add_argument("--gguf")
    parser.add_argument("--spec", action="append", default=[])
    args = parser.parse_args()
    servers = {}
    if args.llama_server:
        servers = {options: LlamaServer(args.llama_server, args.gguf, options) for options in ["", *args.spec]}
    print("| text | drafter | without, tok/s | with, tok/s | ratio | tokens per pass | accepted |")
    print("|---|---|---|---|---|---|---|")
    try:
        for kind in args.kinds.split(","):
            for drafter in args.drafters:
                measure(args, kind, drafter, servers)
    finally:
        for server in servers.values():
            server.process.kill()


main()
