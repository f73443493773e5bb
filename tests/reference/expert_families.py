"""The models of families.py that have mixtures of experts, and the list of all models."""

import re

import numpy as np

from family_list import (ALL_ROTATED, BIAS, GEMMA_4, GEMMA_4_CHANGES, HEAD_16, NO_WINDOWS, OTHER_BASE, OUTPUT, PARTIAL, PROPORTIONAL,
                         QKV_BIAS, TWO_WINDOWS, UNSCALED, YARN, Family)
from family_list import FAMILIES as DENSE
from recurrent_families import RECURRENT

EXPERTS = {"expert_count": 8, "expert_used_count": 3}
OWN_WIDTH = {**EXPERTS, "expert_feed_forward_length": 12}
SPLIT = {"feed_forward_length": 72}  # each of the three experts of a row has a third of it
SHARED = {"expert_shared_count": 2}
STATED = {**OWN_WIDTH, **SHARED, "expert_gating_func": 2, "expert_weights_norm": True, "expert_weights_scale": 2.5}
ONE_DENSE = {"leading_dense_block_count": 1}
GROUPS = {"expert_group_count": 4, "expert_group_used_count": 2}
MORE_USED = {"four experts": {"expert_used_count": 4}}
OTHER_WEIGHTS = {**MORE_USED, "softmax": {"expert_gating_func": 1}, "not normalised": {"expert_weights_norm": False},
                 "no scale": {"expert_weights_scale": 1.0}}
NO_GROUPS = {"all groups": {"expert_group_count": 1, "expert_group_used_count": 1}}


def predictor(layer: int) -> dict:
    """The tensors of a block of GLM 4.5 that predicts a second token, of width 32, 4 heads on 2, 8 experts of 12."""
    norms = ["attn_norm", "post_attention_norm", "nextn.enorm", "nextn.hnorm", "nextn.shared_head_norm"]
    matrices = {"attn_q": [32, 32], "attn_k": [32, 16], "attn_v": [32, 16], "attn_output": [32, 32], "ffn_gate_inp": [32, 8],
                "ffn_gate_exps": [32, 12, 8], "ffn_up_exps": [32, 12, 8], "ffn_down_exps": [12, 32, 8], "ffn_gate_shexp": [32, 24],
                "ffn_up_shexp": [32, 24], "ffn_down_shexp": [24, 32], "nextn.eh_proj": [64, 32]}
    shapes = {**{norm: [32] for norm in norms}, **matrices}
    return {**{f"blk.{layer}.{name}.weight": shape for name, shape in shapes.items()}, f"blk.{layer}.exp_probs_b.bias": [8]}


def split_gates(layer: int) -> dict:
    """The gates of the experts of a layer, and what they gate, in a tensor each."""
    return {f"blk.{layer}.ffn_{part}_exps.weight": [32, 12, 8] for part in ("gate", "up")}


def predictor_of_step(layer: int) -> dict:
    """The tensors of a block of Step 3.5 that predicts a second token, of width 32, 4 heads of 8 on 2, 8 experts of 12."""
    norms = {"attn_norm": [32], "ffn_norm": [32], "attn_q_norm": [8], "attn_k_norm": [8], "nextn.enorm": [32], "nextn.hnorm": [32],
             "nextn.shared_head_norm": [32]}
    matrices = {"attn_q": [32, 32], "attn_k": [32, 16], "attn_v": [32, 16], "attn_gate": [32, 4], "attn_output": [32, 32],
                "ffn_gate": [32, 48], "ffn_up": [32, 48], "ffn_down": [48, 32], "nextn.eh_proj": [64, 32],
                "nextn.shared_head_head": [32, 128]}
    return {f"blk.{layer}.{name}.weight": shape for name, shape in {**norms, **matrices}.items()}


def with_wider_experts(keys: dict, tensors: dict) -> tuple[dict, dict]:
    """A Qwen 3 whose experts also have the inner values of the small experts that GroveMoE adds to those of each group: as its authors
    compute it, these read the same rows and have the same weights."""
    group, scale = keys["experts_per_group"], keys["expert_group_scale"]
    out = {}
    for name, values in tensors.items():
        if "chexps" in name:
            continue
        match = re.match(r"(blk\.\d+\.ffn_(gate|up|down))_exps(\.weight)", name)
        if match:
            small = np.repeat(tensors[f"{match[1]}_chexps{match[3]}"], group, 0)
            is_down = match[2] == "down"
            values = np.concatenate([values, small * np.float32(scale) if is_down else small], 2 if is_down else 1)
        out[name] = values
    inner = keys["expert_feed_forward_length"] + keys["expert_chunk_feed_forward_length"]
    return {**keys, "expert_feed_forward_length": inner}, out


