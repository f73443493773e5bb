"""The models of families.py: what each one's file states and has, and what must move its logits."""

from collections.abc import Callable
from dataclasses import dataclass, field

OUTPUT = r"^output\.weight"
BIAS = r"\.bias$"
QKV_BIAS = r"attn_[qkv]\.bias$"


@dataclass
class Family:
    """One model. Its keys have no prefix of the architecture; None removes one of those of all models."""

    name: str
    arch: str
    tests: str
    keys: dict = field(default_factory=dict)
    bare: bool = False  # only these keys, as a converter writes them, not all that llama.cpp's saver writes
    kept: tuple[str, ...] = ()  # patterns of optional tensors that the file has
    without: tuple[str, ...] = ()  # patterns of other tensors that it lacks
    joined: bool = False  # queries, keys and values in one tensor
    more: dict = field(default_factory=dict)  # shapes of tensors that llama.cpp takes only from a file
    asked: dict = field(default_factory=dict)  # keys that differ while llama.cpp is asked for its tensors
    values: dict = field(default_factory=dict)  # values of tensors that are not random
    gains: dict = field(default_factory=dict)  # patterns of tensors, and factors on them
    halves: tuple[str, ...] = ()  # patterns of tensors that are F16
    unread: tuple[str, ...] = ()  # patterns of tensors that change nothing
    gelu: bool = False  # llama.cpp takes it from a table of F16
    rows: int = 40
    micro_batch: int = 512
    vocabulary: int = 128
    seed: int = 0  # another one has other random values
    changes: dict = field(default_factory=dict)  # what must move the logits: other values of keys
    equal: Callable | None = None  # of keys and tensors: those of a model that is the same, which llama.cpp computes in its place
    equal_arch: str = ""  # the architecture of that one


HEAD_16 = {"attention.key_length": 16, "attention.value_length": 16}
YARN = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0}
PARTIAL = {"rope.dimension_count": 4}
ALL_ROTATED = {"all dimensions rotate": {"rope.dimension_count": 8}}
OLD = {"context_length": 64, "attention.head_count_kv": 4}
TWO_WINDOWS = {"attention.sliding_window": 8}
NO_WINDOWS = {"no windows": {"attention.sliding_window": 256}}
OTHER_BASE = {"base of windows": {"rope.freq_base_swa": 500.0}}


def deep(layers: int) -> dict:
    """Keys of a narrow model of many layers."""
    return {"block_count": layers, "embedding_length": 16, "feed_forward_length": 8, "attention.head_count": 2,
            "attention.head_count_kv": 1}


def small_steps(gain: float) -> dict:
    """So that many layers do not multiply rounding errors."""
    return {r"(attn_output|ffn_down)\.weight": gain}


def mtp_block(layer: int) -> dict:
    """The tensors of a block of GLM 4 that predicts a second token, of width 32, 4 heads on 2, hidden 48."""
    norms = ["attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm", "nextn.enorm", "nextn.hnorm",
             "nextn.shared_head_norm"]
    matrices = {"attn_q": [32, 32], "attn_k": [32, 16], "attn_v": [32, 16], "attn_output": [32, 32], "ffn_up": [32, 96],
                "ffn_down": [48, 32], "nextn.eh_proj": [64, 32], "nextn.embed_tokens": [32, 128],
                "nextn.shared_head_head": [32, 128]}
    shapes = {**{norm: [32] for norm in norms}, **matrices}
    return {f"blk.{layer}.{name}.weight": shape for name, shape in shapes.items()}


