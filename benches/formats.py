#!/usr/bin/env python3
"""Compares the speed and the values of every weight format with llama.cpp's, on random models of width 2048.

usage: formats.py LAPWING WORK FOLDER [--only FORMAT,...] [--layers N] [--rounds N] [--no-values]

LAPWING is the program, WORK the folder of tests/reference/build.sh, whose venv runs this, and FOLDER is for models. All matrices of
a model are in one format: rows of 2048 are a multiple of every block, so that none falls back to another. One layer is quantised by
llama-quantize and repeated.

Speeds: a prompt of 512 tokens and 64 generated ones, alternating with llama.cpp, and decode as a share of only reading the weights.
Values: the five best log-probabilities of 16 greedy tokens with `--exact`, against llama.cpp on the same weights in F32. Prints a
table. Fails (exit code 1) if values differ, if Q2_K, Q3_K, IQ4_NL, IQ4_XS, MXFP4 or NVFP4 have less than 0.9 of the share of Q4_K or less
than twice llama.cpp's prefill, or if IQ3 and IQ2 formats have less than 1.3 times llama.cpp's decode. Run it on an idle machine.
"""

import argparse
import json
import random
import subprocess
import sys
from pathlib import Path

REFERENCE = Path(__file__).resolve().parent.parent / "tests/reference"
sys.path.insert(0, str(REFERENCE))

import gguf  # noqa: E402
import numpy as np  # noqa: E402

import architectures  # noqa: E402
import tiny_models  # noqa: E402
from copies import begun, finish  # noqa: E402

WIDE = tiny_models.Model("wide", "llama", width=2048, hidden=5632, heads=32, heads_kv=8, head_width=64)
FAST = ["Q2_K", "Q3_K", "IQ4_NL", "IQ4_XS", "MXFP4", "NVFP4"]
SHARE_OF_Q4_K, PREFILL, DECODE = 0.9, 2.0, 1.3
# Layers of the models whose values are compared: in F32 they take 180 MB each.
FEW_LAYERS = 2


def quantised_layer(work: Path, folder: Path, name: str, tensors: dict[str, np.ndarray]) -> Path:
    """A model of one layer in this format."""
    target = folder / f"one-{name}.gguf"
    if name == "MXFP4":
        # llama-quantize makes it only of the experts of a mixture.
        tiny_models.write_model(WIDE, tensors, target, kind=gguf.GGMLQuantizationType[name])
        return target
    source = folder / "one.gguf"
    if not source.exists():
        tiny_models.write_model(WIDE, tensors, source)
    options = ["--pure"]
    if name == "NVFP4":
        # llama-quantize has no name for a whole file in it.
        options += ["--tensor-type", "weight=nvfp4", "--token-embedding-type", "nvfp4"]
    if name in tiny_models.BY_IMPORTANCE:
        options += ["--imatrix", str(importance(folder, tensors))]
    command = [str(work / "llama.cpp/build/bin/llama-quantize"), *options, str(source), str(target)]
    subprocess.run([*command, tiny_models.QUANTIZE_NAMES.get(name, name), "2"], check=True, capture_output=True)
    return target


def importance(folder: Path, tensors: dict[str, np.ndarray]) -> Path:
    """A file that says that all columns of all matrices are equally important."""
    path = folder / "importance.dat"
    if not path.exists():
        tiny_models.write_importance(path, tensors)
    return path


def repeated(source: Path, target: Path, layers: int) -> Path:
    """The model with its layers in turn, as many as these."""
    reader = gguf.GGUFReader(source)
    architecture = str(reader.fields["general.architecture"].contents())
    period = int(reader.fields[f"{architecture}.block_count"].contents())
    changed = {"block_count": layers, "context_length": 4096}
    writer = begun(reader, target, lambda name, value: changed.get(name.rsplit(".", 1)[-1], value))
    for tensor in reader.tensors:
        names = [tensor.name]
        if tensor.name.startswith("blk."):
            _, first, rest = tensor.name.split(".", 2)
            names = [f"blk.{layer}.{rest}" for layer in range(int(first), layers, period)]
        for name in names:
            writer.add_tensor(name, tensor.data, raw_dtype=tensor.tensor_type)
    finish(writer)
    return target


