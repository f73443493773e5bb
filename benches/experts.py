#!/usr/bin/env python3
"""Compares mixtures of experts with llama.cpp, on random models with the shapes of some layers of published ones.

usage: experts.py LAPWING WORK FOLDER [--only SHAPE,...] [--rounds N] [--keep]
       experts.py --small FILE

LAPWING is the program, WORK the folder of tests/reference/build.sh, whose venv runs this, and FOLDER is for models (8 GB).
`qwen` has 12 layers of Qwen3-30B-A3B in the mix of Q4_K_M (128 experts, 8 for each row), `gpt-oss` 8 layers of gpt-oss-20b with experts in
MXFP4 (32 experts, 4 for each row). Two layers are quantised by llama-quantize and repeated.

Prompts of 128 and 512 tokens and 64 generated ones alternate with llama.cpp's, and so do passes of 4 and 8 rows, such as those that verify
drafts. Decode is also compared with only reading the weights of a row: those of all layers, and of its experts. Then 8 streams decode at
once. Prints a table. Fails (exit code 1) if a prompt is computed less than twice as fast as by llama.cpp, decode, a pass or the streams are slower than
llama.cpp's, or decode has less than 0.85 of the speed of reading. Run it on an idle machine.

The second form only writes a random model for emulated devices (docs/experts.md): a thousandth of the bytes of Qwen3-30B-A3B, in Q4_0.
"""

import argparse
import dataclasses
import json
import statistics
import subprocess
import sys
from pathlib import Path

import gguf
import numpy as np

from formats import repeated

PREFILL, DECODE, SHARE = 2.0, 1.0, 0.85
# Rows of passes that are no prompts.
PASSES = (4, 8)
STREAMS, PROMPT, GENERATED = 8, 128, 64


@dataclasses.dataclass
class Shape:
    """A model with experts in each layer."""

    arch: str
    layers: int
    width: int
    heads: int
    heads_kv: int
    head_width: int
    experts: int
    used: int
    hidden: int
    vocabulary: int
    # What llama-quantize is told: options, and the name of the format.
    options: tuple[str, ...]
    format: str


SHAPES = {
    "qwen": Shape("qwen3moe", 12, 2048, 32, 4, 128, 128, 8, 768, 151936,
                  ("--pure", "--tensor-type", "blk.1.ffn_down_exps=q6_k", "--tensor-type", "blk.1.attn_v=q6_k",
                   "--output-tensor-type", "q6_k"), "Q4_K"),
    "gpt-oss": Shape("gpt-oss", 8, 2880, 64, 8, 64, 32, 4, 2880, 201088, (), "MXFP4_MOE"),
}


SMALL = Shape("qwen3moe", 8, 256, 8, 2, 32, 32, 4, 160, 2048, (), "Q4_0")


def random_layer(shape: Shape, dice: np.random.Generator) -> dict[str, np.ndarray]:
    """The tensors of a layer, with matrices in F16."""

    def matrix(*dims: int) -> np.ndarray:
        return (dice.standard_normal(dims, dtype=np.float32) / np.sqrt(dims[-1])).astype(np.float16)

    def vector(*dims: int) -> np.ndarray:
        return (dice.standard_normal(dims) / 8).astype(np.float32)

    q, kv = shape.heads * shape.head_width, shape.heads_kv * shape.head_width
    width, experts, hidden = shape.width, shape.experts, shape.hidden
    tensors = {
        "attn_q.weight": matrix(q, width), "attn_k.weight": matrix(kv, width), "attn_v.weight": matrix(kv, width),
        "attn_output.weight": matrix(width, q), "attn_norm.weight": np.ones(width, np.float32),
        # Logits of the router differ as much as those of trained ones.
        "ffn_gate_inp.weight": matrix(experts, width).astype(np.float32),
        "ffn_gate_exps.weight": matrix(experts, hidden, width), "ffn_up_exps.weight": matrix(experts, hidden, width),
        "ffn_down_exps.weight": matrix(experts, width, hidden),
    }
    if shape.arch == "qwen3moe":
        norms = {name: np.ones(shape.head_width, np.float32) for name in ("attn_q_norm.weight", "attn_k_norm.weight")}
        return tensors | norms | {"ffn_norm.weight": np.ones(width, np.float32)}
    return tensors | {
        "post_attention_norm.weight": np.ones(width, np.float32), "attn_sinks.weight": vector(shape.heads),
        "attn_q.bias": vector(q), "attn_k.bias": vector(kv), "attn_v.bias": vector(kv), "attn_output.bias": vector(width),
        "ffn_gate_inp.bias": vector(experts), "ffn_gate_exps.bias": vector(experts, hidden),
        "ffn_up_exps.bias": vector(experts, hidden), "ffn_down_exps.bias": vector(experts, width),
    }


