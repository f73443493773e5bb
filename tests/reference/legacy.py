"""Writes small random models older than GGUF, and the greedy ids of the llama.cpp of their time.

usage: python3 legacy.py OUT_FOLDER REFERENCE_FOLDER

REFERENCE_FOLDER has the programs of legacy.sh. All files have the same weights, rounded to F16, and so
have the scales of their blocks: no value is lost in a conversion.
"""

import json
import math
import random
import struct
import subprocess
import sys
from pathlib import Path

WIDTH, HEADS, LAYERS, MULTIPLE, HIDDEN = 64, 4, 1, 32, 192
BLOCK = 32
TEXT, COUNT = "that cat sat on the mat and ate two of the tin hats", 16
TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q8_0": 8}
FILE_TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q8_0": 7}
# Version, magic number, number of the version, and the program that reads it.
VERSIONS = [
    ("ggml", 0x67676D6C, None, "v1", ["q4_0", "q4_1"]),
    ("ggmf-v1", 0x67676D66, 1, "v1", ["q4_0", "q4_1"]),
    ("ggjt-v1", 0x67676A74, 1, "v1", ["f16", "q4_0", "q4_1", "q8_0"]),
    ("ggjt-v2", 0x67676A74, 2, "v2", ["q4_0", "q4_1", "q8_0"]),
    ("ggjt-v3", 0x67676A74, 3, "v3", ["f32", "q4_0", "q4_1", "q8_0"]),
]


def half(value: float) -> float:
    """Rounds to F16."""
    return struct.unpack("<e", struct.pack("<e", value))[0]


def vocabulary() -> list[tuple[bytes, float]]:
    """Tokens as llama's file has them: no text of the first three, each byte, and pieces with a space."""
    pieces = [b" \xe2\x81\x87 ", b"", b""] + [bytes([byte]) for byte in range(256)]
    pieces += [text.encode() for text in [" ", *"abcdefghijklmnopqrstuvwxyz", " t", "th"]]
    return [(piece, float(-max(0, i - 259))) for i, piece in enumerate(pieces)]


def tensors() -> list[tuple[str, list[int], list[float]]]:
    """Name, shape (columns first) and values of each tensor."""
    rng = random.Random(7)
    vocab = len(vocabulary())

    def matrix(rows: int, columns: int, gain: float) -> tuple[list[int], list[float]]:
        values = [half(rng.gauss(0, gain / math.sqrt(columns))) for _ in range(rows * columns)]
        return [columns, rows], values

    def norm() -> tuple[list[int], list[float]]:
        return [WIDTH], [half(1 + 0.2 * rng.gauss(0, 1)) for _ in range(WIDTH)]

    parts = [
        ("tok_embeddings.weight", matrix(vocab, WIDTH, 2.5)),
        ("norm.weight", norm()),
        ("output.weight", matrix(vocab, WIDTH, 4)),
    ]
    for layer in range(LAYERS):
        parts += [
            (f"layers.{layer}.{name}", part)
            for name, part in [
                ("attention.wq.weight", matrix(WIDTH, WIDTH, 1.5)),
                ("attention.wk.weight", matrix(WIDTH, WIDTH, 1.5)),
                ("attention.wv.weight", matrix(WIDTH, WIDTH, 1)),
                ("attention.wo.weight", matrix(WIDTH, WIDTH, 1)),
                ("attention_norm.weight", norm()),
                ("feed_forward.w1.weight", matrix(HIDDEN, WIDTH, 1)),
                ("feed_forward.w2.weight", matrix(WIDTH, HIDDEN, 1)),
                ("feed_forward.w3.weight", matrix(HIDDEN, WIDTH, 1)),
                ("ffn_norm.weight", norm()),
            ]
        ]
    return [(name, shape, values) for name, (shape, values) in parts]


def nibbles(numbers: list[int], version: str) -> bytes:
    """Two numbers of four bits in each byte, in the order of the version."""
    pairs = version in ("ggml", "ggmf-v1", "ggjt-v1")
    low, high = (numbers[0::2], numbers[1::2]) if pairs else (numbers[:16], numbers[16:])
    return bytes(a | b << 4 for a, b in zip(low, high))


def block(values: list[float], kind: str, version: str) -> bytes:
    """One block of 32 values."""
    scale_code = "<e" if version == "ggjt-v3" else "<f"
    low, high = min(values), max(values)
    largest = max(values, key=abs)
    if kind == "q8_0":
        scale = half(abs(largest) / 127) or 1.0
        numbers = [max(-127, min(127, round(value / scale))) for value in values]
        return struct.pack(scale_code, scale) + struct.pack("32b", *numbers)
    if kind == "q4_0":
        scale = half(largest / -8) or 1.0
        numbers = [max(0, min(15, round(value / scale + 8))) for value in values]
        return struct.pack(scale_code, scale) + nibbles(numbers, version)
    scale, low = half((high - low) / 15) or 1.0, half(low)
    numbers = [max(0, min(15, round((value - low) / scale))) for value in values]
    return struct.pack(scale_code, scale) + struct.pack(scale_code, low) + nibbles(numbers, version)


def data(values: list[float], kind: str, version: str) -> bytes:
    """The data of a tensor."""
    if kind in ("f32", "f16"):
        return struct.pack(f"<{len(values)}{'f' if kind == 'f32' else 'e'}", *values)
    starts = range(0, len(values), BLOCK)
    return b"".join(block(values[at : at + BLOCK], kind, version) for at in starts)


def model(version: str, magic: int, number: int | None, kind: str) -> bytes:
    """A whole file."""
    out = bytearray(struct.pack("<I", magic))
    if number is not None:
        out += struct.pack("<I", number)
    pieces = vocabulary()
    params = [len(pieces), WIDTH, MULTIPLE, HEADS, LAYERS, WIDTH // HEADS, FILE_TYPES[kind]]
    out += struct.pack("<7I", *params)
    for piece, score in pieces:
        out += struct.pack("<I", len(piece)) + piece
        if number is not None:
            out += struct.pack("<f", score)
    for name, shape, values in tensors():
        own = kind if len(shape) == 2 else "f32"
        out += struct.pack(f"<3I{len(shape)}I", len(shape), len(name), TYPES[own], *shape) + name.encode()
        if magic == 0x67676A74:
            out += bytes(-len(out) % 32)
        out += data(values, own, version)
    return bytes(out)


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    out, programs = Path(sys.argv[1]), Path(sys.argv[2]).resolve()
    for version, magic, number, program, kinds in VERSIONS:
        for kind in kinds:
            path = out / f"{version}-{kind}.bin"
            path.write_bytes(model(version, magic, number, kind))
            call = [programs / f"legacy-{program}", path, " " + TEXT, str(COUNT)]
            found = json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout)
            reference = {"file": path.name, "text": TEXT, **found}
            (out / f"{version}-{kind}.json").write_text(json.dumps(reference, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