FIRST = [
    Family("phi3", "phi3", "6 of 8 dimensions rotate, queries, keys and values in one tensor, gate and up in one; the window of "
           "the key is not used", {"rope.dimension_count": 6, **TWO_WINDOWS}, without=(OUTPUT,), joined=True,
           changes=ALL_ROTATED),
    Family("phi3-longrope-long", "phi3", "the context is longer than the original one: long factors of 3 frequencies, and a "
           "factor on what is rotated", {"rope.dimension_count": 6, "rope.scaling.original_context_length": 64,
                                         "rope.scaling.attn_factor": 1.19}, bare=True, kept=("^rope_factors",), joined=True,
           unread=("short",),
           changes={"no factor": {"rope.scaling.attn_factor": None},
                    "short factors": {"rope.scaling.original_context_length": 256}}),
    Family("phi3-longrope-short", "phi3", "the context is the original one: short factors", {
        "rope.scaling.original_context_length": 256, "rope.scaling.attn_factor": 1.19}, kept=("^rope_factors",),
           joined=True, unread=("long",), changes={"long factors": {"rope.scaling.original_context_length": 64}}),
    Family("phi2", "phi2", "attention and feed-forward beside each other on one layer norm, half of the dimensions rotate, "
           "all biases, that of the output too", PARTIAL, kept=(BIAS,), joined=True, gelu=True, changes=ALL_ROTATED),
    Family("mistral3", "mistral3", "YaRN with a multiplier of its logarithm and other betas; scores grow with the position, in "
           "steps of the original context; 72 tokens", {
               **HEAD_16, **YARN, "rope.scaling.original_context_length": 32, "rope.scaling.yarn_log_multiplier": 0.4,
               "rope.scaling.yarn_beta_fast": 2.0, "rope.scaling.yarn_beta_slow": 0.25, "attention.temperature_scale": 0.5},
           without=(OUTPUT,), rows=72,
           changes={"no temperature": {"attention.temperature_scale": 0.0},
                    "no multiplier": {"rope.scaling.yarn_log_multiplier": 0.0},
                    "other betas": {"rope.scaling.yarn_beta_fast": 32.0, "rope.scaling.yarn_beta_slow": 1.0},
                    "no YaRN": {"rope.scaling.type": "none"}}),
    Family("mistral3-biases", "mistral3", "all optional biases, and factors on frequencies", bare=True,
           kept=(BIAS, "^rope_freqs")),
    Family("qwen2vl", "qwen2vl", "sections of rotary dimensions, which text does not need; biases of queries, keys and values",
           {"rope.dimension_sections": [2, 1, 1, 0]}, kept=(QKV_BIAS,)),
    Family("qwen3vl", "qwen3vl", "the same with norms of heads, `key_length` 16, tied; deep-stack layers of images",
           {**HEAD_16, "rope.dimension_sections": [3, 3, 2, 0], "n_deepstack_layers": 1}, without=(OUTPUT,)),
    Family("gemma", "gemma", "embeddings × √width, GELU, `key_length` 16", HEAD_16, gains={"^token_embd": 0.4}, gelu=True),
    Family("glm4", "glm4", "norms before and after both blocks, half of the dimensions rotate in neighbouring pairs, gate and up "
           "in one tensor, biases of queries, keys and values", PARTIAL, kept=(QKV_BIAS,), changes=ALL_ROTATED),
    Family("glm4-mtp", "glm4", "without biases, tied; a block more that predicts a second token, which is left out",
           {**PARTIAL, "block_count": 3, "nextn_predict_layers": 1}, bare=True, without=(OUTPUT,), more=mtp_block(2),
           asked={"block_count": 2, "nextn_predict_layers": None}, unread=(r"^nextn",)),
    Family("exaone", "exaone", "factors on frequencies of halves", kept=("^rope_freqs",)),
    Family("hunyuan-dense", "hunyuan-dense", "norms of heads after the rotation", without=(OUTPUT,)),
    Family("cohere2", "cohere2", "attention and feed-forward beside each other on one layer norm without bias; windows of 8 on "
           "three of four layers, of which only those rotate; logits × 0.25", {
               "block_count": 4, "attention.sliding_window": 8, "logit_scale": 0.25},
           changes={"no factor on logits": {"logit_scale": 1.0}, **NO_WINDOWS}),
    Family("cohere2-period", "cohere2", "windows on each second layer, as a number; biases of queries, keys and values", {
        "block_count": 3, "attention.sliding_window": 8, "attention.sliding_window_pattern": 2, "logit_scale": 0.25},
           bare=True, kept=(QKV_BIAS,), changes={**NO_WINDOWS, "period": {"attention.sliding_window_pattern": 3}}),
    Family("command-r", "command-r", "the same without windows: all layers rotate, in neighbouring pairs", {"logit_scale": 0.25},
           changes={"no factor on logits": {"logit_scale": 1.0}}),
    Family("command-r-plus", "command-r", "64 layers: layer norms of heads, each with weights of its own", {
        **deep(64), "logit_scale": 0.5}, bare=True, gains=small_steps(0.1)),
    Family("nemotron", "nemotron", "layer norms with biases, squared ReLU without gate, half of the dimensions rotate", PARTIAL,
           changes=ALL_ROTATED),
    Family("nemotron-biases", "nemotron", "all optional biases", PARTIAL, bare=True, kept=(BIAS,)),
    Family("stablelm", "stablelm", "layer norms with biases, a gate, half of the dimensions rotate; biases of queries, keys and "
           "values", PARTIAL, kept=(QKV_BIAS,), without=("attn_[qk]_norm",), changes=ALL_ROTATED),
    Family("stablelm-parallel", "stablelm", "without a norm before the feed-forward, which reads the norm of attention; layer "
           "norms of heads, each with weights of its own", PARTIAL, bare=True, without=("ffn_norm",)),
    Family("gptneox", "gptneox", "attention and feed-forward beside each other on two layer norms, half of the dimensions rotate, "
           "all biases", {**PARTIAL, "use_parallel_residual": True}, kept=(BIAS,), gelu=True,
           changes={**ALL_ROTATED, "sequential": {"use_parallel_residual": False}}),
    Family("gptneox-sequential", "gptneox", "the same one after the other", {**PARTIAL, "use_parallel_residual": False},
           bare=True, kept=(BIAS,), gelu=True),
    Family("starcoder2", "starcoder2", "all biases, GELU without gate, tied", kept=(BIAS,), without=(OUTPUT,), gelu=True),
    Family("falcon", "falcon", "one head of keys; attention and feed-forward beside each other on one layer norm; no biases of "
           "matrices; tied", {"attention.head_count_kv": 1}, without=(OUTPUT, "attn_norm_2"), gelu=True),
    Family("falcon-two-norms", "falcon", "attention reads `attn_norm_2` and the feed-forward `attn_norm`", bare=True, gelu=True),
    Family("arcee", "arcee", "squared ReLU without gate, YaRN, neighbouring pairs", {
        **HEAD_16, **YARN, "rope.scaling.original_context_length": 64}, changes={"no YaRN": {"rope.scaling.type": "none"}}),
    Family("ernie4_5", "ernie4_5", "as llama, tied", without=(OUTPUT,)),
    Family("ernie4_5-biases", "ernie4_5", "with biases of queries, keys and values", bare=True, kept=(QKV_BIAS,)),
    Family("orion", "orion", "llama with layer norms and rotation by halves"),
    Family("xverse", "xverse", "as llama"),
    Family("baichuan", "baichuan", "32 layers: they rotate", deep(32), gains=small_steps(0.15)),
    Family("baichuan-alibi", "baichuan", "40 layers: ALiBi instead", deep(40), bare=True, gains=small_steps(0.15)),
    Family("olmo", "olmo", "layer norms without weights; queries, keys and values between -1.25 and 1.25",
           {"attention.clamp_kqv": 1.25}, changes={"no clamp": {"attention.clamp_kqv": 0.0}}),
    Family("olmo-tied", "olmo", "the same without bounds, tied", bare=True, without=(OUTPUT,)),
    Family("apertus", "apertus", "xIELU with constants per layer, norms of heads, factors on frequencies", {
        "xielu.alpha_n": [0.8, 0.3], "xielu.alpha_p": [0.9, 1.4], "xielu.beta": [0.5, 0.3], "xielu.eps": [-1e-6, -1e-6]},
           kept=("^rope_freqs",),
           changes={what: {f"xielu.{what}": [1.6, 1.6]} for what in ("alpha_n", "alpha_p", "beta")}),
    Family("gpt2", "gpt2", "a table of positions, all biases, GELU without gate, tied", OLD, kept=(BIAS,), without=(OUTPUT,),
           gelu=True),
    Family("starcoder", "starcoder", "the same with one head of keys", {"context_length": 64, "attention.head_count_kv": 1},
           bare=True, kept=(BIAS,), gelu=True),
    Family("mpt", "mpt", "ALiBi, bounds of queries, keys and values, layer norms without biases, tied", {
        "attention.max_alibi_bias": 8.0, "attention.clamp_kqv": 1.25},
           without=(OUTPUT, BIAS, "^position_embd", "attn_k_norm"),
           changes={"no clamp": {"attention.clamp_kqv": 0.0}, "no ALiBi": {"attention.max_alibi_bias": 0.0},
                    "other slopes": {"attention.max_alibi_bias": 4.0}}),
    Family("mpt-positions", "mpt", "a table of positions instead of ALiBi, all biases", OLD, bare=True, kept=(BIAS,),
           without=("attn_[qk]_norm",), gelu=True),
    Family("bloom", "bloom", "a layer norm of embeddings, ALiBi with 6 heads, all biases, tied", {
        "embedding_length": 48, "attention.head_count": 6, "attention.head_count_kv": 3}, kept=(BIAS,), without=(OUTPUT,),
           gelu=True),
    Family("refact", "refact", "ALiBi, one head of keys, a gate", {"attention.head_count_kv": 1}, without=(OUTPUT,)),
    Family("granite_swa", "granite_swa", "the factors of granite, sinks of scores, windows of 8 and rotation by lists", {
        "block_count": 4, "logit_scale": 4.0, "residual_scale": 0.5, "embedding_scale": 3.0, "attention.scale": 0.5,
        "attention.sliding_window": 8, "attention.sliding_window_pattern": [True, True, False, True],
        "attention.rope_pattern": [True, False, True, True]}, without=(OUTPUT,),
           changes={**NO_WINDOWS, "all rotate": {"attention.rope_pattern": [True] * 4}, "scores": {"attention.scale": 0.25},
                    "blocks": {"residual_scale": 1.0}, "embeddings": {"embedding_scale": 1.0}, "logits": {"logit_scale": 1.0},
                    "windows of others": {"attention.sliding_window_pattern": [True, False, True, True]}}),
    Family("bitnet", "bitnet", "norms inside both blocks, a scale of each matrix, tied", kept=(r"\.scale$",),
           unread=(r"(attn_v|ffn_up)\.scale",)),
    Family("minicpm3", "minicpm3", "latent keys and values that are expanded, latent queries, 4 of 12 dimensions rotate; "
           "embeddings × 12, what blocks add × 1.4/√layers, logits × 256/width", {
               "attention.head_count_kv": 4, "attention.q_lora_rank": 24, "attention.kv_lora_rank": 16,
               "attention.key_length": 12, "attention.value_length": 8, "rope.dimension_count": 4},
           gains={"^token_embd": 0.08, OUTPUT: 0.125}),
    Family("minicpm3-longrope", "minicpm3", "long factors, tied", {
        "attention.head_count_kv": 4, "attention.q_lora_rank": 24, "attention.kv_lora_rank": 16,
        "attention.key_length": 12, "attention.value_length": 8, "rope.dimension_count": 4,
        "rope.scaling.original_context_length": 64}, bare=True, kept=("^rope_factors",), without=(OUTPUT,),
           gains={"^token_embd": 0.08}, unread=("short",)),
    Family("plm", "plm", "latent keys and values that are expanded, squared ReLU without gate, tied", {
        "attention.head_count_kv": 4, "attention.kv_lora_rank": 16, "attention.key_length": 12, "attention.value_length": 8,
        "rope.dimension_count": 4}, micro_batch=1),
]

