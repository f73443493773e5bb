"""The models of families.py with linear attention."""

from family_list import HEAD_16, OUTPUT, Family

EXPERTS = {"expert_count": 8, "expert_used_count": 3, "expert_feed_forward_length": 12}
MORE_USED = {"four experts": {"expert_used_count": 4}}
SECTIONS = {"rope.dimension_count": 8, "rope.dimension_sections": [2, 1, 1, 0]}
ALL_ROTATED = {"all dimensions rotate": {"rope.dimension_count": 16, "rope.dimension_sections": [4, 2, 2, 0]}}
# Two heads of keys for six of values, which are longer than a vector of sixteen.
DELTA = {"ssm.conv_kernel": 4, "ssm.inner_size": 120, "ssm.state_size": 20, "ssm.time_step_rank": 6, "ssm.group_count": 2}
# Two groups of three heads of 20 values, and keys of 12.
MAMBA = {"ssm.conv_kernel": 4, "ssm.inner_size": 120, "ssm.state_size": 12, "ssm.time_step_rank": 6, "ssm.group_count": 2}
NO_FF = {"feed_forward_length": 0}
# Four blocks of 16 values that fade each on its own, and steps that are made of rows of 5.
MAMBA_1 = {"ssm.conv_kernel": 4, "ssm.inner_size": 64, "ssm.state_size": 12, "ssm.time_step_rank": 5}
NO_HEADS = {**NO_FF, "attention.head_count": 0, "attention.head_count_kv": None}
STATES = {"rows": 72}


def predictor(layer: int) -> dict:
    """The tensors of a block of Qwen 3.5 that predicts a second token, of width 32, 4 heads of 16 on 2, hidden 48."""
    norms = {"attn_norm": [32], "post_attention_norm": [32], "attn_q_norm": [16], "attn_k_norm": [16], "nextn.enorm": [32],
             "nextn.hnorm": [32], "nextn.shared_head_norm": [32]}
    matrices = {"attn_q": [32, 128], "attn_k": [32, 32], "attn_v": [32, 32], "attn_output": [64, 32], "ffn_gate": [32, 48],
                "ffn_up": [32, 48], "ffn_down": [48, 32], "nextn.eh_proj": [64, 32]}
    return {f"blk.{layer}.{name}.weight": shape for name, shape in {**norms, **matrices}.items()}


LING = {**EXPERTS, "ssm.conv_kernel": 4, "kda.head_dim": 20, "kda.gate_lower_bound": -5.0, "attention.kv_lora_rank": 16,
        "attention.key_length": 20, "attention.value_length": 16, "attention.key_length_mla": 12, "attention.value_length_mla": 8,
        "rope.dimension_count": 4, "expert_shared_count": 1, "expert_shared_feed_forward_length": 40, "leading_dense_block_count": 1,
        "expert_gating_func": 2, "expert_weights_norm": True, "expert_weights_scale": 2.5}


def predictor_of_ling(layer: int) -> dict:
    """The tensors of a block of Ling 3 that predicts a second token, of width 32, 4 heads of 12, latent rows of 24 and 16, 8 experts of 12."""
    norms = {"attn_norm": [32], "attn_q_a_norm": [24], "attn_kv_a_norm": [16], "ffn_norm": [32], "nextn.enorm": [32], "nextn.hnorm": [32],
             "layer_output_norm": [32]}
    matrices = {"attn_q_a": [32, 24], "attn_q_b": [24, 48], "attn_kv_a_mqa": [32, 20], "attn_k_b": [8, 16, 4], "attn_v_b": [16, 8, 4],
                "attn_gate": [32, 4], "attn_output": [32, 32], "ffn_gate_inp": [32, 8], "ffn_gate_exps": [32, 12, 8],
                "ffn_up_exps": [32, 12, 8], "ffn_down_exps": [12, 32, 8], "ffn_gate_shexp": [32, 40], "ffn_up_shexp": [32, 40],
                "ffn_down_shexp": [40, 32], "nextn.eh_proj": [64, 32]}
    shapes = {f"{name}.weight": shape for name, shape in {**norms, **matrices}.items()}
    return {f"blk.{layer}.{name}": shape for name, shape in {**shapes, "exp_probs_b.bias": [8]}.items()}


def dense_block(layer: int) -> dict:
    """The tensors of a feed-forward block of width 32, hidden 24."""
    shapes = {"gate": [32, 24], "up": [32, 24], "down": [24, 32]}
    return {f"blk.{layer}.ffn_{part}.weight": shape for part, shape in shapes.items()}


