//! What every processor offers: run a stage of a graph over a batch of rows.

use std::fmt;
use std::ops::Range;

use crate::graph::ValueId;
use crate::kv::PageId;

/// Rows to compute, as a device sees them: no request, no text, no channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
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
    pub pages: Vec<PageId>,
}

impl Batch {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.ids.len()
    }

    /// Appends the rows of one sequence. `selected` are the offsets, within `ids`, of the rows
    /// whose logits are wanted, ascending.
    pub fn push(&mut self, ids: &[u32], start: usize, pages: Vec<PageId>, selected: Range<usize>) {
        let first = self.rows();
        self.ids.extend_from_slice(ids);
        self.positions.extend((start..start + ids.len()).map(|p| p as u32));
        self.spans.push(BatchSpan { rows: first..first + ids.len(), start, pages });
        self.selected.extend(selected.map(|row| first + row));
    }
}

/// A matrix of f32 `[rows, width]`, row-major.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tensor {
    /// Values per row.
    pub width: usize,
    /// `rows · width` values.
    pub data: Vec<f32>,
}

impl Tensor {
    /// One row.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.data[row * self.width..(row + 1) * self.width]
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.data.len().checked_div(self.width).unwrap_or(0)
    }
}

/// Values that cross the border between two stages.
#[derive(Clone, Debug, Default)]
pub struct TensorSet {
    tensors: Vec<(ValueId, Tensor)>,
}

impl TensorSet {
    /// Adds a value; one with the same id is replaced.
    pub fn put(&mut self, id: ValueId, tensor: Tensor) {
        self.tensors.retain(|(other, _)| *other != id);
        self.tensors.push((id, tensor));
    }

    /// A value, if it is here.
    pub fn get(&self, id: ValueId) -> Option<&Tensor> {
        self.tensors.iter().find(|(other, _)| *other == id).map(|(_, t)| t)
    }

    /// Takes a value out.
    pub fn take(&mut self, id: ValueId) -> Option<Tensor> {
        let at = self.tensors.iter().position(|(other, _)| *other == id)?;
        Some(self.tensors.swap_remove(at).1)
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }
}

/// Told how far a stage is. Nodes of a stage run one after another, so that each begins where
/// the one before it ends.
pub trait Observer {
    /// That node of the graph has been computed.
    fn node_done(&mut self, node: usize);
}

/// Nobody looks.
impl Observer for () {
    fn node_done(&mut self, _node: usize) {}
}

/// One stage to run.
pub struct Work<'a> {
    /// Nodes of the graph.
    pub nodes: Range<usize>,
    /// Rows to compute.
    pub batch: &'a Batch,
    /// In: the stage's live-in values. Out: its live-out values.
    pub tensors: &'a mut TensorSet,
    /// Told of every node.
    pub observer: &'a mut dyn Observer,
}

impl fmt::Debug for Work<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Work");
        debug.field("nodes", &self.nodes).field("batch", &self.batch);
        debug.finish_non_exhaustive()
    }
}

/// A processor. It owns its KV storage and weights, and lives on one thread.
pub trait Device: Send {
    /// Name, such as `cpu`.
    fn name(&self) -> &str;

    /// Runs a stage to its end.
    ///
    /// # Errors
    /// [`DeviceError`]; the rows of this batch are then lost, other sequences are not.
    fn run(&mut self, work: Work<'_>) -> Result<(), DeviceError>;

    /// Takes back a tensor whose values have been read, so that its memory is used again.
    fn recycle(&mut self, _tensor: Tensor) {}
}

/// Why a stage could not be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// A token id is outside the vocabulary.
    #[error(
        "token id {id} is outside the model's vocabulary of {vocab}; use ids of this model's own tokenizer"
    )]
    TokenId {
        /// The id.
        id: u32,
        /// Vocabulary size.
        vocab: usize,
    },
    /// A value that an earlier stage should have handed on is not there.
    #[error(
        "stage needs value {value} of node '{role}', which no earlier stage handed on; the plan is wrong"
    )]
    MissingValue {
        /// Value's index.
        value: usize,
        /// Role of the node that reads it.
        role: &'static str,
    },
    /// The device itself failed.
    #[error("device '{device}' failed: {reason}")]
    Failed {
        /// Device name.
        device: String,
        /// What it said.
        reason: String,
    },
}
