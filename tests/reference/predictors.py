"""Writes tiny models with predictors, and llama.cpp's logits of these and of the predictors of other tiny models.

usage: WORK/venv/bin/python predictors.py WORK_FOLDER

WORK_FOLDER is that of build.sh. The tokens are those of the model's own reference. A model that gets a predictor is one of the
folder tiny with a layer more, whose tensors have the shapes of its last layer.
"""

import json
import re
import subprocess
import sys
import zlib
from pathlib import Path

import gguf
import numpy as np

from copies import finish, with_a_layer_more

HERE = Path(__file__).parent
STORED = ["qwen35-mtp", "glm4moe", "bailingmoe3", "step35"]
# What the predictor has of its own beside its layer, its norms and its projection.
MADE = {"qwen35moe": [], "qwen3next-split": ["shared_head_norm", "shared_head_head"],
        "deepseek2": ["shared_head_norm", "embed_tokens"]}


def with_predictor(name: str, own: list[str], path: Path) -> None:
    """Writes a tiny model with a layer more."""
    reader = gguf.GGUFReader(HERE / "tiny" / f"{name}.gguf")
    writer, layers = with_a_layer_more(reader, path)
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    tensors = {tensor.name: np.array(tensor.data) for tensor in reader.tensors}
    for old, values in tensors.items():
        writer.add_tensor(old, values)
        layer = re.match(rf"blk\.{layers - 1}\.(.*)", old)
        if layer:
            writer.add_tensor(f"blk.{layers}.{layer[1]}", rng.permutation(values.ravel()).reshape(values.shape))
    width = tensors["token_embd.weight"].shape[1]
    norms = {name: 1 + 0.2 * rng.standard_normal(width) for name in ("enorm", "hnorm", "shared_head_norm")}
    table = tensors["token_embd.weight"]
    tables = {"embed_tokens": rng.permutation(table), "shared_head_head": rng.standard_normal(table.shape)}
    new = {"eh_proj": rng.standard_normal((width, 2 * width)) / np.sqrt(2 * width), **norms, **tables}
    for part, values in new.items():
        if part in own or part in ("eh_proj", "enorm", "hnorm"):
            writer.add_tensor(f"blk.{layers}.nextn.{part}.weight", values.astype(np.float32))
    finish(writer)


def predicted(work: Path, name: str, file: Path) -> dict:
    """Logits of some rows of a model's predictor, and of a second token behind its last row."""
    ids = json.loads((HERE / "tiny" / f"{name}.json").read_text())["ids"]
    command = [str(work / "predictor"), str(file), ",".join(map(str, ids))]
    made = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    positions = [1, 2, 9, 31, 32, len(ids) - 1]
    rows = [made["rows"][position - 1] for position in positions]
    return {"file": str(file.relative_to(HERE)), "ids": ids, "positions": positions, "rows": rows, "then": made["then"]}


def main() -> None:
    """Writes the models, and what llama.cpp makes of them."""
    work, folder = Path(sys.argv[1]), HERE / "predictors"
    folder.mkdir(exist_ok=True)
    for name, own in MADE.items():
        with_predictor(name, own, folder / f"{name}.gguf")
    models = {name: predicted(work, name, HERE / "tiny" / f"{name}.gguf") for name in STORED}
    models |= {name: predicted(work, name, folder / f"{name}.gguf") for name in MADE}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(model, separators=(',', ':'))}" for name, model in models.items())
    (HERE / "predictors.json").write_text("{" + lines + "}\n")


if __name__ == "__main__":
    main()
