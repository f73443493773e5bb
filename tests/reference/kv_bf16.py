"""Measures how far keys and values in BF16 move llama.cpp's logits of the models in tiny/, and writes kv_bf16.json beside this file.

usage: python3 kv_bf16.py REFERENCE

REFERENCE is the program of build.sh. With keys and values in BF16, llama.cpp also rounds queries and the weights of the softmax to
BF16, as processors with products of pairs of BF16 do. The distance is the largest from the rows with the least rounding, with flash
attention or without it.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from expert_families import FAMILIES

FOLDER = Path(__file__).resolve().parent
PRECISE = ["--no-flash", "--kv-f32", "--no-repack"]
MICRO_BATCH = {family.name: family.micro_batch for family in FAMILIES}


def logits(name: str, model: dict, options: list[str]) -> np.ndarray:
    lists = [",".join(map(str, model[key])) for key in ("ids", "positions")]
    options = ["--threads", "1", "--context", "256", "--micro-batch", str(MICRO_BATCH.get(name, 512)), *options]
    command = [sys.argv[1], *options, "logits", str(FOLDER / "tiny" / model["file"]), *lists]
    return np.array(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["rows"])


def main() -> None:
    distances = {}
    for path in sorted((FOLDER / "tiny").glob("*.json")):
        model = json.loads(path.read_text())
        precise = logits(path.stem, model, PRECISE)
        rounded = [logits(path.stem, model, ["--kv-bf16", *more]) for more in ([], ["--no-flash"])]
        distances[path.stem] = float(f"{np.abs(np.array(rounded) - precise).max():.3g}")
    lines = ",\n".join(f"{json.dumps(name)}: {distance}" for name, distance in distances.items())
    (FOLDER / "kv_bf16.json").write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()
