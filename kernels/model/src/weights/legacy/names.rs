//! Names of llama's tensors, and how each is cut into parts.

/// Tensors outside the layers: name in the file, and in GGUF.
pub(super) const WHOLE: [(&str, &str); 3] = [
    ("tok_embeddings.weight", "token_embd.weight"),
    ("norm.weight", "output_norm.weight"),
    ("output.weight", "output.weight"),
];

/// Tensors of a layer: name in the file without `layers.N.`, and in GGUF without `blk.N.`.
pub(super) const LAYER: [(&str, &str); 9] = [
    ("attention_norm.weight", "attn_norm.weight"),
    ("attention.wq.weight", "attn_q.weight"),
    ("attention.wk.weight", "attn_k.weight"),
    ("attention.wv.weight", "attn_v.weight"),
    ("attention.wo.weight", "attn_output.weight"),
    ("ffn_norm.weight", "ffn_norm.weight"),
    ("feed_forward.w1.weight", "ffn_gate.weight"),
    ("feed_forward.w2.weight", "ffn_down.weight"),
    ("feed_forward.w3.weight", "ffn_up.weight"),
];

/// Name in GGUF of a tensor of a model with that many layers, if llama has it.
pub(super) fn in_gguf(name: &str, layers: u32) -> Option<String> {
    if let Some((_, new)) = WHOLE.iter().find(|(old, _)| *old == name) {
        return Some((*new).to_owned());
    }
    let (layer, rest) = name.strip_prefix("layers.")?.split_once('.')?;
    let number = layer.parse().ok().filter(|n: &u32| *n < layers && n.to_string() == layer)?;
    let (_, new) = LAYER.iter().find(|(old, _)| *old == rest)?;
    Some(format!("blk.{number}.{new}"))
}

/// How a tensor of a model in several parts is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// Every part has all of it.
    None,
    /// Each part has as many rows, in the order of the parts.
    Rows,
    /// Each part has as many columns of all rows, in the order of the parts.
    Columns,
}

impl Cut {
    /// The cut of a tensor: that of the layers in LLaMA's own parts, which split attention by heads and
    /// feed-forward blocks by their inner width.
    pub(super) fn of(name: &str) -> Cut {
        const COLUMNS: [&str; 3] =
            ["tok_embeddings.weight", "attention.wo.weight", "feed_forward.w2.weight"];
        match COLUMNS.iter().any(|end| name.ends_with(end)) {
            true => Cut::Columns,
            false if name.ends_with("norm.weight") => Cut::None,
            false => Cut::Rows,
        }
    }
}
