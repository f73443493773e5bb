//! Which spans are in flight beside each other on one lane.

use super::Timeline;
use crate::clock::Nanos;

/// Gives every outer span the first slot of its lane that is free at its start, every inner one
/// the slot of its parent, and counts the slots of every lane.
pub(super) fn assign(timeline: &mut Timeline) {
    let mut free_at: Vec<Vec<Nanos>> = vec![Vec::new(); timeline.lanes.len()];
    for index in timeline.outer_in_turn() {
        let span = &mut timeline.spans[index];
        let slots = &mut free_at[span.lane];
        let free = slots.iter().position(|free| *free <= span.start);
        span.slot = free.unwrap_or_else(|| {
            slots.push(Nanos(0));
            slots.len() - 1
        });
        slots[span.slot] = span.end;
    }
    for index in 0..timeline.spans.len() {
        if let Some(parent) = timeline.spans[index].parent {
            // A parent stands before its children.
            let (slot, depth) = (timeline.spans[parent].slot, timeline.spans[parent].depth + 1);
            let span = &mut timeline.spans[index];
            (span.slot, span.depth) = (slot, depth);
        }
    }
    for (lane, slots) in timeline.lanes.iter_mut().zip(free_at) {
        lane.slots = slots.len();
    }
}