GEMMA_4 = {
    "attention.key_length": 16, "attention.value_length": 16, "attention.key_length_swa": 8, "attention.value_length_swa": 8,
    "rope.dimension_count": 16, "rope.dimension_count_swa": 8, "rope.freq_base_swa": 100.0, "attention.sliding_window": 8,
    "final_logit_softcapping": 4.0}
GEMMA_4_CHANGES = {"no cap": {"final_logit_softcapping": 0.0}, **NO_WINDOWS, **OTHER_BASE}
UNSCALED = {r"attn_[qk]_norm": 0.5}  # scores that no head size divides
GEMMA_3N_STEPS = {**UNSCALED, r"(post_(attention|ffw)|laurel_post|per_layer_post|^post)_norm": 0.3, r"altup_(predict|correct)_coef": 0.3}
PROPORTIONAL = {"rope_freqs.weight": [1.0] * 2 + [1e30] * 6}

SECOND = [
    Family("gemma4", "gemma4", "as E2B: embeddings of each layer, the last two of seven layers read the keys and values of others, "
           "windows of 8 on all but layers 4 and 6, whose heads are wider and rotate by a quarter; values normed without weight, "
           "no factor on scores, a factor on each layer", {
               **GEMMA_4, "block_count": 7, "attention.head_count": 2, "attention.head_count_kv": 1, "embedding_length_per_layer_input": 8,
               "attention.shared_kv_layers": 2, "feed_forward_length": [16, 16, 16, 16, 16, 32, 32],
               "attention.sliding_window_pattern": [True, True, True, True, False, True, False]},
           bare=True, kept=("^rope_freqs",), without=(OUTPUT, r"blk\.[56]\.attn_(k|v|k_norm)\."), values=PROPORTIONAL,
           gains={**UNSCALED, "^token_embd": 0.4, "^per_layer_token_embd": 7**0.5}, gelu=True, changes=GEMMA_4_CHANGES),
    Family("gemma4-keys-as-values", "gemma4", "as 31B: layers without windows have no values of their own, but those of keys "
           "before their norm, and fewer heads; no embeddings of layers", {
               **GEMMA_4, "block_count": 4, "attention.head_count_kv": [2, 1, 2, 1], "embedding_length_per_layer_input": 0,
               "attention.sliding_window_pattern": [True, False, True, False]},
           kept=("^rope_freqs",), without=(OUTPUT, r"blk\.[13]\.attn_v\."), values=PROPORTIONAL, gains={**UNSCALED, "^token_embd": 0.4}, gelu=True,
           changes=GEMMA_4_CHANGES),
    Family("gemma3n", "gemma3n", "four streams, low-rank branches beside attention, embeddings of each layer (256 wide, by "
           "llama.cpp's constant), sparse gates, windows on all but layer 4, a cap of 30 on logits", {
               "embedding_length": 16, "block_count": 5, "feed_forward_length": 32, "attention.head_count": 2,
               "attention.head_count_kv": 1, "attention.sliding_window": 8, "rope.freq_base_swa": 100.0,
               "final_logit_softcapping": 30.0}, gains={
                   **UNSCALED, "^token_embd": 0.4, "^output.weight": 4.0, "^per_layer_token_embd": 5**0.5,
                   r"(post_(attention|ffw)|laurel_post|\.post)_norm": 0.3},
           halves=("^per_layer_token_embd",), gelu=True, vocabulary=64, changes={**NO_WINDOWS, **OTHER_BASE}),
    Family("gemma3n-shared", "gemma3n", "22 layers, of which the last two read the keys and values of layers 18 and 19, and only "
           "the first ten have sparse gates; tied", {
               "embedding_length": 16, "block_count": 22, "feed_forward_length": 16, "attention.head_count": 2,
               "attention.head_count_kv": 1, "attention.sliding_window": 8, "rope.freq_base_swa": 100.0,
               "final_logit_softcapping": 30.0,
               "attention.sliding_window_pattern": [layer not in (4, 9, 14, 19, 21) for layer in range(22)]},
           without=(OUTPUT,), halves=("^per_layer_token_embd",), gelu=True, vocabulary=32,
           gains={"^token_embd": 0.4, "^per_layer_token_embd": 22**0.5, **GEMMA_3N_STEPS}),
    Family("codeshell", "codeshell", "all biases", kept=(BIAS,), joined=True, gelu=True),
    Family("qwen", "qwen", "queries, keys and values in one tensor with biases; each of gate and up is half of what the key says", {
        "feed_forward_length": 96, "attention.head_count_kv": 4}, kept=(BIAS,)),
    Family("chatglm", "chatglm", "gate and up in one tensor, biases of queries, keys and values in one, half of the dimensions "
           "rotate in neighbouring pairs", PARTIAL, kept=(QKV_BIAS,), joined=True, changes=ALL_ROTATED),
    Family("plamo", "plamo", "attention and feed-forward beside each other on one norm, a gate"),
    Family("jais", "jais", "ALiBi with 6 heads, scores / head size, a gate, all biases", {
        "embedding_length": 48, "attention.head_count": 6, "attention.head_count_kv": 6, "attention.max_alibi_bias": 8.0},
           kept=(BIAS,), changes={"no ALiBi": {"attention.max_alibi_bias": 0.0}}),
    Family("jais2", "jais2", "layer norms with biases, squared ReLU without gate, all biases, rotation", kept=(BIAS,)),
    Family("openelm", "openelm", "heads and widths per layer, norms of heads, tied", {
        "attention.head_count": [4, 2], "attention.head_count_kv": [2, 1], "feed_forward_length": [32, 64],
        "attention.key_length": 8, "attention.value_length": 8}),
    Family("deci", "deci", "layers whose attention is one matrix, that have no attention, and that have nothing; factors on "
           "frequencies", {
               "block_count": 5, "attention.head_count": [4, 4, 0, 0, 4], "attention.head_count_kv": [2, 0, 0, 0, 1],
               "feed_forward_length": [48, 32, 48, 0, 16], "attention.key_length": 8, "attention.value_length": 8},
           kept=("^rope_freqs",), without=(OUTPUT,)),
    Family("pangu-embedded", "pangu-embedded", "biases of queries, keys, values and of attention", kept=(BIAS,),
           without=(r"ffn_(gate|up|down)\.bias",)),
    Family("maincoder", "maincoder", "norms of heads after the rotation of neighbouring pairs, tied", without=(OUTPUT,)),
    Family("nanbeige", "nanbeige", "its two layers run twice, with keys and values of their own, and the last norm between", {
        "num_loops": 2}, changes={"no norm between": {"skip_loop_final_norm": True}, "once": {"num_loops": 1}}),
    Family("muse-glimmer", "muse-glimmer", "a norm of embeddings without weights, gates of attention, norms before and after both "
           "blocks, windows of 8 on three of four layers, of which only those rotate, a factor and a cap on logits", {
               **TWO_WINDOWS, "block_count": 4, "logit_scale": 2.0, "final_logit_softcapping": 4.0,
               "rope.freq_base_swa": 100.0}, changes={**NO_WINDOWS, **OTHER_BASE, "logits": {"logit_scale": 1.0},
                                                      "no cap": {"final_logit_softcapping": 0.0}}),
    Family("plamo3", "plamo3", "norms before and after both blocks, norms of heads, queries, keys and values and gate and up in one "
           "tensor each, windows of 8 on layers 0 and 2, with a base of their own", {
               **TWO_WINDOWS, "block_count": 3, "attention.sliding_window_pattern": 2, "rope.freq_base_swa": 100.0},
           changes={**NO_WINDOWS, **OTHER_BASE}),
    Family("talkie", "talkie", "norms without weights, also of embeddings, which each layer adds again; norms of heads after the "
           "rotation with one factor per head of queries; a factor on logits", {"logit_scale": 2.0}, gains={"layer_output_scale": 0.5},
           changes={"logits": {"logit_scale": 1.0}}),
    Family("spark2_5", "spark2_5", "gates of heads, GELU with a gate, windows of 8 by a list, with a base of their own", {
        **TWO_WINDOWS, "block_count": 3, "attention.sliding_window_pattern": [True, False, True],
        "rope.freq_base_swa": 100.0}, gelu=True, changes={**NO_WINDOWS, **OTHER_BASE}),
    Family("hunyuan_vl", "hunyuan_vl", "as hunyuan-dense, with sections, and a base that grows with alpha", {
        "rope.dimension_sections": [2, 1, 1, 0], "rope.scaling.alpha": 8.0},
           changes={"no alpha": {"rope.scaling.alpha": 0.0}}),
    Family("cogvlm", "cogvlm", "queries, keys and values in one tensor; the matrices for images change nothing", {
        "attention.head_count_kv": 4}, unread=("^vis_",)),
    Family("paddleocr", "paddleocr", "as ernie4_5, with sections", {"rope.dimension_sections": [2, 1, 1, 0]}),
    Family("lfm2", "lfm2", "gated convolutions over 3 rows on all layers but 1 and 3, whose heads have norms; tied", {
        "block_count": 5, "attention.head_count_kv": [0, 2, 0, 1, 0], "shortconv.l_cache": 3}, without=(OUTPUT, "^dense_2")),
    Family("lfm2-windows", "lfm2", "convolutions over 4 rows between layers with windows of 8; output matrix", {
        "block_count": 4, "attention.head_count_kv": [2, 0, 0, 2], "shortconv.l_cache": 4, "attention.sliding_window": 8},
           bare=True, without=("^dense_2",), changes=NO_WINDOWS),
    Family("hrm_text", "hrm_text", "two stacks of one layer that run three times, in two cycles", {
        "block_count": 6, "hrm.layers_per_stack": 1, "hrm.h_cycles": 2, "hrm.l_cycles": 2, "embedding_scale": 3.0}),
]