def write_layers(shape: Shape, path: Path, layers: int = 2, form: gguf.GGMLQuantizationType | None = None) -> None:
    """A model of layers which have the same values, with matrices in F16 or in another form."""
    dice = np.random.default_rng(1)
    writer = gguf.GGUFWriter(path, shape.arch)

    def add(name: str, values: np.ndarray) -> None:
        if form is None or values.dtype != np.float16:
            writer.add_tensor(name, values)
        else:
            writer.add_tensor(name, gguf.quants.quantize(values.astype(np.float32), form), raw_dtype=form)

    writer.add_context_length(4096)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(shape.hidden)
    writer.add_expert_feed_forward_length(shape.hidden)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.heads_kv)
    writer.add_key_length(shape.head_width)
    writer.add_value_length(shape.head_width)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1e6)
    writer.add_expert_count(shape.experts)
    writer.add_expert_used_count(shape.used)
    if shape.arch == "gpt-oss":
        writer.add_sliding_window(128)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2" if shape.arch == "qwen3moe" else "gpt-4o")
    writer.add_token_list([f"tok_{i}" for i in range(shape.vocabulary)])
    writer.add_token_types([1] * shape.vocabulary)
    writer.add_token_merges(["t o"])
    writer.add_bos_token_id(shape.vocabulary - 2)
    writer.add_eos_token_id(shape.vocabulary - 1)
    table = dice.standard_normal((shape.vocabulary, shape.width), dtype=np.float32).astype(np.float16)
    add("token_embd.weight", table)
    add("output.weight", table)
    add("output_norm.weight", np.ones(shape.width, np.float32))
    layer = random_layer(shape, dice)
    for at in range(layers):
        for name, values in layer.items():
            add(f"blk.{at}.{name}", values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def model(args: argparse.Namespace, name: str) -> Path:
    """The model, which is made if it is not there."""
    shape, target = SHAPES[name], args.folder / f"{name}.gguf"
    if target.exists():
        return target
    whole, few = args.folder / f"{name}-f16.gguf", args.folder / f"{name}-two.gguf"
    write_layers(shape, whole)
    quantize = str(args.work / "llama.cpp/build/bin/llama-quantize")
    subprocess.run([quantize, *shape.options, str(whole), str(few), shape.format, "2"], check=True, capture_output=True)
    whole.unlink()
    repeated(few, target, shape.layers)
    few.unlink()
    return target


def arguments(doc: str, shapes: dict) -> argparse.ArgumentParser:
    """The arguments of a comparison of models of these shapes."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("work", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default=",".join(shapes))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", action="store_true", help="keep the models")
    return parser


def compared(args: argparse.Namespace, path: Path, options: list[str]) -> tuple[dict, list[dict[str, float]]]:
    """The report of `lapwing bench` beside llama.cpp, and the median speeds of both, by test."""
    peer = f"llama.cpp={args.work / 'llama.cpp/build/bin/llama-bench'}"
    line = [args.program, "bench", "-m", str(path), "-t", "2", "-n", "64", "-r", str(args.rounds), *options, "--vs", peer, "--json"]
    report = json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)
    speeds = [{result["test"]: result["tokens_per_second"]["median"] for result in engine["results"]} for engine in report["engines"]]
    return report, speeds


def streams(program: str, path: Path) -> float:
    """Tokens per second of all streams, while all of them decode."""
    line = [program, "load", "-m", str(path), "-t", "2", "--clients", str(STREAMS), "--requests", "1",
            "-p", str(PROMPT), "-n", str(GENERATED), "--json"]
    found = subprocess.run(line, check=True, capture_output=True, text=True)
    return STREAMS / json.loads(found.stdout)["reports"][0]["latencies"]["itl_ms"]["p50"] * 1e3


def streams_of_peer(work: Path, path: Path) -> float:
    """The same of llama.cpp."""
    line = [str(work / "llama.cpp/build/bin/llama-batched-bench"), "-m", str(path), "-t", "2", "-c", str(STREAMS * 256),
            "-npp", str(PROMPT), "-ntg", str(GENERATED), "-npl", str(STREAMS), "--output-format", "jsonl"]
    found = subprocess.run(line, check=True, capture_output=True, text=True)
    return next(json.loads(text)["speed_tg"] for text in found.stdout.splitlines() if text.startswith("{"))


def main() -> None:
    if sys.argv[1:2] == ["--small"]:
        write_layers(SMALL, Path(sys.argv[2]), SMALL.layers, gguf.GGMLQuantizationType.Q4_0)
        return
    args = arguments(__doc__, SHAPES).parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    print("| model | test | tokens/s | llama.cpp's | ratio | share of reading | llama.cpp's |\n|---|---|---|---|---|---|---|", flush=True)
    wrong = []
    for name in args.only.split(","):
        path = model(args, name)
        prompts = ",".join(map(str, (*PASSES, 128, 512)))
        report, speeds = compared(args, path, ["-p", prompts, "--reading"])
        shares = {(ratio["engine"], ratio["what"]): ratio["of_pairs"]["median"] for ratio in report["by_reading"]}
        for ratio in report["ratios"]:
            what, value = ratio["what"], ratio["of_pairs"]["median"]
            if what not in speeds[0]:
                continue
            share = shares.get(("lapwing", what)) if what.startswith("tg") else None
            is_pass = what in [f"pp{rows}" for rows in PASSES]
            least = DECODE if share is not None or is_pass else PREFILL
            cells = [f"{shares[(engine, what)]:.2f}" if share is not None else "" for engine in ("lapwing", "llama.cpp")]
            print(f"| {name} | {what} | {speeds[0][what]:.1f} | {speeds[1][what]:.1f} | {value:.2f} | {' | '.join(cells)} |", flush=True)
            if value < least:
                wrong.append(f"{name}: {what} is {value:.2f} x llama.cpp's")
            if share is not None and share < SHARE:
                wrong.append(f"{name}: {what} has {share:.2f} of the speed of reading")
        pairs = [(streams(args.program, path), streams_of_peer(args.work, path)) for _ in range(args.rounds)]
        own, other = (statistics.median(speeds) for speeds in zip(*pairs))
        ratio = statistics.median(own / other for own, other in pairs)
        print(f"| {name} | {STREAMS} streams | {own:.1f} | {other:.1f} | {ratio:.2f} | | |", flush=True)
        if ratio < DECODE:
            wrong.append(f"{name}: {STREAMS} streams have {ratio:.2f} x llama.cpp's speed")
        if not args.keep:
            path.unlink()
    for line in wrong:
        print(f"NOT KEPT: {line}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
