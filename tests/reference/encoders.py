"""Writes small random encoders and rerankers (GGUF), and llama.cpp's hidden states and scores for them.

usage: python3 encoders.py OUT_FOLDER REFERENCE_BINARY [NAME...]

With names, only models of these names are written. The random numbers depend only on the model's name.
"""

import json
import math
import subprocess
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np

import encoder_exact
from tiny_models import round_bits, vocabulary

PROMPT_LENGTH = 40


@dataclass
class Model:
    """The shape of one model and what its architecture adds."""

    name: str
    arch: str
    layers: int = 2
    width: int = 32
    hidden: int = 48
    heads: int = 4
    heads_kv: int = 4
    norm: str = "layer"  # or "rms"
    norm_biases: bool = True
    post_norm: bool = True  # norms after what blocks add, as in BERT; else before the blocks
    embedding_norm: bool = True
    last_norm: str = ""
    positions: str = ""  # "table", "halves", "adjacent", "alibi"
    types: int = 0
    biases: bool = False
    joined: bool = False  # queries, keys and values in one matrix
    qk_norm: str = ""  # of "heads", or of whole "rows"
    gate: str = ""  # "own", or "joined" with what it gates
    experts: int = 0  # in each second layer, without gates
    used: int = 0  # experts of a row
    curve: str = "gelu"  # or "gelu_tanh", "silu"
    sandwich: bool = False  # norms before and after blocks
    second_norm: bool = False  # as Jina's models for code
    window: int = 0  # keys at most half of it away
    windowed: tuple[bool, ...] = ()
    base: float = 10000.0
    window_base: float = 0.0
    embedding_scale: float = 1.0
    causal: bool = False
    pooling: int = 0
    rank: tuple[str, ...] = ()  # layers of the head
    labels: int = 1
    rank_input: str = ""
    rank_norm: bool = False
    dense: tuple[int, ...] = ()  # widths after the pooling


BERT = {"types": 2, "biases": True}
ROTARY = {"norm": "rms", "norm_biases": False, "post_norm": False, "embedding_norm": False, "last_norm": "output_norm",
          "gate": "own", "curve": "silu"}

MODERN = {"norm_biases": False, "post_norm": False, "last_norm": "output_norm", "positions": "halves", "joined": True,
          "gate": "joined"}

MODELS = [
    Model("bert-rank", "bert", positions="table", pooling=4, rank=("cls", "cls.output"), rank_input="first", **BERT),
    Model("qwen3-rank", "qwen3", heads_kv=2, positions="halves", qk_norm="heads", causal=True, pooling=4,
          rank=("cls.output",), labels=2, rank_input="last", **ROTARY),
    Model("nomic-bert", "nomic-bert", positions="halves", types=2, joined=True, gate="own", curve="silu", base=1000.0,
          pooling=1),
    Model("nomic-bert-moe", "nomic-bert-moe", layers=3, positions="halves", types=1, biases=True, joined=True, base=1000.0, pooling=1,
          hidden=24, experts=8, used=2),
    Model("jina-bert-v3", "jina-bert-v3", positions="halves", joined=True, base=20000.0, pooling=1, types=1, biases=True),
    Model("jina-bert-v2", "jina-bert-v2", positions="alibi", gate="own", curve="gelu_tanh", pooling=1, **BERT),
    Model("jina-bert-v2-joined", "jina-bert-v2", positions="alibi", gate="joined", curve="gelu_tanh", pooling=1,
          qk_norm="rows", second_norm=True, heads=2, rank=("cls",), rank_input="first", heads_kv=2, **BERT),
    Model("modern-bert", "modern-bert", layers=5, window=8, windowed=(False, True, True, False, True), window_base=500.0,
          base=160000.0, curve="gelu_tanh", pooling=2, **MODERN),
    Model("modern-bert-rank", "modern-bert", window=8, windowed=(False, True), curve="silu", pooling=4,
          rank=("cls", "cls.output"), rank_norm=True, rank_input="mean", **MODERN),
    Model("eurobert", "eurobert", positions="halves", heads_kv=2, base=250000.0, pooling=3, **ROTARY),
    Model("llama-embed", "llama-embed", positions="adjacent", heads_kv=2, base=500000.0, pooling=1, **ROTARY),
    Model("neo-bert", "neo-bert", positions="adjacent", joined=True, pooling=2, **(ROTARY | {
        "gate": "joined", "last_norm": "enc.output_norm"})),
    Model("gemma-embedding", "gemma-embedding", layers=7, window=8, windowed=(*(True,) * 5, False, True),
          positions="halves", base=1000000.0, window_base=10000.0, heads_kv=1, qk_norm="heads", sandwich=True,
          embedding_scale=math.sqrt(32), pooling=1, dense=(64, 32), **(ROTARY | {"curve": "gelu_tanh"})),
]


