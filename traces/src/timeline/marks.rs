//! What a timeline has beside spans and their dependencies: sleep, counters, milestones and memory.

use crate::clock::Nanos;
use crate::event::{ExpertRows, Milestone};

/// An interval during which a lane's thread slept because its mailbox was empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep {
    /// Index of the lane.
    pub lane: usize,
    /// Start.
    pub start: Nanos,
    /// End.
    pub end: Nanos,
}

/// Values of a counter over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Name, with its unit.
    pub name: String,
    /// Index of the lane that counts.
    pub lane: usize,
    /// Times and values; a value is valid until the next one.
    pub values: Vec<(Nanos, i64)>,
}

/// A milestone reached by a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestMilestone {
    /// Number of the request.
    pub request: u64,
    /// Milestone.
    pub milestone: Milestone,
    /// Time.
    pub at: Nanos,
    /// The milestone's value, such as a number of tokens.
    pub value: u64,
}

/// Memory freed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freed {
    /// Index of the lane.
    pub lane: usize,
    /// Name of the memory.
    pub name: String,
    /// Time.
    pub at: Nanos,
    /// Size in bytes.
    pub bytes: u64,
}

/// Rows of experts in one op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpertsOnLane {
    /// Index of the lane.
    pub lane: usize,
    /// Time.
    pub at: Nanos,
    /// The rows.
    pub rows: ExpertRows,
}
