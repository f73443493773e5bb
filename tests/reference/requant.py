#!/usr/bin/env python3
"""Errors of llama.cpp's quantisers without an importance matrix: writes requant.json beside this file.

usage: requant.py LIBGGML_BASE      (Python with numpy)

For each kind of row and each format, the root mean square of the errors over that of the values.
"""

import ctypes
import json
import pathlib
import sys

import numpy

# Number, values and bytes of a block.
FORMATS = {"Q5_0": (6, 32, 22), "Q5_1": (7, 32, 24), "Q2_K": (10, 256, 84), "Q3_K": (11, 256, 110), "Q4_K": (12, 256, 144),
           "Q5_K": (13, 256, 176), "Q6_K": (14, 256, 210), "IQ4_NL": (20, 32, 18), "IQ4_XS": (23, 256, 136), "MXFP4": (39, 32, 17)}
ROWS, COLUMNS = 8, 4096


class Chance:
    """Sums of twelve uniform integers, which are nearly normal, by a rule that the test has too."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def normal(self) -> float:
        total = 0
        for _ in range(12):
            self.state = (self.state * 1664525 + 1013904223) % 2**32
            total += self.state >> 16
        return (total - 393210) / 65536


def kinds() -> dict[str, list[float]]:
    """Values of each kind of row: normal, with heavy tails, and with some columns of larger values."""
    chance, count = Chance(7), ROWS * COLUMNS
    return {
        "normal": [chance.normal() for _ in range(count)],
        "heavy": [chance.normal() * chance.normal() for _ in range(count)],
        "columns": [chance.normal() * (8 if i % COLUMNS % 61 == 0 else 1) for i in range(count)],
    }


def main() -> None:
    """Quantises and dequantises all rows."""
    library = ctypes.CDLL(sys.argv[1])
    library.ggml_quantize_chunk.restype = ctypes.c_size_t
    errors = {}
    for kind, values in kinds().items():
        x = numpy.array(values, dtype=numpy.float32)
        errors[kind] = {}
        for name, (number, length, size) in FORMATS.items():
            stored = numpy.zeros(len(x) // length * size, dtype=numpy.uint8)
            found = numpy.zeros_like(x)
            pointers = [ctypes.c_void_p(array.ctypes.data) for array in (x, stored, found)]
            numbers = [ctypes.c_int64(n) for n in (0, ROWS, COLUMNS)]
            library.ggml_quantize_chunk(ctypes.c_int(number), pointers[0], pointers[1], *numbers, ctypes.c_void_p())
            dequantize = getattr(library, f"dequantize_row_{name.lower().replace('_k', '_K')}")
            dequantize(pointers[1], pointers[2], ctypes.c_int64(len(x)))
            wide = x.astype(numpy.float64)
            error = numpy.sqrt(((found - wide) ** 2).sum() / (wide ** 2).sum())
            errors[kind][name] = float(f"{error:.6g}")
    target = pathlib.Path(__file__).with_name("requant.json")
    target.write_text(json.dumps(errors, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
