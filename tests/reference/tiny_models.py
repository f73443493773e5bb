"""Writes small random models (GGUF) and llama.cpp's logits for them.

usage: python3 tiny_models.py OUT_FOLDER REFERENCE_BINARY QUANTIZE_BINARY [NAME...]

With names, only models of these names are written.

Every weight is rounded to eight significant bits, so that its F32, F16 and BF16 forms are the same
number. The random numbers depend only on the model's name.
"""

import json
import math
import struct
import subprocess
import sys
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np

import tiny_exact

PROMPT_LENGTH = 40
POSITIONS = [0, 7, 8, 23, 39]
# The package gguf reads no blocks in Q1_0 and Q2_0.
FORMATS = ["F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL",
           "IQ4_XS", "MXFP4", "TQ2_0", "IQ3_S", "IQ3_XXS", "IQ2_S", "IQ2_XS", "IQ2_XXS", "IQ1_S", "IQ1_M", "TQ1_0", "NVFP4"]
# llama-quantize makes these only with the importance of each column.
BY_IMPORTANCE = ["IQ3_XXS", "IQ2_S", "IQ2_XS", "IQ2_XXS", "IQ1_S", "IQ1_M"]
QUANTIZE_NAMES = {"NVFP4": "Q8_0", "Q3_K": "Q3_K_S", "Q4_K": "Q4_K_S", "Q5_K": "Q5_K_S", "IQ2_S": "IQ2_M"}


@dataclass
class Model:
    """The shape of one model and what its architecture adds."""

    name: str
    arch: str
    layers: int = 1
    width: int = 64
    hidden: int = 96
    heads: int = 4
    heads_kv: int = 2
    head_width: int = 16
    tied: bool = True
    qkv_bias: bool = False
    qk_norm: str = ""  # of "heads", or of whole "rows"
    norms: tuple[str, ...] = ("attn_norm", "", "ffn_norm", "")  # before and after attention, and the feed-forward block
    rope_base: float = 10000.0
    rope_factors: bool = False
    scaling: str = ""
    scaling_factor: float = 1.0
    scaling_context: int = 0
    window: int = 0
    softcap_attention: float = 0.0
    softcap_logits: float = 0.0
    explicit_head_width: bool = False
    windowed: tuple[bool, ...] = ()  # whether each layer has the window; empty: as the architecture does
    rope_base_window: float = 0.0  # 0: as the architecture does
    rotated: tuple[bool, ...] = ()  # whether each layer has rotary embedding; empty: all
    embedding_scale: float = 0.0
    residual_scale: float = 0.0
    score_scale: float = 0.0
    logit_scale: float = 0.0
    gain: float = 1.0  # of what each block adds: below 1, many layers do not multiply rounding errors


YARN = {"rope_base": 100.0, "scaling": "yarn", "scaling_factor": 4.0, "scaling_context": 64}
POST_NORMS = ("", "post_attention_norm", "", "post_ffw_norm")
BOTH_NORMS = ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm")
GEMMA = {"width": 32, "hidden": 64, "norms": BOTH_NORMS, "window": 8, "explicit_head_width": True}
SMALL = {"width": 32, "hidden": 48, "heads": 2, "heads_kv": 1}
SCALES = {"embedding_scale": 6.0, "residual_scale": 0.25, "score_scale": 0.5, "logit_scale": 4.0}
OLMO = {"tied": False, "qk_norm": "rows", "norms": POST_NORMS, "width": 32, "hidden": 48, "head_width": 8}
EXAONE = {"qk_norm": "heads", "norms": POST_NORMS}
EVERY_FOURTH = (True, True, True, False)

