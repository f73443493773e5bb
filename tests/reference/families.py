"""Writes small random models of llama.cpp's families, and llama.cpp's logits for them.

usage: python3 families.py OUT_FOLDER WORK_FOLDER [NAME...]

WORK_FOLDER is that of build.sh. With names, only these models are written. LIST.md in the folder gets a paragraph of
each model. A model is not written if one of its tensors or stated keys hardly moves the logits.
"""

import json
import math
import re
import subprocess
import sys
import tempfile
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

import gguf
import numpy as np
from gguf import GGUFValueType as Kind

from expert_families import FAMILIES
from family_list import Family
from tiny_models import round_bits

VOCABULARY = 128
POSITIONS = {40: [0, 7, 8, 23, 39], 72: [0, 7, 8, 31, 32, 63, 64, 71]}
# Tensors that a file may lack and that most files do lack.
OPTIONAL = [r"\.(input_)?scale$", r"^cls\.", r"^output\.bias$", r"attn_(q|k|v|output)\.bias$", r"attn_[qk]_norm\.bias$",
            r"ffn_(gate|up|down)\.bias$", r"ffn\.act\.scales$", r"^rope_f"]
# Architectures that llama.cpp's saver does not write.
UNSAVED = {"apertus", "bitnet", "gemma3n", "step35"}
BASE = {
    "context_length": 256,
    "embedding_length": 32,
    "block_count": 2,
    "feed_forward_length": 48,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
    "attention.layer_norm_epsilon": 1e-5,
    "attention.layer_norm_rms_epsilon": 1e-5,
}
# Keys that only files with the keys of the saver state: others have llama.cpp's defaults.
STATED = {"vocab_size": VOCABULARY, "rope.freq_base": 500.0}
GAINS = {r"^(token|position)_embd\.weight": 2.5, r"attn_[qk]\.weight": 1.5, r"attn_[qk]_norm\.weight": 1.2,
         r"ffn_gate_inp\.weight": 2.0, "exp_probs_b": 0.4}
NEUTRAL_IS_ONE = r"norm(_\d|_exps)?(\.weight)?$|scales?(\.weight)?$"
SETTINGS = {"default": [], "one_by_one": ["--one-by-one"], "precise": ["--no-flash", "--kv-f32", "--no-repack"]}
# What the removal of an op must move a logit by, and a change of settings must not: shares of the standard deviation.
MOVES_LEAST, NOISE_MOST = 0.05, 0.02

Keys = dict[str, object]
Tensors = dict[str, np.ndarray]


@dataclass
class Tools:
    """Programs of a work folder."""

    work: Path

    def shapes(self, keys: Path, saved: Path | None) -> dict[str, list[int]]:
        """The dimensions of the tensors of a model of these keys, columns first."""
        command = [str(self.work / "shapes"), str(keys)] + ([str(saved)] if saved else [])
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return {name: trimmed(dimensions) for name, dimensions in json.loads(printed)}

    def logits(self, model: Path, ids: list[int], positions: list[int], options: list[str]) -> np.ndarray:
        """Rows of logits at these positions."""
        lists = [",".join(map(str, numbers)) for numbers in (ids, positions)]
        options = ["--threads", "1", "--context", "256", *options]
        command = [str(self.work / "reference"), *options, "logits", str(model), *lists]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return np.array(json.loads(re.sub("-?nan|-?inf", "NaN", printed))["rows"])


def trimmed(dimensions: list[int]) -> list[int]:
    """Without the last dimensions of 1, but with one dimension at least."""
    while len(dimensions) > 1 and dimensions[-1] == 1:
        dimensions = dimensions[:-1]
    return dimensions


def matches(name: str, patterns) -> bool:
    """Whether one of the patterns is found in the name."""
    return any(re.search(pattern, name) for pattern in patterns)


def own_keys(family: Family, **more: object) -> Keys:
    """The keys that the table states, without those that are None."""
    keys = {**BASE, **({} if family.bare else STATED), **family.keys, **more}
    prefixed = {key if re.match("general|tokenizer|xielu", key) else f"{family.arch}.{key}": value
                for key, value in keys.items()}
    return {key: value for key, value in prefixed.items() if value is not None}


