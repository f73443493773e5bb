//! Errors of devices.

use std::ops::Range;

/// Why a stage could not be run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
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
    /// A value is in the memory of a device, and the host or another device reads it.
    #[error(
        "value {value} is in another device's memory, and the route has no transfer before it is read; the plan is wrong"
    )]
    OtherMemory {
        /// Value's index.
        value: usize,
    },
    /// The device has no kernel for this.
    #[error("device '{device}' cannot run {what}; place it on another device")]
    Unsupported {
        /// Device name.
        device: String,
        /// The unsupported request.
        what: String,
    },
    /// Only prepared graphs can be run.
    #[error(
        "device '{device}' has no prepared graph of {rows} rows for nodes {nodes:?}; prepare it first, or let the strategy prepare on the spot"
    )]
    NotPrepared {
        /// Device name.
        device: String,
        /// Requested nodes.
        nodes: Range<usize>,
        /// Requested rows.
        rows: usize,
    },
    /// The graphs of one request are larger than the device's whole budget.
    #[error(
        "graphs that are needed at the same time take {bytes} bytes on device '{device}', whose graphs may take {budget}: {graphs} in all, of which the largest, of {rows} rows for nodes {nodes:?}, takes {largest}; raise the device's budget to {bytes} bytes, or let the plan use smaller or fewer graphs"
    )]
    GraphTooLarge {
        /// Device name.
        device: String,
        /// Number of requested graphs.
        graphs: usize,
        /// Bytes of all requested graphs.
        bytes: u64,
        /// Nodes of the largest.
        nodes: Range<usize>,
        /// Rows of the largest.
        rows: usize,
        /// Bytes of the largest.
        largest: u64,
        /// Budget of the device's graphs in bytes.
        budget: u64,
    },
    /// The graph fits the budget, but not together with the graphs that must be kept.
    #[error(
        "a graph of {rows} rows for nodes {nodes:?} takes {bytes} bytes on device '{device}', whose graphs may take {budget}, of which {kept} are in use; ask again when chunks have ended, or raise the budget"
    )]
    NoRoom {
        /// Device name.
        device: String,
        /// Nodes.
        nodes: Range<usize>,
        /// Rows.
        rows: usize,
        /// Bytes that it takes.
        bytes: u64,
        /// Bytes of graphs that must stay.
        kept: u64,
        /// Budget of the device's graphs in bytes.
        budget: u64,
    },
    /// A graph computes something else than the reference.
    #[error(
        "a graph of {rows} rows for nodes {nodes:?} on device '{device}' differs from the reference by {error:.3e}, where {tolerance:.1e} is allowed; it is not used"
    )]
    WrongResult {
        /// Device name.
        device: String,
        /// Nodes.
        nodes: Range<usize>,
        /// Rows.
        rows: usize,
        /// Largest relative error found.
        error: f32,
        /// Largest relative error allowed.
        tolerance: f32,
    },
    /// The device itself failed.
    #[error("device '{device}' failed: {reason}")]
    Failed {
        /// Device name.
        device: String,
        /// Its error message.
        reason: String,
    },
}
