"""The tiny models' logits in double precision, straight from the formulas.

Written apart from llama.cpp, so that a misread key shows, and so that llama.cpp's own rounding
can be told from an error.
"""

import math
import re
from pathlib import Path

import gguf
import numpy as np

SPLIT_NAME = re.compile(r"-00001-of-(\d{5})\.gguf$")


def read_tensors(path: Path) -> dict[str, np.ndarray]:
    """Every tensor of the file or of all its parts, in double precision."""
    match = SPLIT_NAME.search(path.name)
    parts = [path]
    if match:
        stem, count = path.name[: match.start()], int(match[1])
        parts = [path.with_name(f"{stem}-{i:05}-of-{count:05}.gguf") for i in range(1, count + 1)]
    found = {
        tensor.name: gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float64)
        for part in parts
        for tensor in gguf.GGUFReader(part).tensors
    }
    # A factor on a product is one on its matrix.
    for name in [name for name in found if name.endswith(".scale")]:
        found[name.removesuffix("scale") + "weight"] *= found.pop(name)
    return found


def rms_norm(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """x / sqrt(mean(x²) + 1e-5) · weight over the last axis."""
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weight


def angles(model, factors: np.ndarray, windowed: bool) -> tuple[np.ndarray, float]:
    """Radians per position of each pair, and the factor on the rotated vector's length."""
    half = model.head_width // 2
    base = 10000.0 if windowed and model.arch == "gemma3" else model.rope_base
    if windowed and model.rope_base_window:
        base = model.rope_base_window
    plain = base ** (-np.arange(half) / half) / factors
    if not model.scaling or (windowed and model.arch in ("gemma3", "olmo2")):
        return plain, 1.0
    slow = plain / model.scaling_factor
    if model.scaling == "linear":
        return slow, 1.0

    def pair_turning(times: float) -> float:
        return model.head_width * math.log(model.scaling_context / (times * 2 * math.pi)) / (2 * math.log(base))

    low, high = max(0, math.floor(pair_turning(32))), min(model.head_width - 1, math.ceil(pair_turning(1)))
    keep = 1 - np.clip((np.arange(half) - low) / max(0.001, high - low), 0, 1)
    return slow * (1 - keep) + plain * keep, 1 + 0.1 * math.log(model.scaling_factor)


def rotate(x: np.ndarray, radians: np.ndarray, length: float, adjacent: bool) -> np.ndarray:
    """RoPE over [positions, heads, head_width]; pairs are (2i, 2i+1) or (i, i + half)."""
    turn = np.arange(len(x))[:, None, None] * radians
    cos, sin = np.cos(turn) * length, np.sin(turn) * length
    half = x.shape[-1] // 2
    first, second = (x[..., 0::2], x[..., 1::2]) if adjacent else (x[..., :half], x[..., half:])
    turned = first * cos - second * sin, first * sin + second * cos
    return np.stack(turned, -1).reshape(x.shape) if adjacent else np.concatenate(turned, -1)


def has_window(model, index: int) -> bool:
    """Whether a layer has a sliding window."""
    if model.windowed:
        return model.windowed[index]
    every = {"gemma2": 2, "gemma3": 6}.get(model.arch, 1)
    return model.arch.startswith("gemma") and (index + 1) % every != 0


def attention(model, layer, x: np.ndarray, factors: np.ndarray, index: int) -> np.ndarray:
    """Causal grouped-query attention of one layer on normalised rows."""
    rows = len(x)
    windowed = has_window(model, index)

    def project(part: str, heads: int) -> np.ndarray:
        y = x @ layer(f"attn_{part}.weight").T
        if model.qkv_bias:
            y = y + layer(f"attn_{part}.bias")
        if model.qk_norm == "rows" and part != "v":
            y = rms_norm(y, layer(f"attn_{part}_norm.weight"))
        y = y.reshape(rows, heads, model.head_width)
        if model.qk_norm == "heads" and part != "v":
            y = rms_norm(y, layer(f"attn_{part}_norm.weight"))
        return y

    q, k, v = project("q", model.heads), project("k", model.heads_kv), project("v", model.heads_kv)
    radians, length = angles(model, factors, windowed)
    adjacent = model.arch in ("llama", "internlm2", "smollm3", "granite", "minicpm")
    if not model.rotated or model.rotated[index]:
        q, k = rotate(q, radians, length, adjacent), rotate(k, radians, length, adjacent)
    group = model.heads // model.heads_kv
    scale = model.score_scale or 1 / math.sqrt(model.head_width)
    scores = np.einsum("ihd,jhd->hij", q, np.repeat(k, group, 1)) * scale
    if model.softcap_attention:
        scores = model.softcap_attention * np.tanh(scores / model.softcap_attention)
    behind = np.arange(rows)[:, None] - np.arange(rows)[None, :]
    hidden = (behind < 0) | ((behind >= model.window) if windowed else False)
    scores = np.where(hidden, -np.inf, scores)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    mixed = np.einsum("hij,jhd->ihd", weights, np.repeat(v, group, 1))
    return mixed.reshape(rows, -1) @ layer("attn_output.weight").T


def feed_forward(gemma: bool, layer, x: np.ndarray) -> np.ndarray:
    """Gated feed-forward: SiLU, or GELU by tanh in Gemma."""
    gate, up = x @ layer("ffn_gate.weight").T, x @ layer("ffn_up.weight").T
    if gemma:
        gate = 0.5 * gate * (1 + np.tanh(math.sqrt(2 / math.pi) * (gate + 0.044715 * gate**3)))
    else:
        gate = gate / (1 + np.exp(-gate))
    return (gate * up) @ layer("ffn_down.weight").T


def scales(model) -> tuple[float, float, float]:
    """Factors on embeddings and on what blocks add, and the divisor of logits; MiniCPM has its own where a file has none."""
    minicpm = model.arch == "minicpm"
    embedding = math.sqrt(model.width) if model.arch.startswith("gemma") else 12 if minicpm else 1
    residual = 1.4 / math.sqrt(model.layers) if minicpm else 1
    logit = model.width / 256 if minicpm else 1
    return model.embedding_scale or embedding, model.residual_scale or residual, model.logit_scale or logit


def forward(model, path: Path, ids: list[int]) -> np.ndarray:
    """Logits [positions, vocabulary] of the model at `path`."""
    tensors = read_tensors(path)
    gemma = model.arch.startswith("gemma")
    factors = tensors.get("rope_freqs.weight", np.ones(model.head_width // 2))
    embedding = tensors["token_embd.weight"]
    embedding_scale, residual, logit_scale = scales(model)
    x = embedding[ids] * embedding_scale
    for index in range(model.layers):
        def layer(name: str) -> np.ndarray:
            return tensors[f"blk.{index}.{name}"]

        def norm(which: int, y: np.ndarray) -> np.ndarray:
            name = model.norms[which]
            return rms_norm(y, layer(f"{name}.weight")) if name else y

        x = x + residual * norm(1, attention(model, layer, norm(0, x), factors, index))
        x = x + residual * norm(3, feed_forward(gemma, layer, norm(2, x)))
    rows = rms_norm(x, tensors["output_norm.weight"]) @ tensors.get("output.weight", embedding).T / logit_scale
    if model.softcap_logits:
        rows = model.softcap_logits * np.tanh(rows / model.softcap_logits)
    return rows
