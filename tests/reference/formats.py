#!/usr/bin/env python3
"""Values of blocks of every quantised format, by the package gguf: writes formats.json beside this file.

usage: formats.py LIBGGML_BASE      (Python with gguf and numpy)

Formats that the package lacks have the values of llama.cpp's library, which build.sh makes (libggml-base.so).
"""

import ctypes
import json
import pathlib
import sys

import numpy
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quants

NAMES = "Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS MXFP4 TQ2_0 IQ3_S IQ3_XXS IQ2_S IQ2_XS IQ2_XXS IQ1_S IQ1_M TQ1_0 Q1_0 Q2_0 NVFP4".split()
# Bytes of the binary16 scales of a block, whose exponents are kept small; the exponent of MXFP4 is a byte, as are the scales of NVFP4.
SCALES = {"Q4_1": [0, 2], "Q5_1": [0, 2], "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "MXFP4": [],
          "TQ2_0": [64], "TQ1_0": [52], "IQ1_M": [], "NVFP4": []}
BLOCKS = 4
# Bytes and values of blocks of formats that the package lacks.
OF_LIBRARY = {"Q1_0": (18, 128), "Q2_0": (18, 64)}


def of_library(name, blocks, values):
    """Values of blocks by llama.cpp's function."""
    found = numpy.zeros(len(blocks) * values, dtype=numpy.float32)
    function = getattr(ctypes.CDLL(sys.argv[1]), f"dequantize_row_{name.lower()}")
    function(ctypes.c_void_p(blocks.ctypes.data), ctypes.c_void_p(found.ctypes.data), ctypes.c_int64(found.size))
    return found


def main():
    chance = numpy.random.default_rng(7)
    formats = {}
    for name in NAMES:
        size, count = OF_LIBRARY.get(name) or GGML_QUANT_SIZES[GGMLQuantizationType[name]][::-1]
        blocks = chance.integers(0, 256, (BLOCKS, size), dtype=numpy.uint8)
        for at in SCALES.get(name, [0]):
            blocks[:, at + 1] = blocks[:, at + 1] & 0x83 | 0x28
        if name == "MXFP4":
            blocks[:, 0] = [0, 1, 120, 131]
        if name == "NVFP4":
            # None, the smallest, the one that would be NaN, and one with a sign; subnormal ones, and the largest.
            blocks[:2, :4] = [[0, 1, 0x7f, 0xff], [7, 8, 0x85, 0x7e]]
        if name == "IQ1_M":
            # The upper halves of four bytes are its scale.
            blocks[:, 55] = blocks[:, 55] & 0x0f | 0x20
        if name in OF_LIBRARY:
            values = of_library(name, blocks, count)
        else:
            values = quants.dequantize(blocks, GGMLQuantizationType[name])
        values = values.astype(numpy.float64)
        formats[name] = {"bytes": blocks.tobytes().hex(), "values": [float(f"{x:.9g}") for x in values.reshape(-1)]}
    target = pathlib.Path(__file__).with_name("formats.json")
    lines = ",\n".join(f'"{name}": {json.dumps(row, separators=(",", ":"))}' for name, row in formats.items())
    target.write_text("{\n" + lines + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
