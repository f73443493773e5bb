"""Logits of the tiny models with other keys, in double precision, straight from the formulas.

usage: python3 tiny_variants.py > tiny/variants.exact

The files are those of tiny/; `keys` are what a test adds to them. llama.cpp reads these keys, too, but the values are
not its: they have no rounding.
"""

import dataclasses
import json
from pathlib import Path

import tiny_exact
import tiny_models

PATTERN = "attention.sliding_window_pattern"
VARIANTS = [
    ("gemma2", {f"gemma2.{PATTERN}": 3}, {"windowed": (True, True, False, True)}),
    ("gemma2", {f"gemma2.{PATTERN}": 1}, {"windowed": (False,) * 4}),
    ("gemma2", {f"gemma2.{PATTERN}": 0}, {"windowed": (True,) * 4}),
    ("gemma2", {f"gemma2.{PATTERN}": [False, True, True, False]}, {"windowed": (False, True, True, False)}),
    ("gemma2", {"gemma2.rope.freq_base_swa": 500.0}, {"rope_base_window": 500.0}),
    ("gemma3", {f"gemma3.{PATTERN}": 2}, {"windowed": (True, False) * 3 + (True,)}),
    ("gemma3", {f"gemma3.{PATTERN}": [True, False, True, True, False, True, True]},
     {"windowed": (True, False, True, True, False, True, True)}),
    ("gemma3", {"gemma3.rope.freq_base_swa": 500.0}, {"rope_base_window": 500.0}),
]


def main() -> None:
    """Writes all variants as JSON."""
    models = {model.name: model for model in tiny_models.MODELS}
    found = []
    for name, keys, fields in VARIANTS:
        model = dataclasses.replace(models[name], **fields)
        ids = tiny_models.prompt_ids(name)
        rows = tiny_exact.forward(model, Path("tiny") / f"{name}.gguf", ids)[tiny_models.POSITIONS]
        exact = [[float(f"{value:.6g}") for value in row] for row in rows]
        found.append({"file": f"{name}.gguf", "keys": keys, "ids": ids, "positions": tiny_models.POSITIONS, "exact": exact})
    lines = ",\n".join(json.dumps(variant, separators=(",", ":")) for variant in found)
    print(f"[\n{lines}\n]")


if __name__ == "__main__":
    main()
