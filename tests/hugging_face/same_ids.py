"""Compares the ids of `lapwing tokenize` with those of `tokenizers` and `transformers`, which read what `lapwing export-hf` writes.

usage: same_ids.py LAPWING [--few] FILE.gguf...

Strings are those of tests/reference/tokenizer/strings.json, and random mixtures of them with a fixed seed: 1000 for each file, with
--few 200. A file that `lapwing export-hf` refuses is a failure, unless its name follows --refused. Prints a line for each file.
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["HF_HUB_OFFLINE"] = "1"
import tokenizers
import transformers

HERE = pathlib.Path(__file__).parent
STRINGS = json.loads((HERE / "../reference/tokenizer/strings.json").read_text())
ALPHABETS = [
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "0123456789", " ", " \n\t\r", ".,;:!?'\"()[]{}<>/\\|-_=+*&^%$#@~`", "éüßñçøåœŁşİı", "αβγδεЖждпяшܐאבגاب", "漢字かなカナ한국어ไทยहिन्दी",
    "😀👍🏽\u200d❤\ufe0f🇫🇷🏳", "\u0301\u0300\u0323\u0308\u200b\u200c\ufeff\u00a0\u3000\u2028", "\x00\x01\x7f\x85\ufffd\ufffe\U000f0000", "²½Ⅷ①٣९４",
]


def texts(count: int, controls: list[str]) -> list[str]:
    """The strings, then random mixtures of characters, strings and control tokens."""
    random_ = random.Random(63)
    made = list(STRINGS)
    while len(made) < count:
        parts = []
        for _ in range(random_.randint(1, 12)):
            kind = random_.random()
            if kind < 0.6:
                alphabet = random_.choice(ALPHABETS)
                parts.append("".join(random_.choice(alphabet) for _ in range(random_.choice([1, 1, 2, 3, 5, 8, 13, 40]))))
            elif kind < 0.9:
                parts.append(random_.choice(STRINGS)[:60])
            elif controls:
                parts.append(random_.choice(controls))
        made.append("".join(parts))
    return made if count >= len(STRINGS) else random_.sample(made, count)


def ids_of(lapwing: str, file: str, strings: list[str], *options: str) -> list[list[int]]:
    """The ids of each string by `lapwing tokenize`."""
    command = [lapwing, "tokenize", "--json", "--list", "-m", file, *options, "-"]
    done = subprocess.run(command, input=json.dumps(strings), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["ids"]


def differences(strings: list[str], wanted: list[list[int]], found) -> list[str]:
    """A line for each string with other ids."""
    lines = []
    for string, ids in zip(strings, wanted, strict=True):
        other = list(found(string))
        if other != ids:
            at = next((n for n, pair in enumerate(zip(ids, other)) if pair[0] != pair[1]), min(len(ids), len(other)))
            lines.append(f"{ascii(string)[:300]} at {at}: {other[at:at + 6]} for {ids[at:at + 6]}")
    return lines


def check(lapwing: str, file: str, count: int) -> list[str]:
    """The differences for one file."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([lapwing, "export-hf", "-m", file, folder], capture_output=True, text=True)
        if done.returncode != 0:
            return [f"refused: {done.stderr.strip()}"]
        plain = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
        auto = transformers.AutoTokenizer.from_pretrained(folder)
        added = json.loads(pathlib.Path(folder, "tokenizer.json").read_text())["added_tokens"]
    strings = texts(count, [token["content"] for token in added])
    lines = []
    ways = [
        ((), plain.encode, lambda encoding: encoding.ids, {}),
        ((), auto, lambda encoding: encoding.input_ids, {}),
        (("--no-bos",), auto, lambda encoding: encoding.input_ids, {"add_special_tokens": False}),
    ]
    for options, encode, ids, arguments in ways:
        wanted = ids_of(lapwing, file, strings, *options)
        lines += differences(strings, wanted, lambda text: ids(encode(text, **arguments)))
    return lines


def main() -> None:
    """Checks each file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("lapwing")
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--refused", action="append", default=[])
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    print(f"tokenizers {tokenizers.__version__}, transformers {transformers.__version__}")
    failed = False
    for file in arguments.files:
        began = time.monotonic()
        name = pathlib.Path(file).stem
        lines = check(arguments.lapwing, file, 200 if arguments.few else 1000)
        refused = bool(lines) and lines[0].startswith("refused")
        as_wanted = refused if name in arguments.refused else not lines
        failed |= not as_wanted
        verdict = lines[0] if refused else f"{len(lines)} differ" if lines else "same ids"
        print(f"{name}: {verdict} ({time.monotonic() - began:.1f} s)")
        if not refused:
            print("".join(f"  {line}\n" for line in lines[:8]), end="")
    sys.exit(failed)


if __name__ == "__main__":
    main()