MODELS = [
    Model("llama", "llama", layers=2, tied=False),
    Model("llama-tied", "llama"),
    Model("llama-rope-factors", "llama", rope_factors=True, rope_base=500000.0),
    Model("llama-rope-linear", "llama", scaling="linear", scaling_factor=4.0),
    Model("llama-rope-yarn", "llama", **YARN),
    Model("internlm2", "internlm2", tied=False, rope_base=1000000.0),
    Model("qwen2", "qwen2", qkv_bias=True, rope_base=1000000.0),
    Model("qwen2-rope-yarn", "qwen2", qkv_bias=True, **YARN),
    Model("qwen3", "qwen3", head_width=32, explicit_head_width=True, qk_norm="heads", rope_base=1000000.0),
    Model("gemma2", "gemma2", layers=4, heads=2, heads_kv=1, softcap_attention=5.0, softcap_logits=8.0, **GEMMA),
    Model("gemma3", "gemma3", layers=7, heads=2, heads_kv=1, head_width=24, qk_norm="heads", rope_base=1000000.0,
          scaling="linear", scaling_factor=8.0, **GEMMA),
    Model("smollm3", "smollm3", layers=5, rotated=(*EVERY_FOURTH, True), gain=0.5, **SMALL),
    Model("granite", "granite", layers=2, **SCALES, **SMALL),
    Model("granite-without-rope", "granite", rotated=(False,), **SCALES, **SMALL),
    Model("minicpm", "minicpm", layers=2, embedding_scale=6.0, residual_scale=0.25, logit_scale=4.0, **SMALL),
    Model("minicpm-defaults", "minicpm", layers=2, width=256, hidden=8, heads=1, heads_kv=1, head_width=8,
          explicit_head_width=True),
    Model("olmo2", "olmo2", layers=2, rope_base=500000.0, **OLMO),
    Model("olmo2-windows", "olmo2", layers=4, window=8, windowed=EVERY_FOURTH, gain=0.2, **YARN,
          **OLMO),
    Model("exaone4", "exaone4", layers=2, rope_base=1000000.0, **EXAONE, **SMALL),
    Model("exaone4-windows", "exaone4", layers=64, width=16, hidden=16, heads=2, heads_kv=1, head_width=8, window=8,
          windowed=EVERY_FOURTH * 16, rotated=EVERY_FOURTH * 16, gain=0.03, **EXAONE),
    Model("seed_oss", "seed_oss", head_width=24, explicit_head_width=True, qkv_bias=True, rope_base=10000000.0,
          norms=("attn_norm", "", "post_attention_norm", "")),
]
SPLIT = Model("llama-split", "llama", heads=4, heads_kv=2, width=32, head_width=8, hidden=64)
FORMAT = Model("format", "llama", width=256, hidden=256, heads=4, heads_kv=1, head_width=64)


def round_bits(values: np.ndarray) -> np.ndarray:
    """Rounds to eight significant bits, and to zero what F16 could not hold as a normal number."""
    mantissa, exponent = np.frexp(values.astype(np.float64))
    rounded = np.ldexp(np.round(mantissa * 256) / 256, exponent)
    return np.where(np.abs(rounded) < 2.0**-14, 0.0, rounded).astype(np.float32)


