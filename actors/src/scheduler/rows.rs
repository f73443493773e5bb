//! Which rows a chunk may hold, how many, and why.

use std::time::Duration;

use crate::sequence::SequenceId;

/// Which rows may go into a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowKinds {
    /// Decode rows of sequences without a pass in flight.
    pub(super) decodes: bool,
    pub(super) prompts: bool,
    /// Passes ahead.
    pub(super) ahead: bool,
}

impl RowKinds {
    pub(super) const DECODES: RowKinds = RowKinds { decodes: true, prompts: false, ahead: false };
    pub(super) const PROMPTS: RowKinds = RowKinds { decodes: false, prompts: true, ahead: false };
    pub(super) const ALL: RowKinds = RowKinds { prompts: true, ..RowKinds::DECODES };
    pub(super) const AHEAD: RowKinds = RowKinds { decodes: false, prompts: false, ahead: true };
}

/// Whose chunk sizes a selection has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlannedBy {
    /// The strategy.
    Strategy,
    /// The strategy of chunks whose graphs are not ready.
    Meanwhile,
}

/// How many prompt rows a chunk may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// As many as the strategy chooses.
    Free,
    /// At most so many.
    Rows(usize, Limit),
    /// None yet: streams come first.
    Nothing,
}

/// What limits the prompt rows of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The stream that is due first. `None` if no stream has a target; the chunk is then kept short for all.
    pub stream: Option<SequenceId>,
    /// Time until that stream is due; 0 if it is late.
    pub slack: Duration,
}
