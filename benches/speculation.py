#!/usr/bin/env python3
"""Measures speculative decoding on texts of several kinds: pairs of runs with and without drafts.

usage: speculation.py LAPWING TARGET DRAFTER... [--pairs N] [--tokens N] [--kinds KIND,...] [--serve]
       [--llama-server PROGRAM --gguf FILE [--spec=OPTIONS]...]

LAPWING is the program, TARGET a model, and each DRAFTER a value of --draft, with
further options after a space, such as "self:q4_0 --draft-width 2". The runs of a pair follow each
other, in alternating order, so that a change of the machine's speed meets both. Prints a table of medians:
tokens per second without and with drafts, their ratio, tokens per pass, and the accepted share. The ids of both
runs are compared.

A run is a process of its own. With --serve, it is a request to `lapwing serve` instead, one server without drafts and one
for each drafter: a drafter then remembers the answers to earlier requests, also to the same text. Tokens per pass are those that a
draft adds, and the texts of both answers are compared.

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


class Server:
    """A server with the chat interface of llama.cpp's, such as `lapwing serve`. `address` makes its options."""

    def __init__(self, command, address):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        command = [*command, *address(port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(300):
            if self.process.poll() is not None:
                sys.exit(f"{' '.join(command)} ended with {self.process.returncode}")
            try:
                urllib.request.urlopen(self.url + "/health").close()
                return
            except OSError:
                time.sleep(0.2)
        self.process.kill()
        sys.exit(f"{' '.join(command)} does not answer")

    def answer(self, text, tokens):
        body = {"messages": [{"role": "user", "content": text}], "temperature": 0, "max_tokens": tokens, "cache_prompt": False}
        request = urllib.request.Request(
            self.url + "/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request) as response:
            return json.load(response)

    def timings(self, text, tokens):
        return self.answer(text, tokens)["timings"]

    def run(self, text, tokens):
        """An answer in the form of `lapwing run --json`."""
        answer = self.answer(text, tokens)
        timings = answer["timings"]
        drafted, accepted = timings.get("draft_n", 0), timings.get("draft_n_accepted", 0)
        steps = timings["predicted_n"] - accepted
        return {
            "ids": answer["choices"][0]["message"]["content"],
            "timings": {"decode_tokens_per_second": timings["predicted_per_second"]},
            "draft": {"accepted": accepted, "drafted": drafted, "tokens_per_step": timings["predicted_n"] / max(steps, 1)},
        }


def llama_server(program, gguf, options):
    command = [program, "-m", gguf, "-np", "1", "-c", "4096", *options.split()]
    return Server(command, lambda port: ["--port", str(port)])


def lapwing_server(program, model, draft):
    command = [program, "serve", "-m", model, "--preload", "--ctx", "4096", "--log", "off", "--draft", *draft.split()]
    return Server(command, lambda port: ["--listen", f"127.0.0.1:{port}"])


def row(kind, name, speeds, per_pass, accepted):
    without, with_drafts = (statistics.median(column) for column in zip(*speeds))
    ratio = statistics.median(b / a for a, b in speeds)
    print(
        f"| {kind} | {name} | {without:.1f} | {with_drafts:.1f} | {ratio:.2f} | {per_pass} | {100 * accepted:.0f} % |",
        flush=True,
    )


def measure(args, kind, drafter, own, servers):
    """The pairs of a drafter, and of llama.cpp's servers after each. `own` has Lapwing's servers, if they are used."""

    def run_with(draft):
        if own:
            return own[draft].run(TEXTS[kind], args.tokens)
        return run(args.program, args.target, draft, TEXTS[kind], args.tokens)

    speeds, stats, others = [], None, {options: [] for options in args.spec}
    for pair in range(args.pairs):
        order = ["none", drafter] if pair % 2 == 0 else [drafter, "none"]
        runs = {one: run_with(one) for one in order}
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
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--llama-server")
    parser.add_argument("--gguf")
    parser.add_argument("--spec", action="append", default=[])
    args = parser.parse_args()
    own, servers = {}, {}
    print("| text | drafter | without, tok/s | with, tok/s | ratio | tokens per pass | accepted |")
    print("|---|---|---|---|---|---|---|")
    try:
        for draft in ["none", *args.drafters] if args.serve else []:
            own[draft] = lapwing_server(args.program, args.target, draft)
        for options in ["", *args.spec] if args.llama_server else []:
            servers[options] = llama_server(args.llama_server, args.gguf, options)
        for kind in args.kinds.split(","):
            for drafter in args.drafters:
                measure(args, kind, drafter, own, servers)
    finally:
        for server in [*own.values(), *servers.values()]:
            server.process.kill()


main()
