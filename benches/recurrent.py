#!/usr/bin/env python3
"""Compares models with recurrent layers with llama.cpp, on random models with the shapes of published ones.

usage: recurrent.py LAPWING WORK FOLDER [--only SHAPE,...] [--rounds N] [--depth N] [--keep]

LAPWING is the program, WORK the folder of tests/reference/build.sh, whose venv runs this, and FOLDER is for models (5 GB). `qwen35` has the shape
of Qwen3.5-0.8B, `granite` 10 layers of that of Granite-4.0-H-Tiny, both in the mix of Q4_K_M, and `lfm2` that of LFM2-1.2B.

Prompts of 128 and 512 tokens and 64 generated ones alternate with llama.cpp's, with an empty context and behind DEPTH tokens. Prints a table.
Fails (exit code 1) if a prompt is computed less than twice as fast as by llama.cpp, or decode is slower than llama.cpp's. Run it on an idle
machine.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests/reference"))

from experts import arguments, compared  # noqa: E402
from families import Tools, own_keys, random_tensor, wanted_shapes, write_gguf  # noqa: E402
from family_list import Family  # noqa: E402

PREFILL, DECODE = 2.0, 1.0
VOCABULARY = 65536
COMMON = {"context_length": 65536, "vocab_size": VOCABULARY, "rope.freq_base": 1e6}


def full(layers: int, period: int, heads: int) -> list[int]:
    """Heads of keys of layers of which the last of each period has attention."""
    return [heads if layer % period == period - 1 else 0 for layer in range(layers)]


SHAPES = {
    "qwen35": Family("qwen35", "qwen35", "", {
        **COMMON, "embedding_length": 1024, "block_count": 24, "feed_forward_length": 3584, "attention.head_count": 8,
        "attention.head_count_kv": 2, "attention.key_length": 256, "attention.value_length": 256, "rope.dimension_count": 64,
        "rope.dimension_sections": [11, 11, 10, 0], "ssm.conv_kernel": 4, "ssm.inner_size": 2048, "ssm.state_size": 128,
        "ssm.time_step_rank": 16, "ssm.group_count": 16}, vocabulary=VOCABULARY),
    "granite": Family("granite", "granitehybrid", "", {
        **COMMON, "embedding_length": 1536, "block_count": 10, "feed_forward_length": 512, "attention.head_count": 12,
        "attention.head_count_kv": full(10, 10, 4), "expert_count": 64, "expert_used_count": 6, "expert_feed_forward_length": 512,
        "expert_shared_feed_forward_length": 1024, "ssm.conv_kernel": 4, "ssm.inner_size": 3072, "ssm.state_size": 128,
        "ssm.time_step_rank": 48, "ssm.group_count": 1, "logit_scale": 6.0, "residual_scale": 0.22, "embedding_scale": 12.0,
        "attention.scale": 0.0078125, "rope.scaling.finetuned": False}, kept=(r"ssm_conv1d\.bias",), vocabulary=VOCABULARY),
    "lfm2": Family("lfm2", "lfm2", "", {
        **COMMON, "embedding_length": 2048, "block_count": 16, "feed_forward_length": 8192, "attention.head_count": 32,
        "attention.head_count_kv": full(16, 3, 8), "shortconv.l_cache": 3}, without=(r"^dense_2",), vocabulary=VOCABULARY),
}


def model(args: argparse.Namespace, name: str) -> Path:
    """The model, which is made if it is not there. Its layers have the same random values."""
    family, target = SHAPES[name], args.folder / f"{name}.gguf"
    if target.exists():
        return target
    whole = args.folder / f"{name}-f16.gguf"
    with tempfile.TemporaryDirectory() as folder:
        shapes, saved = wanted_shapes(family, Tools(args.work), Path(folder))
    made: dict[tuple[str, tuple[int, ...]], np.ndarray] = {}
    tensors = {}
    for tensor, shape in shapes.items():
        key = (tensor.split(".", 2)[-1] if tensor.startswith("blk.") else tensor, tuple(shape))
        if key not in made:
            values = random_tensor(family, tensor, shape)
            made[key] = values.astype(np.float16 if values.ndim > 1 and "conv1d" not in tensor else np.float32)
        tensors[tensor] = made[key]
    write_gguf(whole, family, saved, own_keys(family), tensors)
    quantize = str(args.work / "llama.cpp/build/bin/llama-quantize")
    subprocess.run([quantize, str(whole), str(target), "Q4_K_M", "2"], check=True, capture_output=True)
    whole.unlink()
    return target


def tests(args: argparse.Namespace, path: Path, depth: int) -> list[tuple[str, float, float, float]]:
    """Of each test its name, both speeds, and their ratio."""
    report, speeds = compared(args, path, ["-p", "0" if depth else "128,512", "-d", str(depth)])
    ratios = [(ratio["what"], ratio["of_pairs"]["median"]) for ratio in report["ratios"] if ratio["what"] in speeds[0]]
    return [(what, speeds[0][what], speeds[1][what], ratio) for what, ratio in ratios]


def main() -> None:
    parser = arguments(__doc__, SHAPES)
    parser.add_argument("--depth", type=int, default=4096)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    print("| model | test | tokens/s | llama.cpp's | ratio |\n|---|---|---|---|---|", flush=True)
    wrong = []
    for name in args.only.split(","):
        path = model(args, name)
        for what, own, other, ratio in tests(args, path, 0) + tests(args, path, args.depth):
            print(f"| {name} | {what} | {own:.1f} | {other:.1f} | {ratio:.2f} |", flush=True)
            if ratio < (PREFILL if what.startswith("pp") else DECODE):
                wrong.append(f"{name}: {what} is {ratio:.2f} x llama.cpp's")
        if not args.keep:
            path.unlink()
    for line in wrong:
        print(f"NOT KEPT: {line}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
