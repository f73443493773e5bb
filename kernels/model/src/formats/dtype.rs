//! What is known of a format by its number or name.

use super::{Block, DType, FormatKind, QuantisedInfo};
use std::fmt;

impl DType {
    /// The format with that number in a GGUF file (`ggml_type`), if it is supported.
    pub fn from_gguf(id: u32) -> Option<DType> {
        DType::ALL.into_iter().find(|dtype| dtype.gguf_id() == id)
    }

    /// Number of the format in a GGUF file (`ggml_type`).
    pub fn gguf_id(self) -> u32 {
        self.info().gguf_id
    }

    /// Values per block (1 for the float formats).
    pub fn block_len(self) -> usize {
        self.info().block_len
    }

    /// Bytes per block.
    pub fn block_bytes(self) -> usize {
        self.info().block_bytes
    }

    /// A stored block of zeros whose scales are not subnormal numbers, with which processors compute more slowly; `None` if
    /// it is all zero bytes.
    pub fn zero_block(self) -> Option<&'static [u8]> {
        self.info().zeros
    }

    /// Bytes of a row of `len` values; `None` if `len` is not a whole number of blocks or the size
    /// does not fit in `usize`.
    pub fn row_bytes(self, len: usize) -> Option<usize> {
        if !len.is_multiple_of(self.block_len()) {
            return None;
        }
        (len / self.block_len()).checked_mul(self.block_bytes())
    }

    /// Dequantises a stored row; a value that has no whole block is left as it is.
    pub fn dequantize_row(self, stored: &[u8], out: &mut [f32]) {
        let format = match &self.info().kind {
            FormatKind::Floats(row) => return row(stored, out),
            FormatKind::Blocks(format) => format,
        };
        let (mut block, span) = (Block::default(), format.scales.span());
        let stored = stored.chunks_exact(self.block_bytes());
        for (out, stored) in out.chunks_exact_mut(self.block_len()).zip(stored) {
            (format.unpack)(stored, &mut block);
            for (i, out) in out.iter_mut().enumerate() {
                *out = block.scale[i / span] * f32::from(block.q[i]) + block.min[i / span];
            }
        }
    }

    /// What is known of a format of blocks; `None` for floats.
    pub fn quantised(self) -> Option<&'static QuantisedInfo> {
        match &self.info().kind {
            FormatKind::Floats(_) => None,
            FormatKind::Blocks(format) => Some(format),
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info().name)
    }
}
