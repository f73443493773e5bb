//! Paths of ops, and patterns of paths.

use lapwing_kernels::graph::Node;

/// Path of an op, as listed in [`place`](super). An op with another role has the path
/// `layers.L.ROLE`, or `ROLE` outside the layers.
pub fn path(node: &Node) -> String {
    let name = match node.role {
        "attn_norm" => "attn.norm",
        "attn_q" => "attn.q",
        "attn_k" => "attn.k",
        "attn_v" => "attn.v",
        "attn_q_norm" => "attn.q_norm",
        "attn_k_norm" => "attn.k_norm",
        "attn_q_a" => "attn.q_a",
        "attn_q_a_norm" => "attn.q_a_norm",
        "attn_q_nope" => "attn.q_nope",
        "attn_q_pe" => "attn.q_pe",
        "attn_kv_a" => "attn.kv_a",
        "attn_kv_a_norm" => "attn.kv_a_norm",
        "attn_k_nope" => "attn.k_nope",
        "attn_k_pe" => "attn.k_pe",
        "join_q" => "attn.join_q",
        "join_k" => "attn.join_k",
        "rope_q" => "attn.rope_q",
        "rope_k" => "attn.rope_k",
        "attention" => "attn.attend",
        "attn_output" => "attn.output",
        "post_attention_norm" => "attn.post_norm",
        "select_attention" => "attn.select",
        "select_residual" => "attn.select_residual",
        "attention_residual" => "attn.residual",
        "ffn_norm" => "ffn.norm",
        "ffn_gate" => "ffn.gate",
        "ffn_up" => "ffn.up",
        "ffn_silu" => "ffn.silu",
        "ffn_silu_clamp" => "ffn.silu_clamp",
        "ffn_up_clamp" => "ffn.up_clamp",
        "ffn_gated" => "ffn.gated",
        "ffn_down" => "ffn.down",
        "post_ffw_norm" => "ffn.post_norm",
        "ffn_residual" => "ffn.residual",
        "ffn_router_norm" => "router.norm",
        "ffn_gate_inp" => "router.logits",
        "ffn_router_scale" => "router.scale",
        "ffn_route" => "experts.choose",
        "ffn_experts" => "experts.compute",
        "ffn_mix" => "experts.mix",
        "ffn_adjugates" => "experts.adjugates",
        "ffn_adjugate_mix" => "experts.adjugate_mix",
        "ffn_adjugate_scale" => "experts.adjugate_scale",
        "ffn_adjugate_sum" => "experts.adjugate_sum",
        "ffn_gate_shexp" => "shared.gate",
        "ffn_up_shexp" => "shared.up",
        "ffn_silu_shexp" => "shared.silu",
        "ffn_silu_clamp_shexp" => "shared.silu_clamp",
        "ffn_up_clamp_shexp" => "shared.up_clamp",
        "ffn_gated_shexp" => "shared.gated",
        "ffn_down_shexp" => "shared.down",
        "ffn_gate_inp_shexp" => "shared.row_gate",
        "ffn_gates_shexp" => "shared.row_gates",
        "ffn_shexp" => "shared.weighted",
        "ffn_shared_sum" => "shared.sum",
        "ffn_shared_mean" => "shared.mean",
        "logit_scale" => "output.scale",
        "logit_cap" => "output.cap",
        role => role,
    };
    match node.layer {
        Some(layer) => format!("layers.{layer}.{name}"),
        None => name.to_owned(),
    }
}

/// Whether a pattern matches the path, or a prefix of it that ends before a dot.
pub(super) fn matches(pattern: &str, path: &str) -> bool {
    let mut segments = path.split('.');
    pattern.split('.').all(|want| segments.next().is_some_and(|has| want == "*" || want == has))
}

/// An example for error messages: a path inside a layer if there is one.
pub(super) fn example(paths: &[String]) -> String {
    let inner = paths.iter().find(|path| path.ends_with("ffn.gate"));
    inner.or(paths.first()).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_segments_only() {
        for (pattern, path, want) in [
            ("layers.*.ffn", "layers.3.ffn.gate", true),
            ("layers.3", "layers.3.ffn.gate", true),
            ("layers.3", "layers.30.ffn.gate", false),
            ("layers.*.attn.q", "layers.3.attn.q", true),
            ("layers.*.attn.q", "layers.3.attn.q_norm", false),
            ("*", "embed", true),
            ("*.*.*.norm", "layers.0.attn.norm", true),
            ("output", "output_norm", false),
            ("output", "output.cap", true),
            ("layers.*.experts", "layers.3.experts.compute", true),
            ("layers.0.ffn.gate.x", "layers.0.ffn.gate", false),
        ] {
            assert_eq!(matches(pattern, path), want, "{pattern} {path}");
        }
    }
}