def random_tensors(model: Model) -> dict[str, np.ndarray]:
    """All tensors by their GGUF name, as [rows, columns] or [columns]."""
    rng = np.random.default_rng(zlib.crc32(model.name.encode()))
    vocab = len(vocabulary()[0])
    q_width, kv_width = model.heads * model.head_width, model.heads_kv * model.head_width

    def matrix(rows: int, columns: int, gain: float = 1.0) -> np.ndarray:
        return round_bits(rng.standard_normal((rows, columns)) * gain / math.sqrt(columns))

    def norm(columns: int) -> np.ndarray:
        return round_bits(1 + 0.2 * rng.standard_normal(columns))

    def norms(*places: int) -> dict[str, np.ndarray]:
        gain = [1, model.gain, 1, model.gain]
        return {f"{model.norms[at]}.weight": round_bits(gain[at] * norm(model.width))
                for at in places if model.norms[at]}

    post_gain = 1.0 if model.norms[1] else model.gain

    tensors = {"token_embd.weight": matrix(vocab, model.width, 2.5), "output_norm.weight": norm(model.width)}
    if not model.tied:
        tensors["output.weight"] = matrix(vocab, model.width, 2.5)
    if model.rope_factors:
        tensors["rope_freqs.weight"] = np.geomspace(1.0, 8.0, model.head_width // 2).astype(np.float32)
    for layer in range(model.layers):
        parts = {
            **norms(0),
            "attn_q.weight": matrix(q_width, model.width, 1.5),
            "attn_k.weight": matrix(kv_width, model.width, 1.5),
            "attn_v.weight": matrix(kv_width, model.width),
            "attn_output.weight": matrix(model.width, q_width, post_gain),
            **norms(2),
            "ffn_gate.weight": matrix(model.hidden, model.width),
            "ffn_up.weight": matrix(model.hidden, model.width),
            "ffn_down.weight": matrix(model.width, model.hidden, post_gain),
        }
        if model.qkv_bias:
            for part, rows in [("q", q_width), ("k", kv_width), ("v", kv_width)]:
                parts[f"attn_{part}.bias"] = round_bits(0.5 * rng.standard_normal(rows))
        if model.qk_norm:
            heads = model.qk_norm == "heads"
            parts["attn_q_norm.weight"] = round_bits(1.2 * norm(model.head_width if heads else q_width))
            parts["attn_k_norm.weight"] = round_bits(1.2 * norm(model.head_width if heads else kv_width))
        parts |= norms(1, 3)
        tensors |= {f"blk.{layer}.{name}": values for name, values in parts.items()}
    return tensors


def vocabulary() -> tuple[list[bytes], list[float], list[int]]:
    """Pieces, scores and types of a small SentencePiece vocabulary with every byte."""
    pieces = [(b"<unk>", gguf.TokenType.UNKNOWN), (b"<s>", gguf.TokenType.CONTROL), (b"</s>", gguf.TokenType.CONTROL)]
    pieces += [(f"<0x{byte:02X}>".encode(), gguf.TokenType.BYTE) for byte in range(256)]
    text = ["▁", *"abcdefghijklmnopqrstuvwxyz", "▁t", "th"]
    pieces += [(piece.encode(), gguf.TokenType.NORMAL) for piece in text]
    pieces = pieces[:288]
    return [piece for piece, _ in pieces], [float(-i) for i in range(len(pieces))], [kind for _, kind in pieces]


def metadata(writer: gguf.GGUFWriter, model: Model) -> None:
    """Writes the keys that llama.cpp reads for this architecture."""
    writer.add_name(f"tiny random {model.name}")
    writer.add_context_length(256)
    writer.add_embedding_length(model.width)
    writer.add_block_count(model.layers)
    writer.add_feed_forward_length(model.hidden)
    writer.add_head_count(model.heads)
    writer.add_head_count_kv(model.heads_kv)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(model.rope_base)
    if model.arch in ("llama", "internlm2", "smollm3", "granite", "minicpm"):
        writer.add_rope_dimension_count(model.head_width)
    if model.explicit_head_width:
        writer.add_key_length(model.head_width)
        writer.add_value_length(model.head_width)
    if model.scaling:
        writer.add_rope_scaling_type(gguf.RopeScalingType(model.scaling))
        writer.add_rope_scaling_factor(model.scaling_factor)
    if model.scaling_context:
        writer.add_rope_scaling_orig_ctx_len(model.scaling_context)
    if model.arch == "olmo2" and model.scaling == "yarn":
        # As OLMo 3 states it, although YaRN has it anyway.
        writer.add_rope_scaling_yarn_attn_factor(1 + 0.1 * math.log(model.scaling_factor))
    if model.window:
        writer.add_sliding_window(model.window)
    if model.softcap_attention:
        writer.add_attn_logit_softcapping(model.softcap_attention)
    if model.softcap_logits:
        writer.add_final_logit_softcapping(model.softcap_logits)
    if model.embedding_scale:
        writer.add_embedding_scale(model.embedding_scale)
        writer.add_residual_scale(model.residual_scale)
        if model.score_scale:
            writer.add_attention_scale(model.score_scale)
        writer.add_logit_scale(model.logit_scale)
        if model.arch == "granite":
            writer.add_rope_scaling_finetuned(all(model.rotated))
    pieces, scores, kinds = vocabulary()
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(pieces)
    writer.add_token_scores(scores)
    writer.add_token_types(kinds)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(True)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)


def write_model(model: Model, tensors: dict[str, np.ndarray], path: Path, split: int = 0,
                kind: gguf.GGMLQuantizationType | None = None) -> None:
    """Writes one file, or parts of at most `split` tensors; with a `kind`, matrices are quantised by the package gguf."""
    writer = gguf.GGUFWriter(path, model.arch, split_max_tensors=split)
    metadata(writer, model)
    for name, values in tensors.items():
        if kind is None or values.ndim == 1:
            writer.add_tensor(name, values)
        else:
            writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def prompt_ids(name: str) -> list[int]:
    """BOS and then random ids, bytes and pieces alike."""
    rng = np.random.default_rng(zlib.crc32(f"prompt of {name}".encode()))
    return [1, *(int(i) for i in rng.integers(3, 288, PROMPT_LENGTH - 1))]


def logits(reference: str, path: Path, ids: list[int], *options: str) -> list[list[float]]:
    """llama.cpp's rows at POSITIONS."""
    numbers = [",".join(map(str, values)) for values in (ids, POSITIONS)]
    command = [reference, "--context", "256", *options, "logits", str(path), *numbers]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["rows"]


