//! A model in the shapes of Llama 3.2 1B, with as many layers as exceed the caches.

use std::io::Write;

use lapwing_kernels::formats::DType;
use lapwing_kernels::weights::{GgufWriter, MetaValue};
use tempfile::NamedTempFile;

use crate::Failure;

const WIDTH: usize = 2048;
const FFN: usize = 8192;
const HEADS: usize = 32;
const KV_HEADS: usize = 8;
const HEAD_DIM: usize = 64;
/// Of the model: layers, and rows of the vocabulary that belong to one layer, so that the output matrix
/// has the share of the work that it has in the whole model.
const LAYERS: usize = 16;
const VOCAB_OF_LAYER: usize = 128_256 / LAYERS;
/// Fewest layers, and how often the weights exceed the largest cache.
const LAYERS_MIN: usize = 2;
const CACHES: usize = 3;

/// Bytes that are finite numbers and moderate scales in every format.
fn matrix(dtype: DType, cols: usize, rows: usize) -> Result<Vec<u8>, Failure> {
    let row_bytes = dtype.row_bytes(cols).ok_or("rows are not whole blocks")?;
    Ok((0..row_bytes * rows).map(|i| (i * 7 % 37) as u8).collect())
}

/// Writes the model with all matrices in one format to a temporary file.
pub(crate) fn file(dtype: DType, largest_cache: Option<usize>) -> Result<NamedTempFile, Failure> {
    let q = [WIDTH, HEADS * HEAD_DIM];
    let kv = [WIDTH, KV_HEADS * HEAD_DIM];
    let shapes = [
        ("attn_q", q),
        ("attn_k", kv),
        ("attn_v", kv),
        ("attn_output", [HEADS * HEAD_DIM, WIDTH]),
        ("ffn_gate", [WIDTH, FFN]),
        ("ffn_up", [WIDTH, FFN]),
        ("ffn_down", [FFN, WIDTH]),
    ];
    let of_layer: usize = shapes.iter().map(|(_, [cols, rows])| cols * rows).sum();
    let bits = dtype.block_bytes() * 8 / dtype.block_len();
    let layer_bytes = (of_layer + VOCAB_OF_LAYER * WIDTH) * bits / 8;
    let wanted = largest_cache.unwrap_or(32 << 20) * CACHES;
    let layers = wanted.div_ceil(layer_bytes).clamp(LAYERS_MIN, LAYERS);
    let vocab = VOCAB_OF_LAYER * layers;

    let mut writer = GgufWriter::new();
    writer.meta("general.architecture", "llama");
    writer.meta("llama.context_length", 4096u32);
    writer.meta("llama.vocab_size", vocab as u32);
    writer.meta("tokenizer.ggml.model", "no_vocab");
    for (key, value) in [
        ("block_count", layers),
        ("embedding_length", WIDTH),
        ("feed_forward_length", FFN),
        ("attention.head_count", HEADS),
        ("attention.head_count_kv", KV_HEADS),
        ("rope.dimension_count", HEAD_DIM),
    ] {
        writer.meta(&format!("llama.{key}"), value as u32);
    }
    writer.meta("llama.attention.layer_norm_rms_epsilon", MetaValue::F32(1e-5));
    let ones: Vec<u8> = (0..WIDTH).flat_map(|_| 1f32.to_le_bytes()).collect();
    writer.tensor("token_embd.weight", &[WIDTH, vocab], dtype, matrix(dtype, WIDTH, vocab)?);
    writer.tensor("output_norm.weight", &[WIDTH], DType::F32, ones.clone());
    for layer in 0..layers {
        for norm in ["attn_norm", "ffn_norm"] {
            writer.tensor(
                &format!("blk.{layer}.{norm}.weight"),
                &[WIDTH],
                DType::F32,
                ones.clone(),
            );
        }
        for (name, shape) in &shapes {
            let bytes = matrix(dtype, shape[0], shape[1])?;
            writer.tensor(&format!("blk.{layer}.{name}.weight"), shape, dtype, bytes);
        }
    }
    let mut file = tempfile::Builder::new().suffix(".gguf").tempfile()?;
    writer.write_to(&mut file)?;
    file.flush()?;
    Ok(file)
}
