//! The rows that a device computes.

use std::ops::Range;
use std::sync::Arc;

use crate::kv::PageId;

/// Number of a model in an engine, such as a target or its draft model. An engine with one model
/// numbers it 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModelId(pub usize);

/// Rows to compute, as a device sees them: no request, no text, no channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The model that the rows are for; all rows of a batch are for the same one.
    pub model: ModelId,
    /// Token id of each row.
    pub ids: Vec<u32>,
    /// Position of each row in its sequence.
    pub positions: Vec<u32>,
    /// Sequences that the rows belong to, in row order, without gaps.
    pub spans: Vec<BatchSpan>,
    /// Rows whose logits are wanted, ascending.
    pub selected: Vec<usize>,
}

/// Consecutive rows of one sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchSpan {
    /// Rows of the batch.
    pub rows: Range<usize>,
    /// Position of the first row; the cache holds all positions before it.
    pub start: usize,
    /// KV pages of the sequence, from position 0 to at least the last row.
    pub pages: Arc<[PageId]>,
}

impl Batch {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.ids.len()
    }

    /// Appends the rows of one sequence. `selected` are the offsets, within `ids`, of the rows
    /// whose logits are wanted, ascending.
    pub fn push(
        &mut self,
        ids: &[u32],
        start: usize,
        pages: impl Into<Arc<[PageId]>>,
        selected: Range<usize>,
    ) {
        let first = self.rows();
        let pages = pages.into();
        self.ids.extend_from_slice(ids);
        self.positions.extend((start..start + ids.len()).map(|p| p as u32));
        self.spans.push(BatchSpan { rows: first..first + ids.len(), start, pages });
        self.selected.extend(selected.map(|row| first + row));
    }
}