def random_tensors(model: Model) -> dict[str, np.ndarray]:
    """All tensors by their GGUF name, as [rows, columns] or [columns]."""
    rng = np.random.default_rng(zlib.crc32(model.name.encode()))
    width, head = model.width, model.width // model.heads
    q_width, kv_width = model.heads * head, model.heads_kv * head
    tensors: dict[str, np.ndarray] = {}

    def matrix(name: str, rows: int, columns: int, gain: float = 1.0, bias: bool = model.biases) -> None:
        tensors[f"{name}.weight"] = round_bits(rng.standard_normal((rows, columns)) * gain / math.sqrt(columns))
        if bias:
            tensors[f"{name}.bias"] = round_bits(0.3 * rng.standard_normal(rows))

    def norm(name: str, columns: int = width) -> None:
        tensors[f"{name}.weight"] = round_bits(1 + 0.2 * rng.standard_normal(columns))
        if model.norm_biases:
            tensors[f"{name}.bias"] = round_bits(0.2 * rng.standard_normal(columns))

    matrix("token_embd", len(vocabulary()[0]), width, 2.5, bias=False)
    if model.positions == "table":
        matrix("position_embd", 128, width, 1.5, bias=False)
    if model.types:
        matrix("token_types", model.types, width, 1.5, bias=False)
    if model.embedding_norm:
        norm("token_embd_norm")
    for index in range(model.layers):
        layer = f"blk.{index}."
        if not model.post_norm and not (model.arch == "modern-bert" and index == 0):
            norm(layer + "attn_norm")
        if model.joined:
            matrix(layer + "attn_qkv", q_width + 2 * kv_width, width, 1.5)
        else:
            for part, rows in (("q", q_width), ("k", kv_width), ("v", kv_width)):
                matrix(f"{layer}attn_{part}", rows, width, 1.5 if part != "v" else 1.0)
        if model.qk_norm:
            norm(layer + "attn_q_norm", head if model.qk_norm == "heads" else q_width)
            norm(layer + "attn_k_norm", head if model.qk_norm == "heads" else kv_width)
        matrix(layer + "attn_output", width, q_width)
        if model.post_norm:
            norm(layer + "attn_output_norm")
            if model.second_norm:
                norm(layer + "attn_norm_2")
        if model.sandwich:
            norm(layer + "post_attention_norm")
        if not model.post_norm:
            norm(layer + "ffn_norm")
        if model.gate == "own":
            matrix(layer + "ffn_gate", model.hidden, width, bias=False)
        both = 2 if model.gate == "joined" else 1
        if model.experts and index % 2 == 1:
            matrix(layer + "ffn_gate_inp", model.experts, width, 2.0, bias=False)
            for part, rows, columns in (("up", model.hidden, width), ("down", width, model.hidden)):
                values = rng.standard_normal((model.experts, rows, columns)) / math.sqrt(columns)
                tensors[f"{layer}ffn_{part}_exps.weight"] = round_bits(values)
        else:
            matrix(layer + "ffn_up", both * model.hidden, width, bias=model.biases and not model.gate)
            matrix(layer + "ffn_down", width, model.hidden)
        if model.post_norm:
            norm(layer + "layer_output_norm")
        if model.sandwich:
            norm(layer + "post_ffw_norm")
    if model.last_norm:
        norm(model.last_norm)
    rows = width
    for role in model.rank:
        rows = model.labels if role == model.rank[-1] else width
        matrix(role, rows, width, 2.0, bias=not model.causal and not model.rank_norm)
        if model.rank_norm and role == "cls":
            norm("cls.norm")
    for number, (columns, rows) in enumerate(zip((width, *model.dense), model.dense)):
        matrix(f"dense_{number + 2}", rows, columns, bias=False)
    return tensors