def keep_logits(reference: str, model: Model, path: Path, out: Path) -> None:
    """Writes OUT/<file>.json for the model at `path` and prints how far its rows lie apart."""
    ids = prompt_ids(model.name)
    default = logits(reference, path, ids)
    single = logits(reference, path, ids, "--one-by-one")
    precise = logits(reference, path, ids, "--no-flash", "--kv-f32", "--no-repack")
    exact = tiny_exact.forward(model, path, ids)[POSITIONS]

    def apart(left: list, right: list) -> float:
        return float(np.abs(np.array(left) - np.array(right)).max())

    difference = {
        "default_to_one_by_one": apart(default, single),
        "default_to_precise": apart(default, precise),
        "default_to_exact": apart(default, exact),
        "precise_to_exact": apart(precise, exact),
    }
    best = np.sort(exact, axis=1)
    print(f"{path.name:40} std {exact.std():6.3f} least gap {(best[:, -1] - best[:, -2]).min():6.3f} "
          + " ".join(f"{name} {value:.6f}" for name, value in difference.items()))
    rows = {"default": default, "precise": precise,
            "exact": [[float(f"{value:.6g}") for value in row] for row in exact]}
    text = ",\n".join(
        f'"{name}":[\n' + ",\n".join(json.dumps(row, separators=(",", ":")) for row in values) + "]"
        for name, values in rows.items())
    head = {"file": path.name, "ids": ids, "positions": POSITIONS,
            "max_abs_difference": {name: float(f"{value:.4g}") for name, value in difference.items()}}
    name = path.name.split("-00001-of-")[0].removesuffix(".gguf")
    (out / f"{name}.json").write_text(json.dumps(head)[:-1] + ",\n" + text + "}\n")


def main() -> None:
    """Writes everything into the folder given."""
    out, reference, quantize = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    out.mkdir(parents=True, exist_ok=True)
    names = sys.argv[4:]
    for model in MODELS:
        if names and model.name not in names:
            continue
        path = out / f"{model.name}.gguf"
        write_model(model, random_tensors(model), path)
        keep_logits(reference, model, path, out)
    write_formats(out, reference, quantize, names)
    if not names:
        write_split(out, reference)


def write_split(out: Path, reference: str) -> None:
    """A model in three files."""
    path = out / f"{SPLIT.name}.gguf"
    write_model(SPLIT, random_tensors(SPLIT), path)
    whole = logits(reference, path, prompt_ids(SPLIT.name))
    write_model(SPLIT, random_tensors(SPLIT), path, split=4)
    path.unlink()
    first = out / f"{SPLIT.name}-00001-of-00003.gguf"
    if logits(reference, first, prompt_ids(SPLIT.name)) != whole:
        sys.exit("the split model's logits differ from the whole one's")
    keep_logits(reference, SPLIT, first, out)


def write_importance(path: Path, tensors: dict[str, np.ndarray]) -> Path:
    """Writes a file for llama-quantize that says that all columns of all matrices are equally important."""
    matrices = {name: values for name, values in tensors.items() if values.ndim == 2}
    with path.open("wb") as file:
        file.write(struct.pack("<i", len(matrices)))
        for name, values in matrices.items():
            columns = values.shape[1]
            file.write(struct.pack("<i", len(name)) + name.encode() + struct.pack("<ii", 1, columns))
            file.write(np.ones(columns, dtype=np.float32).tobytes())
        # The last call, and the name of the text: none.
        file.write(struct.pack("<ii", 1, 0))
    return path


def scales_of_products() -> dict[str, np.ndarray]:
    """A factor on the product with each matrix of the layer, as files with matrices in NVFP4 have them."""
    roles = ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"]
    return {f"blk.0.{role}.scale": np.array([0.75 + i / 8], dtype=np.float32) for i, role in enumerate(roles)}


def write_formats(out: Path, reference: str, quantize: str, names: list[str]) -> None:
    """A model in each format of weights, or in those that are named."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "format-f32.gguf"
        write_model(FORMAT, random_tensors(FORMAT), source)
        for name in FORMATS:
            path = out / f"format-{name.lower()}.gguf"
            if names and path.stem not in names:
                continue
            if name == "MXFP4":
                # llama-quantize makes it only of the experts of a mixture.
                write_model(FORMAT, random_tensors(FORMAT), path, kind=gguf.GGMLQuantizationType.MXFP4)
            else:
                options = ["--pure"]
                if name == "NVFP4":
                    # llama-quantize has no name for a file that is mostly of this format.
                    options += ["--tensor-type", "weight=nvfp4", "--token-embedding-type", "nvfp4"]
                    write_model(FORMAT, random_tensors(FORMAT) | scales_of_products(), source)
                if name in BY_IMPORTANCE:
                    options += ["--imatrix", str(write_importance(Path(folder) / "importance.dat", random_tensors(FORMAT)))]
                command = [quantize, *options, str(source), str(path), QUANTIZE_NAMES.get(name, name), "1"]
                subprocess.run(command, check=True, capture_output=True)
            keep_logits(reference, FORMAT, path, out)


if __name__ == "__main__":
    main()
