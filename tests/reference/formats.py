#!/usr/bin/env python3
"""Values of blocks of every quantised format, by the package gguf: writes formats.json beside this file.

usage: formats.py      (Python with gguf and numpy)
"""

import json
import pathlib

import numpy
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quants

NAMES = "Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS MXFP4 TQ2_0".split()
# Bytes of the binary16 scales of a block, whose exponents are kept small; the exponent of MXFP4 is a byte.
SCALES = {"Q4_1": [0, 2], "Q5_1": [0, 2], "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "MXFP4": [],
          "TQ2_0": [64]}
BLOCKS = 4


def main():
    chance = numpy.random.default_rng(7)
    formats = {}
    for name in NAMES:
        kind = GGMLQuantizationType[name]
        _, size = GGML_QUANT_SIZES[kind]
        blocks = chance.integers(0, 256, (BLOCKS, size), dtype=numpy.uint8)
        for at in SCALES.get(name, [0]):
            blocks[:, at + 1] = blocks[:, at + 1] & 0x83 | 0x28
        if name == "MXFP4":
            blocks[:, 0] = [0, 1, 120, 131]
        values = quants.dequantize(blocks, kind).astype(numpy.float64)
        formats[name] = {"bytes": blocks.tobytes().hex(), "values": [float(f"{x:.9g}") for x in values.reshape(-1)]}
    target = pathlib.Path(__file__).with_name("formats.json")
    lines = ",\n".join(f'"{name}": {json.dumps(row, separators=(",", ":"))}' for name, row in formats.items())
    target.write_text("{\n" + lines + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
