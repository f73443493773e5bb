//! A recording: everything that was recorded of a run, in memory or in a file.

use std::collections::BTreeMap;

use crate::event::{Event, LaneKind};

/// A lane of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneInfo {
    /// Name, such as `cpu` or `scheduler`.
    pub name: String,
    /// What it is.
    pub kind: LaneKind,
}

/// Events of a run, with what their numbers mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// Facts about the run: model, strategy, machine. `clock` is `virtual` for a simulated run.
    pub meta: BTreeMap<String, String>,
    /// Lanes by their number.
    pub lanes: Vec<LaneInfo>,
    /// Texts by their number.
    pub names: Vec<String>,
    /// Events, in no particular order.
    pub events: Vec<Event>,
    /// Events that found no room.
    pub dropped: u64,
}
