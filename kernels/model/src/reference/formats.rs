//! Naive conversion of weight formats, one value at a time.

use crate::formats::DType;

/// Values of the blocks in `bytes`, of format `dtype`; an incomplete last block is left out.
pub fn dequantize(dtype: DType, bytes: &[u8]) -> Vec<f32> {
    let (blocks, value) = (bytes.chunks_exact(dtype.block_bytes()), dtype.info().value);
    blocks.flat_map(|block| (0..dtype.block_len()).map(move |i| value(block, i))).collect()
}

/// Quantises `x` to `dtype` by the simplest rule: scales from the extremes of a block, values rounded
/// to the nearest step. An incomplete last block is left out.
pub fn quantize(dtype: DType, x: &[f32]) -> Vec<u8> {
    x.chunks_exact(dtype.block_len()).flat_map(dtype.info().quantize).collect()
}