RECURRENT = [
    Family("qwen35", "qwen35", "gated delta nets on three of four layers, whose six heads have the keys of two by turns; attention with "
           "gates beside queries, norms of heads, half of the dimensions rotate", {
               **HEAD_16, **SECTIONS, **DELTA, "block_count": 4}, changes=ALL_ROTATED, **STATES),
    Family("qwen35-mtp", "qwen35", "delta nets on layers 0 and 2 by a list, convolutions over 3 rows; a block more that predicts a second "
           "token, which is left out; tied", {
               **HEAD_16, **SECTIONS, **DELTA, "ssm.conv_kernel": 3, "block_count": 4, "nextn_predict_layers": 1,
               "attention.recurrent_layers": [True, False, True, False]},
           bare=True, without=(OUTPUT,), more=predictor(3), unread=(r"^nextn",),
           asked={"block_count": 3, "nextn_predict_layers": None, "attention.recurrent_layers": [True, False, True]}, **STATES),
    Family("qwen35moe", "qwen35moe", "a delta net before a layer with attention, experts, and one of all rows with a gate for each row", {
        **HEAD_16, **SECTIONS, **DELTA, **EXPERTS, "full_attention_interval": 2, "expert_shared_feed_forward_length": 40},
           changes={**MORE_USED, **ALL_ROTATED}, **STATES),
    Family("qwen3next", "qwen3next", "the same with matrices that have the rows of each head of keys together, which three neighbouring "
           "heads of values share", {
               **HEAD_16, **DELTA, **EXPERTS, "rope.dimension_count": 8, "full_attention_interval": 2,
               "expert_shared_feed_forward_length": 40},
           without=(r"attn_(qkv|gate)\.weight",), changes=MORE_USED, **STATES),
    Family("qwen3next-split", "qwen3next", "the same with matrices as in qwen35; tied", {
        **HEAD_16, **DELTA, **EXPERTS, "full_attention_interval": 2, "expert_shared_feed_forward_length": 40}, bare=True,
           without=(OUTPUT, r"ssm_in\.weight"), changes=MORE_USED, **STATES),
    Family("granitehybrid", "granitehybrid", "Mamba-2 on all layers but the second, which does not rotate; the factors of granite", {
        **MAMBA, "ssm.inner_size": 64, "ssm.time_step_rank": 4, "block_count": 3, "attention.head_count_kv": [0, 2, 0],
        "logit_scale": 4.0, "residual_scale": 0.5, "embedding_scale": 3.0, "attention.scale": 0.5, "rope.scaling.finetuned": False},
           kept=(r"ssm_conv1d\.bias",), changes={"rotation": {"rope.scaling.finetuned": True}}, **STATES),
    Family("granitehybrid-experts", "granitehybrid", "the same with experts and one of all rows, and rotation; tied", {
        **MAMBA, **EXPERTS, "ssm.inner_size": 64, "ssm.time_step_rank": 4, "feed_forward_length": 12, "block_count": 3,
        "attention.head_count_kv": [0, 2, 0], "expert_shared_feed_forward_length": 40, "logit_scale": 4.0, "residual_scale": 0.5,
        "embedding_scale": 3.0, "attention.scale": 0.5, "rope.scaling.finetuned": True},
           kept=(r"ssm_conv1d\.bias",), without=(OUTPUT,), changes=MORE_USED, **STATES),
    Family("nemotron_h", "nemotron_h", "layers of one block each: Mamba-2, attention without rotation, squared ReLU without a gate", {
        **MAMBA, "block_count": 5, "attention.head_count_kv": [0, 0, 2, 0, 0], "feed_forward_length": [0, 48, 0, 0, 40]},
           kept=(r"ssm_conv1d\.bias",), **STATES),
    Family("nemotron_h_moe", "nemotron_h_moe", "the same with experts without gates, by sigmoids with numbers that count for the choice "
           "only, of which those of all rows are wider", {
               **MAMBA, **EXPERTS, "block_count": 5, "attention.head_count_kv": [0, 0, 2, 0, 0],
               "feed_forward_length": [0, 12, 0, 0, 12], "expert_shared_feed_forward_length": 40, "expert_shared_count": 1,
               "expert_weights_norm": True, "expert_weights_scale": 2.5},
           kept=(r"ssm_conv1d\.bias",),
           changes={**MORE_USED, "not normalised": {"expert_weights_norm": False}, "no scale": {"expert_weights_scale": 1.0}}, **STATES),
    Family("nemotron_h_moe-latent", "nemotron_h_moe", "experts that read and make 16 values of a row, in the last layer; tied", {
        **MAMBA, **EXPERTS, "block_count": 3, "attention.head_count_kv": [0, 2, 0], "feed_forward_length": [0, 0, 12],
        "expert_shared_feed_forward_length": 40, "expert_shared_count": 1, "expert_weights_norm": False, "moe_latent_size": 16},
           bare=True, kept=(r"ssm_conv1d\.bias",), without=(OUTPUT,), changes=MORE_USED, **STATES),
    Family("falcon-h1", "falcon-h1", "attention and Mamba-2 beside each other on one norm, with norms of groups", {**MAMBA}, kept=(r"ssm_conv1d\.bias",), **STATES),
    Family("falcon-h1-plain", "falcon-h1", "the same without norms of groups; tied", {**MAMBA, "ssm.group_count": 1}, bare=True,
           kept=(r"ssm_conv1d\.bias",), without=(OUTPUT, "ssm_norm"), **STATES),
    Family("mamba2", "mamba2", "Mamba-2 alone", {
        **MAMBA, **NO_HEADS, "ssm.inner_size": 64, "ssm.time_step_rank": 4, "block_count": 3}, bare=True, **STATES),
    Family("mamba", "mamba", "Mamba alone, with 72 values, which are no whole blocks of 16", {
        **MAMBA_1, **NO_HEADS, "embedding_length": 36, "ssm.inner_size": 72, "block_count": 3}, bare=True, **STATES),
    Family("mamba-falcon", "mamba", "as Falcon Mamba: norms without weights of steps, keys and queries; tied", {
        **MAMBA_1, **NO_HEADS, "block_count": 3, "ssm.dt_b_c_rms": True}, bare=True, without=(OUTPUT,),
           changes={"no norms": {"ssm.dt_b_c_rms": False}}, **STATES),
    Family("jamba", "jamba", "Mamba with norms of steps, keys and queries, attention without rotation in the second of three layers, and "
           "there experts whose weights are not normalised", {
               **MAMBA_1, "block_count": 3, "attention.head_count_kv": [0, 2, 0], "feed_forward_length": 24, "expert_count": 8,
               "expert_used_count": 3},
           without=(r"blk\.[02]\.ffn_(gate_inp|gate_exps|up_exps|down_exps)",), more={**dense_block(0), **dense_block(2)},
           changes=MORE_USED, **STATES),
    Family("jamba-dense", "jamba", "the same with one expert, which is a dense block; tied", {
        **MAMBA_1, "block_count": 3, "attention.head_count_kv": [0, 2, 0], "feed_forward_length": 24, "expert_count": 1,
        "expert_used_count": 1},
           bare=True, without=(OUTPUT, r"ffn_(gate_inp|gate_exps|up_exps|down_exps)"),
           more={**dense_block(0), **dense_block(1), **dense_block(2)}, **STATES),
    Family("plamo2", "plamo2", "Mamba with six heads, whose gates and values are by turns in one matrix, and attention in the second of "
           "three layers, with norms of heads that have weights of their own and values shorter than keys; norms before and after blocks", {
               **MAMBA, "ssm.group_count": 0, "block_count": 3, "attention.head_count_kv": [0, 2, 0], "attention.key_length": 16,
               "attention.value_length": 8}, **STATES),
    Family("kimi-linear", "kimi-linear", "delta nets whose states fade by channel, with three convolutions; absorbed latent attention "
           "without rotation in the second of three layers; sigmoids, an expert of all rows, a dense layer", {
               **EXPERTS, "block_count": 3, "attention.head_count_kv": [0, 1, 0], "ssm.conv_kernel": 4, "kda.head_dim": 20,
               "attention.kv_lora_rank": 16, "attention.key_length": 20, "attention.value_length": 16,
               "attention.key_length_mla": 12, "attention.value_length_mla": 8, "rope.dimension_count": 4, "expert_shared_count": 2,
               "leading_dense_block_count": 1, "expert_gating_func": 2, "expert_weights_scale": 2.5}, bare=True,
           changes={**MORE_USED, "no scale": {"expert_weights_scale": 1.0}, "softmax": {"expert_gating_func": 1}}, **STATES),
    Family("bailingmoe3", "bailingmoe3", "delta nets whose states fade by channel as far as a bound; absorbed latent attention with gates of "
           "heads and latent queries in layer 1 of 4; sigmoids of 2 of 4 groups, an expert of all rows, bounds of gates in some layers, a "
           "dense layer; a predictor is left out", {
               **LING, "block_count": 5, "nextn_predict_layers": 1, "attention.head_count_kv": [0, 1, 0, 0, 1],
               "attention.q_lora_rank": 24, "expert_group_count": 4, "expert_group_used_count": 2,
               "swiglu_clamp_exp": [0.0, 0.5, 0.0, 0.75, 0.0], "swiglu_clamp_shexp": [0.5, 0.0, 0.75, 0.5, 0.0]}, bare=True,
           more=predictor_of_ling(4), unread=(r"^nextn", "layer_output_norm"),
           asked={"block_count": 4, "nextn_predict_layers": None, "attention.head_count_kv": [0, 1, 0, 0], "swiglu_clamp_exp": None,
                  "swiglu_clamp_shexp": None},
           changes={**MORE_USED, "no scale": {"expert_weights_scale": 1.0}, "softmax": {"expert_gating_func": 1},
                    "not normalised": {"expert_weights_norm": False}, "other bound of states": {"kda.gate_lower_bound": -1.0},
                    "all groups": {"expert_group_count": 1, "expert_group_used_count": 1},
                    "no bounds of experts": {"swiglu_clamp_exp": None}, "no other bounds": {"swiglu_clamp_shexp": None}}, **STATES),
    Family("bailingmoe3-vl", "bailingmoe3", "the same with queries that are not latent, sections of rotary dimensions, which rotate in "
           "halves, all groups and no bounds of gates; tied", {
               **LING, "block_count": 3, "attention.head_count_kv": [0, 0, 1], "rope.dimension_sections": [1, 1, 0, 0]}, bare=True,
           without=(OUTPUT,), changes={**MORE_USED, "neighbours rotate": {"rope.dimension_sections": None}}, **STATES),
]
