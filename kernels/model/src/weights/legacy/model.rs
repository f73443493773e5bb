//! A llama model of a file older than GGUF, as GGUF metadata and tensor table.

use std::collections::HashMap;

use super::error::LegacyError;
use super::names::{LAYER, WHOLE, in_gguf};
use super::{LegacyFile, LegacyTensor, vocabulary};
use crate::weights::write::GgufWriter;

/// Hyper-parameters of a file older than GGUF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegacyParams {
    /// Tokens of the vocabulary (`n_vocab`).
    pub vocab: u32,
    /// Values of a hidden state (`n_embd`).
    pub width: u32,
    /// The feed-forward width is a multiple of this (`n_mult`). The shape of the tensors tells the width.
    pub mult: u32,
    /// Query heads (`n_head`).
    pub heads: u32,
    /// Layers (`n_layer`).
    pub layers: u32,
    /// Rotated values of a head (`n_rot`).
    pub rotary: u32,
    /// Main format of the weights (`ftype`); each tensor states its own.
    pub file_type: u32,
}

/// What files older than GGUF do not store.
#[derive(Clone, Debug, PartialEq)]
pub struct LegacyOptions {
    /// Epsilon of the norms: 1e-6 for LLaMA, 1e-5 for Llama 2.
    pub rms_eps: f32,
    /// Training context in tokens: 2048 for LLaMA, 4096 for Llama 2.
    pub context: u32,
}

impl Default for LegacyOptions {
    /// Values of LLaMA.
    fn default() -> LegacyOptions {
        LegacyOptions { rms_eps: 1e-6, context: 2048 }
    }
}

/// Tensors by name.
type Tensors<'a> = HashMap<&'a str, &'a LegacyTensor>;

/// Widths that follow from the shapes of tensors.
struct Widths {
    /// Values of the keys of a token.
    kv: usize,
    /// Values of a feed-forward state.
    hidden: usize,
}

pub(super) fn to_gguf(
    file: &LegacyFile,
    options: &LegacyOptions,
) -> Result<GgufWriter, LegacyError> {
    let params = &file.params;
    check_params(params)?;
    let tensors: Tensors = file.tensors.iter().map(|t| (&*t.name, t)).collect();
    let widths = check_shapes(params, &tensors)?;
    let head = params.width / params.heads;
    let mut writer = GgufWriter::new();
    writer
        .meta("general.architecture", "llama")
        .meta("llama.context_length", options.context)
        .meta("llama.embedding_length", params.width)
        .meta("llama.block_count", params.layers)
        .meta("llama.feed_forward_length", widths.hidden as u32)
        .meta("llama.rope.dimension_count", params.rotary)
        .meta("llama.attention.head_count", params.heads)
        .meta("llama.attention.head_count_kv", widths.kv as u32 / head)
        .meta("llama.attention.layer_norm_rms_epsilon", options.rms_eps);
    vocabulary::add(&file.pieces, &mut writer)?;
    for tensor in &file.tensors {
        let name = in_gguf(&tensor.name, params.layers)
            .ok_or_else(|| LegacyError::UnknownTensor { tensor: tensor.name.clone() })?;
        writer.tensor_later(&name, tensor.shape.dims(), tensor.dtype());
    }
    Ok(writer)
}

fn check_params(params: &LegacyParams) -> Result<(), LegacyError> {
    let LegacyParams { vocab, width, heads, layers, rotary, .. } = *params;
    let bad = |name, found, needed: String| Err(LegacyError::Param { name, found, needed });
    if vocab < 3 {
        return bad("n_vocab", vocab, "at least 3".to_owned());
    }
    if heads == 0 {
        return bad("n_head", heads, "at least 1".to_owned());
    }
    if width == 0 || !width.is_multiple_of(heads) {
        return bad("n_embd", width, format!("a multiple of n_head, {heads}"));
    }
    if layers == 0 {
        return bad("n_layer", layers, "at least 1".to_owned());
    }
    if rotary != width / heads {
        return bad("n_rot", rotary, format!("n_embd / n_head, {}", width / heads));
    }
    Ok(())
}

fn find<'a>(tensors: &Tensors<'a>, name: &str) -> Result<&'a LegacyTensor, LegacyError> {
    let found = tensors.get(name).copied();
    found.ok_or_else(|| LegacyError::MissingTensor { tensor: name.to_owned() })
}

/// Checks that each tensor of the model is there and has the right shape.
fn check_shapes(params: &LegacyParams, tensors: &Tensors<'_>) -> Result<Widths, LegacyError> {
    let (width, vocab) = (params.width as usize, params.vocab as usize);
    let head = width / params.heads as usize;
    let kv = find(tensors, "layers.0.attention.wk.weight")?.shape.rows();
    let heads_kv = kv / head;
    if !kv.is_multiple_of(head)
        || heads_kv == 0
        || !(params.heads as usize).is_multiple_of(heads_kv)
    {
        let shape = format!("rows that are a multiple of {head}");
        return Err(wrong(find(tensors, "layers.0.attention.wk.weight")?, shape));
    }
    let hidden = find(tensors, "layers.0.feed_forward.w1.weight")?.shape.rows();
    let dims = |name: &str| match name {
        "tok_embeddings.weight" | "output.weight" => vec![width, vocab],
        "attention.wq.weight" | "attention.wo.weight" => vec![width, width],
        "attention.wk.weight" | "attention.wv.weight" => vec![width, kv],
        "feed_forward.w1.weight" | "feed_forward.w3.weight" => vec![width, hidden],
        "feed_forward.w2.weight" => vec![hidden, width],
        _ => vec![width],
    };
    let check = |name: &str, needed: Vec<usize>| {
        let tensor = find(tensors, name)?;
        match tensor.shape.dims() == needed {
            true => Ok(()),
            false => Err(wrong(tensor, format!("{needed:?}"))),
        }
    };
    for (name, _) in WHOLE {
        check(name, dims(name))?;
    }
    for layer in 0..params.layers {
        for (name, _) in LAYER {
            check(&format!("layers.{layer}.{name}"), dims(name))?;
        }
    }
    Ok(Widths { kv, hidden })
}

fn wrong(tensor: &LegacyTensor, needed: String) -> LegacyError {
    let (tensor, found) = (tensor.name.clone(), tensor.shape.to_string());
    LegacyError::Shape { tensor, found, needed }
}
