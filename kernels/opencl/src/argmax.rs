//! The most likely column of each row of logits, computed beside them: greedy decoding then copies a
//! few bytes in place of the logits.
//!
//! The device reduces pieces of a row to (largest value, its column, sum of exponentials), and the
//! host reduces those.

use super::commands::Commands;
use super::error::OpenClError;
use super::memory::Place;
use super::model::Model;
use super::ops::{PIECE, RESULT, View};
use lapwing_model::device::TopLogit;

/// Adds the commands for logits `[rows, width]`.
pub(super) fn add(
    model: &mut Model,
    commands: &mut Commands,
    logits: &Place,
    rows: usize,
    width: usize,
) -> Result<(), OpenClError> {
    let bytes = rows * width.div_ceil(PIECE) * RESULT;
    let view = View { buffer: logits.buffer(), at: 0, stride: width };
    if let Some((slot, out)) = model.memory.scratch(bytes) {
        commands.result_bytes(slot, bytes);
        return model.kernels.top(view, rows, width, out.buffer());
    }
    let out = model.memory.take(bytes)?;
    model.kernels.top(view, rows, width, out.buffer())?;
    commands.download_bytes(out.buffer(), bytes)
}

/// The most likely column of each row, from the bytes that [`add`] requested.
pub(super) fn read(bytes: &[u8], rows: usize, width: usize) -> Vec<Option<TopLogit>> {
    let pieces = width.div_ceil(PIECE);
    let words: Vec<u32> = bytes
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
        .collect();
    let piece = |at: usize| -> (f32, u32, f32) {
        (f32::from_bits(words[3 * at]), words[3 * at + 1], f32::from_bits(words[3 * at + 2]))
    };
    let row = |row: usize| {
        let all =
            || (row * pieces..(row + 1) * pieces).map(piece).filter(|(max, ..)| !max.is_nan());
        // The first of equal values.
        let best = all().reduce(|best, next| if next.0 > best.0 { next } else { best })?;
        if best.0 == f32::NEG_INFINITY {
            return None;
        }
        let sum: f32 = all().map(|(max, _, sum)| sum * (max - best.0).exp()).sum();
        Some(TopLogit { column: best.1, logprob: -sum.ln() })
    };
    (0..rows).map(row).collect()
}
