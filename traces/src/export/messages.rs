//! Where messages are drawn: on rows of the lane that sent them, for as long as they are on the way.

use super::tracks::Rows;
use crate::timeline::Timeline;

/// Messages as slices.
#[derive(Debug)]
pub(super) struct Mail {
    /// Row of every message among those of its lane.
    pub(super) row_of: Vec<usize>,
    /// Rows of every lane.
    pub(super) rows: Vec<usize>,
}

/// Gives every message a row.
pub(super) fn place(timeline: &Timeline) -> Mail {
    let mut lanes: Vec<Rows> = timeline.lanes.iter().map(|_| Rows::default()).collect();
    let mut row_of = Vec::with_capacity(timeline.messages.len());
    for message in &timeline.messages {
        let end = message.received.unwrap_or(message.sent);
        row_of.push(lanes[message.from_lane].place(message.sent.0, end.0));
    }
    Mail { row_of, rows: lanes.iter().map(Rows::count).collect() }
}
