"""Prints llama.cpp's ids of strings under every value of `tokenizer.ggml.pre`, as JSON: tokenizer/word_rules.json.

usage: python3 word_rules.py WORK > tokenizer/word_rules.json    (after build.sh WORK)

Few of these rules have a vocabulary file of their own, so a file with other rules is given their name. README.md beside this
file says what the fields mean, and which strings are left out.
"""

import json
import re
import struct
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path

HERE = Path(__file__).parent
STRING, ARRAY = 8, 9
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
# Rules for text with U+2581 for spaces: they need a vocabulary with such tokens.
PIECES = ["gemma4", "granite-embed-multi-311m", "mmbert", "sarvam-moe"]
# Parts of the vocabulary for all others. Tokens without a merge show which rules take words whole.
TOKENS, MERGES = 8000, 4000
# A tokenizer model of its own, which splits at spaces only.
UNSUPPORTED = ["whitespace"]


def text(value: str) -> bytes:
    """A string of GGUF."""
    return struct.pack("<Q", len(value.encode())) + value.encode()


def end_of(data: bytes, at: int, kind: int) -> int:
    """Where a value of GGUF ends."""
    if kind == STRING:
        return at + 8 + struct.unpack_from("<Q", data, at)[0]
    if kind != ARRAY:
        return at + SIZES[kind]
    kind, count = struct.unpack_from("<IQ", data, at)
    at += 12
    if kind in SIZES:
        return at + SIZES[kind] * count
    for _ in range(count):
        at = end_of(data, at, kind)
    return at


def relabelled(path: Path, labels: dict[str, str], shorter: dict[str, int]) -> bytes:
    """A vocabulary file with other values of some keys, and only the first values of some arrays."""
    data = path.read_bytes()
    _, version, tensors, count = struct.unpack_from("<IIQQ", data)
    assert tensors == 0, path
    at, keys = 24, []
    for _ in range(count):
        start, length = at, struct.unpack_from("<Q", data, at)[0]
        key = data[at + 8 : at + 8 + length].decode()
        kind = struct.unpack_from("<I", data, at + 8 + length)[0]
        value = at + 12 + length
        at = end_of(data, value, kind)
        if key in shorter:
            element, end = struct.unpack_from("<I", data, value)[0], value + 12
            for _ in range(shorter[key]):
                end = end_of(data, end, element)
            array = struct.pack("<IQ", element, shorter[key]) + data[value + 12 : end]
            keys.append(data[start:value] + array)
        elif key not in labels:
            keys.append(data[start:at])
    keys += [text(key) + struct.pack("<I", STRING) + text(value) for key, value in labels.items()]
    return data[:4] + struct.pack("<IQQ", version, 0, len(keys)) + b"".join(keys)


def category(char: str) -> str:
    return unicodedata.category(char)


def has_cased(string: str) -> bool:
    """Has letters with case that are not ASCII: llama.cpp takes them for both capitals and small letters."""
    return any(ord(char) > 127 and category(char) in ("Lu", "Ll", "Lt") for char in string)


def has_marks(string: str) -> bool:
    """Has marks, which llama.cpp does not take for letters."""
    return any(category(char)[0] == "M" for char in string)


def has_later_capital(string: str) -> bool:
    """Has a capital behind a small letter of the same word, which llama.cpp does not split."""
    small = False
    for char in string:
        kind = category(char)
        if kind in ("Lu", "Lt") and small:
            return True
        small = kind == "Ll" or (small and kind[0] in "LM")
    return False


def has_spaces_before_digits(string: str) -> bool:
    """Has white space before a digit that llama.cpp does not split off as a whole."""
    return re.search(r"\s\s\d", string) is not None


def has_other_numbers(string: str) -> bool:
    """Has numbers that are no decimal digits, or digits before a letter: llama.cpp takes them for decimal numbers."""
    other = any(category(char) in ("Nl", "No") for char in string)
    return other or re.search(r"\d\w", re.sub(r"\d+", "0", string)) is not None


def has_other_digits(string: str) -> bool:
    """Has decimal digits that are not ASCII, which llama.cpp does not take for digits."""
    return any(ord(char) > 127 and category(char) == "Nd" for char in string)


def has_high_characters(string: str) -> bool:
    """Has characters that llama.cpp takes for Han, as it writes U+8C48 for U+F900."""
    return any("\ua000" <= char < "\uf900" for char in string)


# Where llama.cpp departs from the tokenizers' own rules.
CASED = [has_cased, has_marks]
DEPARTS = {
    "tekken": CASED,
    "gpt-4o": CASED,
    "llama4": CASED,
    "kanana2": CASED,
    "talkie": CASED,
    "minimax-m2": CASED,
    "granite-embed-multi-97m": [has_cased],
    "youtu": [has_later_capital],
    "kimi-k2": [has_later_capital, has_marks],
    "tiny_aya": [has_later_capital, has_spaces_before_digits, has_other_numbers],
    "cohere2moe": [has_later_capital, has_spaces_before_digits, has_other_numbers],
    "superbpe": [has_other_digits],
    "afmoe": [has_spaces_before_digits, has_high_characters],
}


def names(work: Path) -> list[str]:
    """Every value that llama.cpp knows."""
    source = (work / "llama.cpp/src/llama-vocab.cpp").read_text()
    found = dict.fromkeys(re.findall(r'tokenizer_pre == "([^"]+)"', source))
    return [name for name in found if name not in UNSUPPORTED]


def ids(work: Path, name: str) -> tuple[bool, list[list[int]]]:
    """Whether a begin token is added under these rules, and the ids of all strings without it."""
    base, shorter = "gemma-4", {}
    if name not in PIECES:
        base = "llama-bpe"
        shorter = {"tokenizer.ggml.tokens": TOKENS, "tokenizer.ggml.merges": MERGES}
    vocabulary = work / f"llama.cpp/models/ggml-vocab-{base}.gguf"
    labels = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": name}
    with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
        file.write(relabelled(vocabulary, labels, shorter))
        file.flush()
        command = [work / "reference", "tokenize", file.name, HERE / "tokenizer/strings.json"]
        found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    begin = [found["bos"]] if found["add_bos"] else []
    rows = [row["plain"] for row in found["ids"]]
    assert all(row[: len(begin)] == begin for row in rows), name
    return bool(begin), [row[len(begin) :] for row in rows]


def main() -> None:
    work = Path(sys.argv[1])
    strings = json.loads((HERE / "tokenizer/strings.json").read_text())
    default = ids(work, "default")[1]
    pieces = ids(work, PIECES[0])[1]
    groups: dict[str, list[str]] = {}
    for name in names(work):
        begins, found = ids(work, name)
        plain = pieces if name in PIECES else default
        departs = DEPARTS.get(name, [])
        left_out = [i for i, string in enumerate(strings) if any(test(string) for test in departs)]
        differ = {i: row for i, row in enumerate(found) if row != plain[i] and i not in left_out}
        group = {"pieces": name in PIECES, "add_bos": begins, "left_out": left_out, "differ": differ}
        groups.setdefault(json.dumps(group, separators=(",", ":")), []).append(name)
    rules = [f'{{"names":{json.dumps(same)},{group[1:]}' for group, same in groups.items()]
    rows = [json.dumps(row, separators=(",", ":")) for row in default]
    print(f'{{"tokens":{TOKENS},"merges":{MERGES},"default":[\n' + ",\n".join(rows))
    print('],"rules":[\n' + ",\n".join(rules) + "\n]}")


main()
