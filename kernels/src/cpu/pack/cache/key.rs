//! What a file of packed weights must be of.

use crate::cpu::pack::source::Source;
use crate::cpu::packed::layout::{Layout, TILE};
use crate::weights::{WeightFile, WeightTensor};
use std::fmt::Write as _;

/// Version of requantising: to be raised with every change of what it makes of the same values.
const REQUANT: u32 = 1;

/// What a file of packed weights must be of.
pub(crate) struct CacheKey {
    /// The weight file's state.
    pub(super) source: String,
    /// The matrices, and where they lie in both files.
    pub(super) matrices: String,
    pub(super) bytes: usize,
}

impl CacheKey {
    /// `sources` of `tensors`, packed one after another; none where the file system says nothing
    /// of the weight file.
    pub(crate) fn new(
        file: &WeightFile,
        sources: &[Source<'_>],
        tensors: &[&WeightTensor],
    ) -> Option<CacheKey> {
        let mut source = String::new();
        for (stamp, (head, data)) in file.stamps().zip(file.samples()) {
            let _ = writeln!(source, "{}, {head:08x} {data:08x}", stamp?);
        }
        let mut text = format!("tiles of {TILE}\n");
        let mut bytes = 0;
        for (source, tensor) in sources.iter().zip(tensors) {
            let (layout, matrix) = (source.layout(), &source.matrix);
            let Layout { dtype, cols, tile, .. } = layout;
            let (rows, part, at) = (matrix.rows(), tensor.info().part(), tensor.info().range());
            let _ = write!(text, "{dtype} {rows} × {cols} of {part}:{} {tile}", at.start);
            if source.requant.is_some() {
                let _ = write!(text, " requantised from {} by {REQUANT}", matrix.dtype());
            }
            text.push('\n');
            bytes += layout.bytes(rows);
        }
        Some(CacheKey { source, matrices: text, bytes })
    }

    /// Bytes of the packed matrices.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}