def metadata(writer: gguf.GGUFWriter, model: Model) -> None:
    """Writes the keys that llama.cpp reads for this architecture."""
    writer.add_name(f"tiny random {model.name}")
    writer.add_context_length(128)
    writer.add_embedding_length(model.width)
    writer.add_block_count(model.layers)
    writer.add_feed_forward_length(model.hidden)
    writer.add_head_count(model.heads)
    writer.add_head_count_kv(model.heads_kv)
    if model.norm == "rms":
        writer.add_layer_norm_rms_eps(1e-5)
    else:
        writer.add_layer_norm_eps(1e-5)
    if model.positions in ("halves", "adjacent"):
        writer.add_rope_freq_base(model.base)
    if model.window_base:
        writer.add_float32(f"{model.arch}.rope.freq_base_swa", model.window_base)
    if model.window:
        writer.add_sliding_window(model.window)
    if model.arch == "modern-bert":
        writer.add_sliding_window_pattern(3)
        writer.add_string("modern-bert.hidden_activation", "silu" if model.curve == "silu" else "gelu")
    if not model.causal:
        writer.add_causal_attention(False)
    if model.types:
        writer.add_token_type_count(model.types)
    if model.experts:
        writer.add_expert_count(model.experts)
        writer.add_expert_used_count(model.used)
        writer.add_moe_every_n_layers(2)
    if model.pooling:
        writer.add_pooling_type(gguf.PoolingType(model.pooling))
    if model.labels > 1:
        writer.add_classifier_output_labels([f"label {number}" for number in range(model.labels)])
    for number, (columns, rows) in enumerate(zip((model.width, *model.dense), model.dense)):
        writer.add_uint32(f"{model.arch}.dense_{number + 2}_feat_in", columns)
        writer.add_uint32(f"{model.arch}.dense_{number + 2}_feat_out", rows)
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
    writer.add_add_eos_token(True)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)


def write_model(model: Model, tensors: dict[str, np.ndarray], path: Path) -> None:
    """Writes one file."""
    writer = gguf.GGUFWriter(path, model.arch)
    metadata(writer, model)
    for name, values in tensors.items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def prompt_ids(name: str) -> list[int]:
    """BOS and then random ids, bytes and pieces alike."""
    rng = np.random.default_rng(zlib.crc32(f"prompt of {name}".encode()))
    return [1, *(int(i) for i in rng.integers(3, 288, PROMPT_LENGTH - 1))]


def of_llama(reference: str, path: Path, ids: list[int], pooling: str) -> np.ndarray:
    """llama.cpp's rows under that pooling."""
    command = [reference, "--context", "256", "--no-flash", "--kv-f32", "--no-repack", "hidden", str(path),
               ",".join(map(str, ids)), pooling]
    return np.array(json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["rows"])


def rounded(values: np.ndarray) -> list:
    """Six significant digits."""
    return [float(f"{value:.6g}") for value in values]


def keep(reference: str, model: Model, path: Path, out: Path) -> None:
    """Writes OUT/NAME.json for the model at `path` and prints how far its rows lie from llama.cpp's."""
    ids = prompt_ids(model.name)
    exact = encoder_exact.Exact(model, path)
    hidden, difference = exact.hidden(ids), {}
    if not model.dense:
        # llama.cpp projects single rows, too.
        difference = {"hidden": float(np.abs(hidden - of_llama(reference, path, ids, "none")).max())}
    kept = {"file": path.name, "ids": ids, "hidden": [rounded(row) for row in hidden]}
    if model.rank:
        scores, of_rank = exact.scores(hidden), of_llama(reference, path, ids, "rank")[0]
        difference["scores"] = float(np.abs(scores - of_rank).max())
        kept |= {"scores": rounded(scores)}
    if model.dense:
        pooled = exact.projected(hidden)
        difference["pooled"] = float(np.abs(pooled - of_llama(reference, path, ids, "mean")[0]).max())
        kept |= {"pooled": rounded(pooled)}
    print(f"{model.name:24} std {hidden.std():6.3f} "
          + " ".join(f"{name} {value:.6f}" for name, value in difference.items()))
    kept["llama_cpp_differs_by"] = {name: float(f"{value:.3g}") for name, value in difference.items()}
    text = ",\n".join(f"{json.dumps(name)}:{json.dumps(value, separators=(',', ':'))}" for name, value in kept.items())
    (out / f"{model.name}.json").write_text("{" + text.replace("],[", "],\n[") + "}\n")


def main() -> None:
    """Writes everything into the folder given."""
    out, reference = Path(sys.argv[1]), sys.argv[2]
    out.mkdir(parents=True, exist_ok=True)
    for model in MODELS:
        if sys.argv[3:] and model.name not in sys.argv[3:]:
            continue
        path = out / f"{model.name}.gguf"
        write_model(model, random_tensors(model), path)
        keep(reference, model, path, out)


if __name__ == "__main__":
    main()