def values(args: argparse.Namespace, one: Path, folder: Path) -> str:
    """What differs from llama.cpp on the same weights in F32; empty if nothing does."""
    few, exact = repeated(one, folder / "few.gguf", FEW_LAYERS), folder / "few-f32.gguf"
    command = [str(args.work / "llama.cpp/build/bin/llama-quantize"), "--allow-requantize", str(few), str(exact), "F32", "2"]
    subprocess.run(command, check=True, capture_output=True)
    dice = random.Random(one.name)
    prompt = [dice.randrange(len(tiny_models.vocabulary()[0])) for _ in range(17)]
    server = architectures.Server(args.program, few, [])
    try:
        return architectures.compare(server, str(args.work / "reference"), exact, prompt)
    finally:
        server.stop()
        few.unlink()
        exact.unlink()


def speeds(args: argparse.Namespace, model: Path) -> dict[str, float]:
    """Ratios to llama.cpp of the prompt and of decode, and the share of reading that decode has in either."""
    peer = f"llama.cpp={args.work / 'llama.cpp/build/bin/llama-bench'}"
    line = [args.program, "bench", "-m", str(model), "-t", "2", "-p", "512", "-n", "64", "-r", str(args.rounds)]
    report = json.loads(subprocess.run([*line, "--vs", peer, "--reading", "--json"], check=True, capture_output=True, text=True).stdout)
    found = {ratio["what"]: ratio["of_pairs"]["median"] for ratio in report["ratios"]}
    shares = {ratio["engine"]: ratio["of_pairs"]["median"] for ratio in report["by_reading"] if ratio["what"] == "tg64"}
    own = {result["test"]: result["tokens_per_second"]["median"] for result in report["engines"][0]["results"]}
    return {"pp": found["pp512"], "tg": found["tg64"], "share": shares["lapwing"], "theirs": shares["llama.cpp"],
            "tokens": own["tg64"], "prompt": own["pp512"]}


def below(name: str, row: dict[str, float], share_of_q4_k: float | None) -> list[str]:
    """The bounds that a format does not keep."""
    wrong = []
    if name in FAST:
        if share_of_q4_k is not None and row["share"] < SHARE_OF_Q4_K * share_of_q4_k:
            wrong.append(f"{name}: decode has {row['share'] / share_of_q4_k:.2f} of the share of Q4_K")
        if row["pp"] < PREFILL:
            wrong.append(f"{name}: prefill is {row['pp']:.2f} x llama.cpp's")
    if name.startswith(("IQ3", "IQ2")) and row["tg"] < DECODE:
        wrong.append(f"{name}: decode is {row['tg']:.2f} x llama.cpp's")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("work", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-values", action="store_true")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    # Q4_K first: others are compared with it.
    names = sorted(args.only.split(",") if args.only else tiny_models.FORMATS, key=lambda name: name != "Q4_K")
    tensors = tiny_models.random_tensors(WIDE)
    share, wrong = None, []
    columns = ["format", "prefill / llama.cpp", "decode / llama.cpp", "decode, share of reading", "llama.cpp's", "tokens/s",
               "prompt tokens/s", "values"]
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|", flush=True)
    for name in names:
        one = quantised_layer(args.work, args.folder, name, tensors)
        different = "" if args.no_values else values(args, one, args.folder)
        model = repeated(one, args.folder / f"{name}.gguf", args.layers)
        row = speeds(args, model)
        share = row["share"] if name == "Q4_K" else share
        wrong += below(name, row, share) + ([f"{name}: {different}"] if different else [])
        print(f"| {name} | {row['pp']:.2f} | {row['tg']:.2f} | {row['share']:.2f} | {row['theirs']:.2f} | {row['tokens']:.1f} | "
              f"{row['prompt']:.0f} | {'not compared' if args.no_values else different or 'equal'} |", flush=True)
        one.unlink()
        model.unlink()
    for line in wrong:
        print(f"NOT KEPT: {line}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
