#!/usr/bin/env python3
"""Measures a layer that predicts a second token (MTP) as drafter, at acceptances of choice, on a random model.

usage: predictor.py LAPWING MODEL.gguf [--acceptance RATE,...] [--rounds N] [--tokens N] [--requests N] [--prompt N] [--args 'OPTION...']

LAPWING is the program. MODEL is a random model without such a layer, such as the `qwen35` of recurrent.py, whose venv runs this. A copy
gets one more layer, a copy of its last one, with random weights for what such a layer has beside it. With each acceptance, generations with
and without drafts alternate in one engine (`lapwing bench --draft mtp --acceptance RATE`). Prints a table: tokens per second without drafts, the
speed-up, the drafted tokens that were accepted, and tokens per pass.

Then two servers answer the same requests in turns, one without `--draft` and one with `--draft none`: what the default costs where the layer is
next to never right, its prompts included. Prints the seconds of each, and the median of their ratios.

Fails (exit code 1) if drafts cost more than 2 % of the speed at any acceptance, or by default. Run it on an idle machine.
"""

import argparse
import json
import random
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import gguf
import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests/reference"))

from copies import finish, with_a_layer_more  # noqa: E402

from servers import Server  # noqa: E402
from turns import ask_lapwing, wait  # noqa: E402

LEAST = 0.98


def with_predictor(model: Path, path: Path) -> None:
    """Writes the model with a layer more."""
    reader = gguf.GGUFReader(model)
    writer, layers = with_a_layer_more(reader, path)
    for tensor in reader.tensors:
        names = [tensor.name]
        if last := re.match(rf"blk\.{layers - 1}\.(.*)", tensor.name):
            names.append(f"blk.{layers}.{last[1]}")
        for name in names:
            writer.add_tensor(name, tensor.data, raw_dtype=tensor.tensor_type)
    width = next(int(tensor.shape[0]) for tensor in reader.tensors if tensor.name == "token_embd.weight")
    rng = np.random.default_rng(7)
    projection = rng.standard_normal((width, 2 * width), dtype=np.float32) / np.sqrt(2 * width)
    kind = gguf.GGMLQuantizationType.Q8_0
    writer.add_tensor(f"blk.{layers}.nextn.eh_proj.weight", gguf.quants.quantize(projection, kind), raw_dtype=kind)
    for norm in ("enorm", "hnorm", "shared_head_norm"):
        writer.add_tensor(f"blk.{layers}.nextn.{norm}.weight", 1 + 0.1 * rng.standard_normal(width, dtype=np.float32))
    finish(writer)


def measured(args: argparse.Namespace, model: Path, rate: str) -> dict:
    line = [args.program, "bench", "-m", str(model), "-p", "0", "-n", str(args.tokens), "-r", str(args.rounds), "--draft", "mtp",
            "--acceptance", rate, "--json", *shlex.split(args.args)]
    return json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)["results"][0]["draft"]


def served(args: argparse.Namespace, model: Path) -> list[tuple[float, float]]:
    """Seconds of each request by default, and without drafts."""
    line = f"{args.program} serve -m {{model}} --listen 127.0.0.1:{{port}} --log off {args.args}"
    servers = [Server(f"default={line}", model), Server(f"plain={line} --draft none", model)]
    pairs = []
    try:
        for server in servers:
            wait(ask_lapwing, server)
        for number in range(args.requests):
            ids = random.Random(number).choices(range(100, 32000), k=args.prompt)
            seconds = {}
            for server in servers[:: 1 if number % 2 == 0 else -1]:
                begin = time.perf_counter()
                ask_lapwing(server, ids, args.tokens)
                seconds[server.name] = time.perf_counter() - begin
            pairs.append((seconds["default"], seconds["plain"]))
    finally:
        for server in servers:
            server.stop()
    return pairs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="LAPWING")
    parser.add_argument("model", type=Path, metavar="MODEL.gguf")
    parser.add_argument("--acceptance", default="0,0.2,0.6,0.8,0.9,1")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--requests", type=int, default=20, help="requests to the servers (default: 20)")
    parser.add_argument("--prompt", type=int, default=600, help="tokens of their prompts (default: 600)")
    parser.add_argument("--args", default="", help="more options of `lapwing bench` and `lapwing serve`")
    args = parser.parse_args()
    wrong = []
    rates = [rate for rate in args.acceptance.split(",") if rate]
    if rates:
        print("| acceptance | tokens/s without | speed-up | accepted of drafted | tokens per pass |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / f"{args.model.stem}-mtp.gguf"
        with_predictor(args.model, model)
        for rate in rates:
            draft = measured(args, model, rate)
            gain = draft["speed_up"]["median"]
            print(f"| {rate} | {draft['without']['median']:.1f} | {gain:.2f} ({draft['speed_up']['min']:.2f} to {draft['speed_up']['max']:.2f}) "
                  f"| {draft['accepted']} of {draft['drafted']} | {draft['tokens_per_step']:.2f} |", flush=True)
            if gain < LEAST:
                wrong.append(f"acceptance {rate}: {gain:.2f} times the speed without drafts")
        if pairs := served(args, model):
            default, plain = (sum(pair[which] for pair in pairs) for which in (0, 1))
            gain = statistics.median(pair[1] / pair[0] for pair in pairs)
            print(f"{len(pairs)} requests: {default:.1f} s by default, {plain:.1f} s without drafts; median of the speed-ups {gain:.3f}")
            if gain < LEAST:
                wrong.append(f"by default: {gain:.3f} times the speed without drafts")
    for line in wrong:
        print(f"NOT KEPT: {line}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