def kind_of(value: object) -> Kind:
    """How a key of that value is stored; lists of integers have signs, as converters write them."""
    if isinstance(value, list):
        return Kind.INT32 if type(value[0]) is int else kind_of(value[0])
    return {bool: Kind.BOOL, int: Kind.UINT32, float: Kind.FLOAT32, str: Kind.STRING}[type(value)]


def write_gguf(path: Path, family: Family, saved: list[gguf.ReaderField], keys: Keys, tensors: Tensors) -> None:
    """Writes a file with the saved keys, if they have no other value."""
    writer = gguf.GGUFWriter(path, family.arch)
    writer.add_name("tiny random model")  # llama.cpp wants certain tokens of files whose names contain those of some models
    for field in saved:
        if field.name not in keys:
            item = field.types[-1] if field.types[0] == Kind.ARRAY else None
            writer.add_key_value(field.name, field.contents(), field.types[0], item)
    for key, value in keys.items():
        is_array = isinstance(value, list)
        writer.add_key_value(key, value, *([Kind.ARRAY, kind_of(value)] if is_array else [kind_of(value)]))
    writer.add_tokenizer_model("test")
    writer.add_token_list([f"tok_{i}" for i in range(family.vocabulary)])
    writer.add_token_scores([0.0] * family.vocabulary)
    for name, values in tensors.items():
        half = matches(name, family.halves)
        writer.add_tensor(name, values.astype(np.float16 if half else np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def saved_keys(path: Path) -> list[gguf.ReaderField]:
    """Keys of a file that are not of its container or vocabulary, nor empty."""
    fields = gguf.GGUFReader(path).fields.values()
    own = ("GGUF.", "general.", "tokenizer.")
    return [field for field in fields if not field.name.startswith(own) and field.contents() not in ([], None)]


def wanted_shapes(family: Family, tools: Tools, folder: Path) -> tuple[dict[str, list[int]], list[gguf.ReaderField]]:
    """The tensors that the file gets, and the keys that llama.cpp's saver gives to this model."""
    keys, saved = folder / "keys.gguf", folder / "saved.gguf"
    write_gguf(keys, family, [], own_keys(family, **family.asked), {})
    with_saved = not family.bare and family.arch not in UNSAVED
    shapes = tools.shapes(keys, saved if with_saved else None)
    kept = {name: shape for name, shape in shapes.items()
            if not matches(name, family.without) and (matches(name, family.kept) or not matches(name, OPTIONAL))}
    return {**kept, **family.more}, saved_keys(saved) if with_saved else []


def random_tensor(family: Family, name: str, shape: list[int]) -> np.ndarray:
    """Values that depend on nothing but the names of model and tensor, and the model's seed."""
    if name in family.values:
        return np.array(family.values[name], dtype=np.float32)
    rng = np.random.default_rng(zlib.crc32(f"{family.name}/{name}".encode(), family.seed))
    values = rng.standard_normal(shape[::-1])
    if name.endswith("ssm_a"):
        return round_bits(-np.exp(0.5 * values))
    if name.startswith("rope_f"):
        return np.geomspace(1.0, 3.0 if "short" in name else 8.0, shape[0]).astype(np.float32)
    if name.endswith((".bias", "exp_probs_b")):
        values = 0.5 * values
    elif re.search(NEUTRAL_IS_ONE, name):
        values = 1 + 0.2 * values
    elif not name.endswith(("attn_sinks.weight", "ssm_d")):
        values = values / math.sqrt(shape[0])
    for pattern, gain in {**GAINS, **family.gains}.items():
        values = values * (gain if re.search(pattern, name) else 1)
    return round_bits(values)


def joined(family: Family, tensors: Tensors) -> Tensors:
    """With queries, keys and values of each layer in one tensor, as most converters write these families."""
    out: Tensors = {}
    for name, values in tensors.items():
        match = re.match(r"(blk\.\d+\.attn_)q(\.weight|\.bias)$", name)
        if family.joined and match:
            parts = [tensors[f"{match[1]}{part}{match[2]}"] for part in "qkv"]
            out[f"{match[1]}qkv{match[2]}"] = np.concatenate(parts)
        elif not (family.joined and re.search(r"attn_[kv]\.(weight|bias)$", name)):
            out[name] = values
    return out


def random_tensors(family: Family, shapes: dict[str, list[int]]) -> Tensors:
    """All tensors as [rows, columns]; rows of queries and keys in one tensor with values are larger, too."""
    tensors = {name: random_tensor(family, name, shape) for name, shape in shapes.items()}
    for name, values in tensors.items():
        if name.endswith("attn_qkv.weight"):
            heads, kv = (BASE | family.keys)["attention.head_count"], (BASE | family.keys)["attention.head_count_kv"]
            heads, kv = (n[0] if isinstance(n, list) else n for n in (heads, kv))
            rows = len(values) * (heads + kv) // (heads + 2 * kv)
            tensors[name] = np.concatenate([round_bits(1.5 * values[:rows]), values[rows:]])
    return joined(family, tensors)


def without_op(tensors: Tensors, part: str) -> Tensors:
    """With neutral values in the tensors of this name in all layers."""
    neutral = 1.0 if re.search(NEUTRAL_IS_ONE + "|^rope_f", part) else 0.0
    return {name: np.full_like(values, neutral) if part_of(name) == part else values for name, values in tensors.items()}


def part_of(name: str) -> str:
    """A tensor's name without its layer."""
    return re.sub(r"^blk\.\d+\.", "", name)


@dataclass
class Experiment:
    """A model, and what changes of it move its logits by."""

    family: Family
    tools: Tools
    saved: list[gguf.ReaderField]
    tensors: Tensors
    folder: Path

    def __post_init__(self) -> None:
        self.positions = POSITIONS[self.family.rows]
        rng = np.random.default_rng(zlib.crc32(f"{self.family.name} prompt".encode()))
        self.ids = [int(i) for i in rng.integers(0, self.family.vocabulary, self.family.rows)]

    def write(self, path: Path, tensors: Tensors, **changed: object) -> None:
        removed = {f"{self.family.arch}.{key}" for key, value in changed.items() if value is None}
        saved = [field for field in self.saved if field.name not in removed]
        write_gguf(path, self.family, saved, own_keys(self.family, **changed), tensors)
        if self.family.equal:
            keys, tensors = self.family.equal({**self.family.keys, **changed}, tensors)
            equal = replace(self.family, arch=self.family.equal_arch, keys=keys)
            write_gguf(path.with_suffix(".equal"), equal, [], own_keys(equal), tensors)

    def logits(self, path: Path, setting: str) -> np.ndarray:
        path = path.with_suffix(".equal") if self.family.equal else path
        options = ["--micro-batch", str(self.family.micro_batch), *SETTINGS[setting]]
        return self.tools.logits(path, self.ids, self.positions, options)

    def moved(self, original: np.ndarray, tensors: Tensors, **changed: object) -> float:
        """How far a change moves the logits, as a share of their standard deviation."""
        path = self.folder / "changed.gguf"
        self.write(path, tensors, **changed)
        return float(np.nan_to_num(np.abs(self.logits(path, "precise") - original), nan=np.inf).max() / original.std())

    def moves(self, original: np.ndarray) -> dict[str, float]:
        """The same of each removed op and each changed key."""
        parts = dict.fromkeys(part_of(name) for name in self.tensors if not name.startswith("token_embd.weight"))
        parts = [part for part in parts if part != "output.weight" and not matches(part, self.family.unread)]
        moves = {part: self.moved(original, without_op(self.tensors, part)) for part in parts}
        changes = self.family.changes.items()
        return moves | {what: self.moved(original, self.tensors, **keys) for what, keys in changes}


def write_json(path: Path, model: Experiment, rows: dict[str, np.ndarray]) -> float:
    """Keeps the logits; returns the largest share of the spread that settings change them by."""
    def apart(setting: str) -> float:
        return float(np.abs(rows["default"] - rows[setting]).max())

    difference = {f"default_to_{setting}": apart(setting) for setting in ("one_by_one", "precise")}
    head = {"file": f"{model.family.name}.gguf", "ids": model.ids, "positions": model.positions,
            "tolerance": 0.003 if model.family.gelu else 0.001,
            "max_abs_difference": {name: float(f"{value:.4g}") for name, value in difference.items()}}
    text = ",\n".join(
        f'"{name}":[\n' + ",\n".join(json.dumps(row.tolist(), separators=(",", ":")) for row in rows[name]) + "]"
        for name in ("default", "precise"))
    path.write_text(json.dumps(head)[:-1] + ",\n" + text + "}\n")
    return max(difference.values()) / float(rows["precise"].std())


def paragraph(family: Family, tensors: Tensors, size: int) -> str:
    """What LIST.md says of a model."""
    keys = ", ".join(f"`{key}` {json.dumps(value)}" for key, value in family.keys.items()) or "those of all"
    layer = ", ".join(f"{part_of(name)} {list(values.shape[::-1])}" for name, values in tensors.items()
                      if name.startswith("blk.0."))
    others = ", ".join(f"{name} {list(values.shape[::-1])}" for name, values in tensors.items() if not name.startswith("blk."))
    kind = "keys of a converter" if family.bare or family.arch in UNSAVED else "all keys of llama.cpp's saver"
    return (f"**{family.name}** (`{family.arch}`, {size // 1000} KB, {kind}): {family.tests}. Keys: {keys}. "
            f"Layer 0: {layer}. Others: {others}.")


def keep_paragraph(path: Path, name: str, text: str) -> None:
    """Puts it among those of the other models, in the order of the table."""
    lines = path.read_text().splitlines() if path.exists() else []
    paragraphs = {line.split("**")[1]: line for line in lines if line} | {name: text}
    path.write_text("\n\n".join(paragraphs[family.name] for family in FAMILIES if family.name in paragraphs) + "\n")


def make(family: Family, tools: Tools, out: Path) -> list[str]:
    """Writes a model and its logits; returns what is wrong with them."""
    with tempfile.TemporaryDirectory() as folder:
        shapes, saved = wanted_shapes(family, tools, Path(folder))
        model = Experiment(family, tools, saved, random_tensors(family, shapes), Path(folder))
        path = Path(folder) / f"{family.name}.gguf"
        model.write(path, model.tensors)
        rows = {setting: model.logits(path, setting) for setting in SETTINGS}
        moves = model.moves(rows["precise"])
        noise = write_json(out / f"{family.name}.json", model, rows)
        size = path.stat().st_size
        (out / path.name).write_bytes(path.read_bytes())
    least = min(moves, key=moves.get)
    print(f"{family.name:24} {size:7} bytes, std {rows['precise'].std():6.3f}, noise {noise:.5f}, "
          f"least move {moves[least]:.3f} of {least}; " + " ".join(f"[{what}: {moves[what]:.3f}]" for what in family.changes))
    keep_paragraph(out / "LIST.md", family.name, paragraph(family, model.tensors, size))
    wrong = [f"{family.name}: {what} moves {value:.4f}" for what, value in moves.items() if not value > MOVES_LEAST]
    return wrong + ([f"{family.name}: noise {noise}"] if not noise < NOISE_MOST else [])


def main() -> None:
    """Writes the named models or all into the folder given."""
    out, tools, names = Path(sys.argv[1]), Tools(Path(sys.argv[2])), sys.argv[3:]
    out.mkdir(parents=True, exist_ok=True)
    unknown = set(names) - {family.name for family in FAMILIES}
    if unknown:
        sys.exit(f"no such model: {', '.join(sorted(unknown))}")
    wrong: list[str] = []
    for family in FAMILIES:
        if not names or family.name in names:
            try:
                wrong += make(family, tools, out)
            except subprocess.CalledProcessError as error:
                wrong.append(f"{family.name}: {error.cmd[0]} fails: {error.stderr.strip()[-300:]}")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