CAPS = {"attn_logit_softcapping": 5.0, "final_logit_softcapping": 4.0}
SAVED = [
    Family("llama-keys", "llama", "the keys that llama.cpp's saver writes; all optional biases", kept=(BIAS,)),
    Family("internlm2-keys", "internlm2", "the same keys"),
    Family("qwen2-keys", "qwen2", "the same keys; biases of queries, keys and values, tied", kept=(QKV_BIAS,), without=(OUTPUT,)),
    Family("qwen3-keys", "qwen3", "the same keys", HEAD_16),
    Family("gemma2-keys", "gemma2", "the same keys; caps on scores and logits, windows on each second layer", {
        **TWO_WINDOWS, **CAPS}, gains={"^token_embd": 0.4}, gelu=True,
           changes={**NO_WINDOWS, **{f"no {key}": {key: 0.0} for key in CAPS}}),
    Family("gemma3-keys", "gemma3", "the same keys; windows by a list, with a base of their own", {
        **TWO_WINDOWS, "block_count": 3, "attention.sliding_window_pattern": [True, False, True],
        "rope.freq_base_swa": 100.0}, gains={"^token_embd": 0.4}, gelu=True, changes={**NO_WINDOWS, **OTHER_BASE}),
    Family("granite-keys", "granite", "the same keys; all four factors, rotation", {
        "logit_scale": 4.0, "residual_scale": 0.5, "embedding_scale": 3.0, "attention.scale": 0.5,
        "rope.scaling.finetuned": True}, without=(OUTPUT,), changes={"no rotation": {"rope.scaling.finetuned": False}}),
    Family("minicpm-keys", "minicpm", "the same keys; factors on embeddings, blocks and logits", {
        "logit_scale": 0.5, "residual_scale": 0.5, "embedding_scale": 3.0}, without=(OUTPUT,)),
    Family("smollm3-keys", "smollm3", "the same keys; layer 3 does not rotate", {"block_count": 4}, gains=small_steps(0.5)),
    Family("olmo2-keys", "olmo2", "the same keys"),
    Family("exaone4-keys", "exaone4", "the same keys"),
    Family("seed_oss-keys", "seed_oss", "the same keys; biases of queries, keys and values", kept=(QKV_BIAS,)),
]

FAMILIES = FIRST + SECOND + SAVED
