//! Assigns messages to rows of the lane that sent them, for the time that they are in transit.

use super::tracks::Rows;
use crate::timeline::Timeline;

/// Rows of the messages.
#[derive(Debug)]
pub(super) struct MessageRows {
    /// Row of each message within its lane.
    pub(super) row_of: Vec<usize>,
    /// Number of rows of each lane.
    pub(super) rows: Vec<usize>,
}

/// Assigns every message to a row.
pub(super) fn assign_rows(timeline: &Timeline) -> MessageRows {
    let mut lanes: Vec<Rows> = timeline.lanes.iter().map(|_| Rows::default()).collect();
    let mut row_of = Vec::with_capacity(timeline.messages.len());
    for message in &timeline.messages {
        let end = message.received.unwrap_or(message.sent);
        row_of.push(lanes[message.from_lane].place(message.sent.0, end.0));
    }
    MessageRows { row_of, rows: lanes.iter().map(Rows::count).collect() }
}
