//! Identity of a file of packed weights.

use crate::pack::source::Source;
use crate::packed::layout::{Layout, TILE};
use lapwing_model::requant::Group;
use lapwing_model::weights::{Slices, WeightFile, WeightTensor};
use std::fmt::Write as _;

/// Version of requantisation; any change of its results must raise it.
const REQUANT: u32 = 1;

/// Identity of the source from which a file of packed weights was made.
pub(crate) struct CacheKey {
    /// State of the weight file.
    pub(super) source: String,
    /// The matrices, and their offsets in both files.
    pub(super) matrices: String,
    pub(super) bytes: usize,
}

impl CacheKey {
    /// For `sources` of `tensors`, packed one after another; `None` if the weight file
    /// cannot be read.
    pub(crate) fn new(
        file: &WeightFile,
        sources: &[Source<'_>],
        tensors: &[&WeightTensor],
    ) -> Option<CacheKey> {
        let source = file.identity()?;
        let mut text = format!("tiles of {TILE}\n");
        let mut bytes = 0;
        for (source, tensor) in sources.iter().zip(tensors) {
            let layout = source.layout();
            let Layout { dtype, cols, tile, .. } = layout;
            let (rows, part, at) = (source.rows(), tensor.info().part(), tensor.info().range());
            let _ = write!(text, "{dtype} {rows} × {cols} of {part}:{} {tile}", at.start);
            if let Some(slices) = tensor.slices() {
                let Slices { start, total, len, step, times } = slices;
                let _ = write!(text, " in {len} of {step} bytes of {total} from {start}");
                if times > 1 {
                    let _ = write!(text, ", {times} times each");
                }
            }
            if let Some(form) = source.requant() {
                let _ = write!(text, " requantised from {} by {REQUANT}", source.stored_dtype());
                if form.group() != Group::BLOCK {
                    let _ = write!(text, " in groups of {}", form.group());
                }
            }
            text.push('\n');
            bytes += layout.bytes(rows);
        }
        Some(CacheKey { source, matrices: text, bytes })
    }
}
