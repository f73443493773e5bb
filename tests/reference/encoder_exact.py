"""Hidden states, embeddings and scores of the tiny encoders in double precision, straight from the formulas.

Written apart from llama.cpp, so that a misread key shows.
"""

import math
from pathlib import Path

import numpy as np

from tiny_exact import read_tensors, rotate

EPS = 1e-5
erf = np.vectorize(math.erf)


def curve(name: str, x: np.ndarray) -> np.ndarray:
    """An activation; llama.cpp takes the approximation of GELU by tanh, from a table of F16, for both forms."""
    if name == "silu":
        return x / (1 + np.exp(-x))
    if name == "gelu_tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


class Exact:
    """The model at `path`."""

    def __init__(self, model, path: Path) -> None:
        self.model = model
        self.tensors = read_tensors(path)

    def linear(self, name: str, x: np.ndarray) -> np.ndarray:
        """A product with a matrix, and its bias if there is one."""
        return x @ self.tensors[f"{name}.weight"].T + self.tensors.get(f"{name}.bias", 0.0)

    def norm(self, name: str, x: np.ndarray) -> np.ndarray:
        """A norm over the last axis; the value itself without such a tensor."""
        weight = self.tensors.get(f"{name}.weight")
        if weight is None:
            return x
        if self.model.norm == "rms":
            return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS) * weight
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS)
        return x * weight + self.tensors.get(f"{name}.bias", 0.0)

    def heads(self, index: int, x: np.ndarray) -> list[np.ndarray]:
        """Queries, keys and values [rows, heads, head width], normalised and rotated."""
        model, layer = self.model, f"blk.{index}."
        head = model.width // model.heads
        widths = [model.heads * head, model.heads_kv * head, model.heads_kv * head]
        if model.joined:
            parts = np.split(self.linear(layer + "attn_qkv", x), np.cumsum(widths)[:2], axis=-1)
        else:
            parts = [self.linear(f"{layer}attn_{part}", x) for part in "qkv"]
        windowed = bool(model.windowed) and model.windowed[index]
        base = model.window_base if windowed and model.window_base else model.base
        radians = base ** (-np.arange(head // 2) / (head // 2))
        made = []
        for part, y in zip("qkv", parts):
            if model.qk_norm == "rows" and part != "v":
                y = self.norm(f"{layer}attn_{part}_norm", y)
            y = y.reshape(len(x), -1, head)
            if model.qk_norm == "heads" and part != "v":
                y = self.norm(f"{layer}attn_{part}_norm", y)
            if model.positions in ("halves", "adjacent") and part != "v":
                y = rotate(y, radians, 1.0, model.positions == "adjacent")
            made.append(y)
        return made

    def attention(self, index: int, x: np.ndarray) -> np.ndarray:
        """Grouped-query attention: over all rows, those in a window around each, or those up to each."""
        model = self.model
        q, k, v = self.heads(index, x)
        group = model.heads // model.heads_kv
        scores = np.einsum("ihd,jhd->hij", q, np.repeat(k, group, 1)) / math.sqrt(q.shape[-1])
        behind = np.arange(len(x))[:, None] - np.arange(len(x))[None, :]
        if model.positions == "alibi":
            slopes = 2.0 ** (-8.0 * (np.arange(model.heads) + 1) / model.heads)
            scores = scores - slopes[:, None, None] * np.abs(behind)
        hidden = behind < 0 if model.causal else np.zeros_like(behind, bool)
        if model.windowed and model.windowed[index]:
            hidden = np.abs(behind) > model.window // 2
        scores = np.where(hidden, -np.inf, scores)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        mixed = np.einsum("hij,jhd->ihd", weights, np.repeat(v, group, 1)).reshape(len(x), -1)
        return self.linear(f"blk.{index}.attn_output", mixed)

    def feed_forward(self, index: int, x: np.ndarray) -> np.ndarray:
        """With a gate or without."""
        model, layer = self.model, f"blk.{index}."
        if f"{layer}ffn_gate_inp.weight" in self.tensors:
            return self.experts(layer, x)
        up = self.linear(layer + "ffn_up", x)
        if model.gate == "own":
            inner = curve(model.curve, self.linear(layer + "ffn_gate", x)) * up
        elif model.gate == "joined":
            gate, up = np.split(up, 2, axis=-1)
            inner = curve(model.curve, gate) * up
        else:
            inner = curve(model.curve, up)
        return self.linear(layer + "ffn_down", inner)

    def experts(self, layer: str, x: np.ndarray) -> np.ndarray:
        """The best experts of each row, without gates, times their probabilities among all."""
        up, down = (self.tensors[f"{layer}ffn_{part}_exps.weight"] for part in ("up", "down"))
        logits = self.linear(layer + "ffn_gate_inp", x)
        weights = np.exp(logits - logits.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        made = np.einsum("erc,ic->ier", up, x)
        made = np.einsum("ecr,ier->iec", down, curve(self.model.curve, made))
        chosen = np.argsort(-logits, -1)[:, : self.model.used]
        weights = np.where((chosen[:, :, None] == np.arange(len(up))).any(1), weights, 0.0)
        return np.einsum("ie,iec->ic", weights, made)

    def hidden(self, ids: list[int]) -> np.ndarray:
        """Hidden states [positions, width]."""
        model, tensors = self.model, self.tensors
        x = tensors["token_embd.weight"][ids] * model.embedding_scale
        if model.types:
            x = x + tensors["token_types.weight"][0]
        if model.positions == "table":
            x = x + tensors["position_embd.weight"][: len(ids)]
        x = self.norm("token_embd_norm", x)
        for index in range(model.layers):
            layer = f"blk.{index}."
            if model.post_norm:
                sum_ = self.norm(layer + "attn_output_norm", x + self.attention(index, x))
                x = self.norm(layer + "attn_norm_2", sum_ + x) if model.second_norm else sum_
                x = self.norm(layer + "layer_output_norm", x + self.feed_forward(index, x))
                continue
            attended = self.attention(index, self.norm(layer + "attn_norm", x))
            x = x + self.norm(layer + "post_attention_norm", attended)
            fed = self.feed_forward(index, self.norm(layer + "ffn_norm", x))
            x = x + self.norm(layer + "post_ffw_norm", fed)
        return self.norm(model.last_norm, x) if model.last_norm else x

    def scores(self, hidden: np.ndarray) -> np.ndarray:
        """What the head makes of a text's hidden states."""
        model = self.model
        x = {"first": hidden[0], "mean": hidden.mean(0), "last": hidden[-1]}[model.rank_input]
        for role in model.rank:
            x = self.linear(role, x)
            if role == "cls":
                x = curve("gelu", x) if model.rank_norm else np.tanh(x)
                x = self.norm("cls.norm", x)
        if model.arch == "qwen3":
            x = np.exp(x - x.max())
            x /= x.sum()
        return x

    def projected(self, hidden: np.ndarray) -> np.ndarray:
        """The mean of the hidden states, projected."""
        x = hidden.mean(0)
        for number in range(len(self.model.dense)):
            x = self.linear(f"dense_{number + 2}", x)
        return x