FIRST = [
    Family("qwen3moe", "qwen3moe", "3 of 8 experts by a softmax over all, their weights normalised; each is a third of what the key of "
           "dense blocks says; norms of heads", {**EXPERTS, **HEAD_16, **SPLIT}),
    Family("qwen2moe", "qwen2moe", "weights that are not normalised, and an expert of all rows with a gate for each row; biases of "
           "queries, keys and values", {**OWN_WIDTH, "expert_shared_feed_forward_length": 40}, kept=(QKV_BIAS,), changes=MORE_USED),
    Family("qwen3vlmoe", "qwen3vlmoe", "as qwen3moe, with sections of rotary dimensions, tied; deep-stack layers of images", {
        **OWN_WIDTH, **HEAD_16, "rope.dimension_sections": [3, 3, 2, 0], "n_deepstack_layers": 1}, without=(OUTPUT,), changes=MORE_USED),
    Family("gpt-oss", "gpt-oss", "experts are chosen by their logits, and weights are the softmax of these; biases of routers and "
           "experts, clamped gates, sinks, windows of 8 on each second layer, YaRN, all biases of attention", {
               **OWN_WIDTH, **TWO_WINDOWS, **YARN, "rope.scaling.original_context_length": 64, "block_count": 3}, kept=(BIAS,),
           gains={r"ffn_(gate|up)_exps": 3.0, "ffn_down_exps": 0.25},
           changes={**MORE_USED, **NO_WINDOWS, "no YaRN": {"rope.scaling.type": "none"}}),
    Family("llama-experts", "llama", "as Mixtral: 3 of 8 experts by a softmax over all, normalised, as wide as a dense block", {
        **EXPERTS, "feed_forward_length": 24}, changes=MORE_USED),
    Family("mistral3-experts", "mistral3", "the same in Mistral's next form", {**EXPERTS, "feed_forward_length": 12}, bare=True,
           without=(OUTPUT,), changes=MORE_USED),
    Family("granite-experts", "granite", "the factors of granite with experts", {
        **EXPERTS, "feed_forward_length": 12, "logit_scale": 4.0, "residual_scale": 0.5, "embedding_scale": 3.0,
        "attention.scale": 0.5, "rope.scaling.finetuned": True}, without=(OUTPUT,), changes=MORE_USED),
    Family("granitemoe", "granitemoe", "the same with an expert of all rows, without a gate, under an architecture of its own, which "
           "always rotates", {
               **EXPERTS, "feed_forward_length": 12, "expert_shared_feed_forward_length": 40, "logit_scale": 4.0, "residual_scale": 0.5,
               "embedding_scale": 3.0, "attention.scale": 0.5, "rope.scaling.finetuned": False}, without=(OUTPUT,),
           changes={**MORE_USED, "blocks": {"residual_scale": 1.0}}),
    Family("granite_swa-experts", "granite_swa", "experts whose gate is joined with what it gates, that of all rows too", {
        **EXPERTS, "feed_forward_length": 12, "expert_shared_feed_forward_length": 40, "logit_scale": 4.0, "residual_scale": 0.5,
        "embedding_scale": 3.0, "attention.sliding_window": 8, "attention.sliding_window_pattern": [True, False],
        "attention.rope_pattern": [True, True]}, without=(OUTPUT,), changes={**MORE_USED, **NO_WINDOWS}),
    Family("glm4moe", "glm4moe", "sigmoids, normalised and scaled; numbers that count for the choice only; an expert of all rows; a "
           "dense layer; half of the dimensions rotate; norms of heads; biases of queries, keys and values; a predictor is left out", {
               **STATED, **ONE_DENSE, **PARTIAL, "block_count": 3, "nextn_predict_layers": 1},
           kept=(QKV_BIAS,), more=predictor(2), asked={"block_count": 2, "nextn_predict_layers": None},
           unread=("^nextn",), changes={**OTHER_WEIGHTS, **ALL_ROTATED}, bare=True),
    Family("glm4moe-defaults", "glm4moe", "what a file says that does not say how weights are made; tied", {
        **OWN_WIDTH, "expert_shared_count": 1}, bare=True, without=(OUTPUT, "attn_[qk]_norm"), changes=MORE_USED),
    Family("deepseek2-joined", "deepseek2", "latent keys and values that are expanded, latent queries; experts of 2 of 4 groups by "
           "sigmoids, a dense layer, YaRN with a factor of its own on scores", {
               **STATED, **ONE_DENSE, **GROUPS, **YARN, "attention.head_count_kv": 4, "attention.q_lora_rank": 24,
               "attention.kv_lora_rank": 16, "attention.key_length": 12, "attention.value_length": 8, "rope.dimension_count": 4,
               "rope.scaling.original_context_length": 64, "rope.scaling.yarn_log_multiplier": 0.0707}, without=("ffn_gate_up_exps",),
               more=split_gates(1), bare=True,
           changes={**OTHER_WEIGHTS, **NO_GROUPS, "no multiplier": {"rope.scaling.yarn_log_multiplier": 0.0}}),
    Family("deepseek2", "deepseek2", "the same with keys and values that are not expanded, joined gates; tied", {
        **STATED, **ONE_DENSE, **GROUPS, **YARN, "attention.head_count_kv": 1, "attention.q_lora_rank": 24, "attention.kv_lora_rank": 16,
        "attention.key_length": 20, "attention.value_length": 16, "attention.key_length_mla": 12, "attention.value_length_mla": 8,
        "rope.dimension_count": 4, "rope.scaling.original_context_length": 64, "rope.scaling.yarn_log_multiplier": 0.1},
           without=(OUTPUT,), bare=True, changes={**OTHER_WEIGHTS, **NO_GROUPS}),
    Family("deepseek", "deepseek", "weights that are not normalised but scaled, a dense layer, an expert of all rows", {
        **OWN_WIDTH, **SHARED, **ONE_DENSE, "expert_weights_scale": 2.0}, seed=4,
           changes={**MORE_USED, "no scale": {"expert_weights_scale": 1.0}}),
    Family("minimax-m2", "minimax-m2", "sigmoids, always normalised; norms of queries and keys over whole rows; half of the dimensions "
           "rotate", {
        **EXPERTS, **PARTIAL, "expert_gating_func": 2, "feed_forward_length": 24, "expert_feed_forward_length": 12},
           changes={**MORE_USED, **ALL_ROTATED}),
    Family("lfm2moe", "lfm2moe", "convolutions over 3 rows, a dense layer, and sigmoids that are always normalised; tied", {
        **OWN_WIDTH, **ONE_DENSE, "block_count": 3, "attention.head_count_kv": [0, 2, 0], "shortconv.l_cache": 3,
        "expert_gating_func": 2},
           without=(OUTPUT, "^dense_2"), changes=MORE_USED),
]

DENSE_WIDTH = {**EXPERTS, "feed_forward_length": 12}
SECOND = [
    Family("gemma4-experts", "gemma4", "as 26B-A4B: a dense block beside joined experts, each with norms before and after it, a router "
           "of its own norm, and a factor on what each expert makes", {
               **GEMMA_4, **OWN_WIDTH, "block_count": 3, "attention.head_count": 2, "attention.head_count_kv": 1,
               "embedding_length_per_layer_input": 0, "attention.sliding_window_pattern": [True, False, True]},
           kept=("^rope_freqs", r"ffn_(gate_inp|down_exps)\.scale"), without=(OUTPUT,), values=PROPORTIONAL, gelu=True,
           gains={**UNSCALED, "^token_embd": 0.4, r"ffn_gate_inp\.weight": 2.0}, seed=2,
           changes={**MORE_USED, **GEMMA_4_CHANGES}),
    Family("phimoe", "phimoe", "RMS norms with biases, all other biases", DENSE_WIDTH, kept=(BIAS,), changes=MORE_USED),
    Family("olmoe", "olmoe", "norms of queries and keys over whole rows, weights that are not normalised", {
        **DENSE_WIDTH, "attention.head_count_kv": 4}, changes=MORE_USED),
    Family("ernie4_5-moe", "ernie4_5-moe", "a softmax with numbers that count for the choice only, an expert of all rows, a dense "
           "layer", {
        **OWN_WIDTH, **ONE_DENSE, "expert_shared_feed_forward_length": 40, "interleave_moe_layer_step": 1}, changes=MORE_USED),
    Family("hunyuan-moe", "hunyuan-moe", "norms of heads after the rotation, an expert of all rows as wide as a dense block", {
        **DENSE_WIDTH, "expert_feed_forward_length": 12}, without=(OUTPUT,), changes=MORE_USED),
    Family("dots1", "dots1", "sigmoids as the file states, an expert of all rows, a dense layer, norms of heads", {
        **STATED, **ONE_DENSE, "attention.head_count_kv": 4}, changes=OTHER_WEIGHTS),
    Family("bailingmoe", "bailingmoe", "a softmax, normalised as the file states, and scaled; an expert of all rows", {
        **OWN_WIDTH, **SHARED, "expert_weights_norm": True, "expert_weights_scale": 2.0},
           changes={**MORE_USED, "not normalised": {"expert_weights_norm": False}, "no scale": {"expert_weights_scale": 1.0}}),
    Family("bailingmoe2", "bailingmoe2", "sigmoids of 2 of 4 groups, an expert of all rows, a dense layer, norms of heads, half of the "
           "dimensions rotate", {
        **STATED, **ONE_DENSE, **GROUPS, **PARTIAL}, changes={**OTHER_WEIGHTS, **NO_GROUPS, **ALL_ROTATED}),
    Family("afmoe", "afmoe", "embeddings × √width, gates of attention, norms before and after both blocks, norms of heads, windows of 8 "
           "on three of four layers, of which only those rotate; sigmoids, an expert of all rows, a dense layer", {
               **STATED, **ONE_DENSE, **TWO_WINDOWS, "block_count": 4}, gains={"^token_embd": 0.4}, seed=4,
           changes={**OTHER_WEIGHTS, **NO_WINDOWS}),
    Family("smallthinker", "smallthinker", "routers read what the layer reads, ReLU gates, each fourth layer does not rotate; tied", {
        **OWN_WIDTH, "block_count": 5, "expert_gating_func": 1, "attention.sliding_window": 4096}, without=(OUTPUT,),
           changes={**MORE_USED, "sigmoids": {"expert_gating_func": 2}, "all rotate": {"attention.sliding_window": 0}}),
    Family("grok", "grok", "GELU, a dense block beside the experts, norms after both blocks, factors on embeddings and logits, caps on "
           "scores and logits", {
        **OWN_WIDTH, "embedding_scale": 4.0, "logit_scale": 0.5, "attention.output_scale": 0.3, "attn_logit_softcapping": 2.0,
        "final_logit_softcapping": 3.0}, without=("layer_output_norm",), gelu=True, gains={"^token_embd": 0.3},
           more={f"blk.{layer}.post_ffw_norm.weight": [32] for layer in range(2)},
           changes={**MORE_USED, "no cap": {"final_logit_softcapping": 0.0}, "scores": {"attention.output_scale": 0.6},
                    "other cap": {"attn_logit_softcapping": 20.0}, "embeddings": {"embedding_scale": 1.0},
                    "logits": {"logit_scale": 1.0}}),
    Family("grok-1", "grok", "the same without a dense block, with the other name of the last norm of layers, and the factors of files "
           "that state none; tied", {**DENSE_WIDTH}, bare=True, without=(OUTPUT, "post_ffw_norm", r"ffn_(gate|up|down)\.weight"),
           gelu=True, gains={"^token_embd": 0.05, "output_norm": 2.0, r"attn_[qk]\.weight": 3.0}, changes=MORE_USED),
    Family("dbrx", "dbrx", "layer norms without biases, bounds of queries, keys and values", {**DENSE_WIDTH, "attention.clamp_kqv": 1.25},
           changes={**MORE_USED, "no clamp": {"attention.clamp_kqv": 100.0}}),
    Family("arctic", "arctic", "experts beside the whole layer, which read its input; a dense block as wide as the rows", DENSE_WIDTH,
           without=(OUTPUT,), changes=MORE_USED),
    Family("exaone-moe", "exaone-moe", "sigmoids as the file states, an expert of all rows, a dense layer, norms of heads, windows of 8 "
           "on three of four layers, of which only those rotate", {**STATED, **ONE_DENSE, **TWO_WINDOWS, "block_count": 4,
           "expert_shared_feed_forward_length": 40},
           changes={**OTHER_WEIGHTS, **NO_WINDOWS}),
    Family("cohere2moe", "cohere2moe", "attention beside experts on one layer norm, half of the sum with an expert of all rows; windows "
           "of 8 on all but each fourth layer from the first, of which only those rotate, and a dense layer that does", {
               **STATED, **ONE_DENSE, **TWO_WINDOWS, "block_count": 5, "logit_scale": 0.25, "attention.layer_norm_rms_epsilon": None},
           bare=True, changes={**OTHER_WEIGHTS, **NO_WINDOWS, "logits": {"logit_scale": 1.0}}),
    Family("cohere2moe-rms", "cohere2moe", "the same with RMS norms, without an expert of all rows; tied", {
        **STATED, **TWO_WINDOWS, "leading_dense_block_count": 0, "expert_shared_count": 0, "logit_scale": 0.25,
        "attention.layer_norm_epsilon": None}, bare=True, without=(OUTPUT,), changes=MORE_USED),
    Family("mellum", "mellum", "as qwen3moe, with windows of 8 on three of four layers, which YaRN does not stretch", {
        **OWN_WIDTH, **TWO_WINDOWS, **YARN, "rope.scaling.original_context_length": 64, "block_count": 4},
           changes={**MORE_USED, **NO_WINDOWS, "no YaRN": {"rope.scaling.type": "none"}}),
    Family("hy_v3", "hy_v3", "sigmoids as the file states, an expert of all rows, joined gates, norms of heads, a layer whose tensors "
           "are those of a dense block; tied", {**STATED, "expert_shared_feed_forward_length": 40},
           without=(OUTPUT, r"blk\.0\.(ffn_gate_inp|exp_probs|ffn_.*_(exps|shexp))", r"blk\.1\.ffn_(gate|up|down)\."),
           changes=OTHER_WEIGHTS),
    Family("mimo2", "mimo2", "windows of 8 by a list, with sinks, more heads of keys and a base of their own; values shorter than keys, "
           "a factor on attention, sigmoids that are always normalised, 4 of 12 dimensions rotate, a dense layer", {
               **OWN_WIDTH, **PARTIAL, **TWO_WINDOWS, "block_count": 3, "attention.head_count_kv": [1, 2, 2],
               "attention.sliding_window_pattern": [False, True, True], "rope.freq_base_swa": 100.0, "attention.key_length": 12,
               "attention.value_length": 8, "attention.value_scale": 0.5},
           without=(r"blk\.0\.(ffn_gate_inp|exp_probs|ffn_.*_exps|attn_sinks)", r"blk\.[12]\.ffn_(gate|up|down)\."),
           changes={**MORE_USED, **NO_WINDOWS, **OTHER_BASE, **ALL_ROTATED, "no factor": {"attention.value_scale": 1.0}}),
    Family("step35", "step35", "gates of heads, norms of heads, windows of 8 by a list, with more heads and a base of their own, half of "
           "the dimensions rotate in layers without, which divide frequencies by factors; sigmoids, an expert of all rows, bounds of gates "
           "in some layers, a dense layer; a predictor is left out", {
               **STATED, **ONE_DENSE, **TWO_WINDOWS, "block_count": 5, "nextn_predict_layers": 1, "attention.head_count": [4, 6, 6, 4, 4],
               "attention.head_count_kv": [2, 3, 3, 2, 2], "attention.sliding_window_pattern": [False, True, True, False, False],
               "attention.key_length": 8, "attention.value_length": 8, "rope.dimension_count": 8, "rope.freq_base": 500.0,
               "rope.freq_base_swa": 100.0, "expert_shared_feed_forward_length": 24, "swiglu_clamp_exp": [0.0, 0.5, 0.0, 0.75, 0.0],
               "swiglu_clamp_shexp": [0.5, 0.0, 0.75, 0.5, 0.0]}, bare=True, kept=("^rope_freqs",), more=predictor_of_step(4),
           without=(r"blk\.0\.(ffn_gate_inp|exp_probs|ffn_.*_(exps|shexp))", r"blk\.[123]\.ffn_(gate|up|down)\."),
           asked={"block_count": 4, "nextn_predict_layers": None, "attention.head_count": [4, 6, 6, 4],
                  "attention.head_count_kv": [2, 3, 3, 2], "attention.sliding_window_pattern": [False, True, True, False],
                  "swiglu_clamp_exp": None, "swiglu_clamp_shexp": None}, unread=("^nextn",),
           changes={**OTHER_WEIGHTS, **NO_WINDOWS, **OTHER_BASE,
                    "no bounds of experts": {"swiglu_clamp_exp": None}, "no other bounds": {"swiglu_clamp_shexp": None}}),
    Family("step35-plain", "step35", "the same without gates, norms of heads and bounds, with joined queries, keys and values", {
        **STATED, **TWO_WINDOWS, "attention.sliding_window_pattern": [True, False], "rope.dimension_count": 8,
        "expert_shared_feed_forward_length": 24}, bare=True, joined=True,
           without=("attn_gate", "attn_[qk]_norm", r"ffn_(gate|up|down)\."), changes={**MORE_USED, **NO_WINDOWS, "fewer dimensions rotate": {"rope.dimension_count": 4}}),
    Family("laguna", "laguna", "gates of heads by softplus, norms of heads, windows of 8 on all but each fourth layer from the first, "
           "with more heads, a base of their own and rotation of all dimensions, which YaRN does not stretch; sigmoids, an expert of all "
           "rows, a dense layer", {
               **STATED, **ONE_DENSE, **TWO_WINDOWS, **YARN, "rope.scaling.original_context_length": 64, "block_count": 5,
               "attention.head_count": [4, 6, 6, 6, 4], "attention.key_length": 8, "attention.value_length": 8,
               "rope.dimension_count": 4, "rope.dimension_count_swa": 8, "rope.freq_base": 500.0, "rope.freq_base_swa": 100.0,
               "expert_shared_feed_forward_length": 40}, bare=True,
           changes={**OTHER_WEIGHTS, **NO_WINDOWS, **OTHER_BASE, "no YaRN": {"rope.scaling.type": "none"},
                    "fewer dimensions rotate": {"rope.dimension_count_swa": 4}, **ALL_ROTATED}),
    Family("laguna-values", "laguna", "a gate for each value, without windows; tied", {
        **STATED, **ONE_DENSE, **PARTIAL, "expert_shared_feed_forward_length": 40}, bare=True, without=(OUTPUT,),
           more={f"blk.{layer}.attn_gate.weight": [32, 32] for layer in range(2)}, changes={**OTHER_WEIGHTS, **ALL_ROTATED}),
    Family("grovemoe", "grovemoe", "a softmax, normalised; norms of heads; small experts that neighbours share, added with a factor. As "
           "llama.cpp computes these otherwise than the authors, its numbers are those of a qwen3moe whose experts include them", {
               **OWN_WIDTH, **HEAD_16, "expert_chunk_feed_forward_length": 4, "experts_per_group": 2, "expert_group_scale": 0.75},
           bare=True, equal=with_wider_experts, equal_arch="qwen3moe",
           changes={**MORE_USED, "no small experts": {"expert_group_scale": 0.0}}),
    Family("maple", "maple", "norms of heads, windows of 8 by a list, of which only those rotate, a softmax, bounds of gates", {
        **OWN_WIDTH, **TWO_WINDOWS, **PARTIAL, "block_count": 3, "attention.sliding_window_pattern": [True, False, True],
        "rope.freq_base": 500.0, "rope.freq_base_swa": 100.0, "swiglu_clamp_exp": [0.5, 0.75, 0.0]}, bare=True,
           changes={**MORE_USED, **NO_WINDOWS, **OTHER_BASE, **ALL_ROTATED, "no bounds": {"swiglu_clamp_exp": [0.0, 0.0, 0.0]}}),
    Family("mistral4", "mistral4", "as deepseek2, with scores that grow with the position, and YaRN as in mistral3; 72 tokens", {
        **STATED, **ONE_DENSE, **YARN, "rope.scaling.original_context_length": 64, "rope.scaling.yarn_log_multiplier": 0.05,
        "attention.head_count_kv": 1, "attention.q_lora_rank": 24, "attention.kv_lora_rank": 16,
        "attention.key_length": 20, "attention.value_length": 16, "attention.key_length_mla": 12, "attention.value_length_mla": 8,
        "rope.dimension_count": 4, "attention.temperature_scale": 0.5, "attention.temperature_length": 32}, bare=True, rows=72,
           changes={**OTHER_WEIGHTS, "no temperature": {"attention.temperature_scale": 0.0}}),
    Family("deepseek2-ocr", "deepseek2-ocr", "the text of DeepSeek-OCR: attention with all heads, a softmax, an expert of all rows, a "
           "dense layer", {
        **OWN_WIDTH, **SHARED, **ONE_DENSE, "attention.head_count_kv": 4, "rope.freq_base": 10000.0}, bare=True, changes=MORE_USED),
    Family("llama4", "llama4", "the best expert of 8, whose sigmoid multiplies what it reads, in each second layer, beside one of all "
           "rows; layers 0 to 2 of 4 rotate and then normalise heads without weights", {
               **OWN_WIDTH, "expert_used_count": 1, "block_count": 4, "interleave_moe_layer_step": 2},
           changes={"two experts": {"expert_used_count": 2}}),
]

FAMILIES = DENSE + FIRST + SECOND + RECURRENT
