//! Assigns concurrent spans of a lane to slots.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Timeline;
use crate::clock::Nanos;

/// Puts every outer span into the first slot of its lane that is free at its start, and every inner
/// span into the slot of its parent. Counts the slots of every lane.
pub(super) fn assign(timeline: &mut Timeline) {
    let mut lanes: Vec<Slots> = timeline.lanes.iter().map(|_| Slots::default()).collect();
    for index in timeline.outer_in_slot_order() {
        let span = &mut timeline.spans[index];
        span.slot = lanes[span.lane].take(span.start, span.end);
    }
    for index in 0..timeline.spans.len() {
        if let Some(parent) = timeline.spans[index].parent {
            // A parent precedes its children.
            let (slot, depth) = (timeline.spans[parent].slot, timeline.spans[parent].depth + 1);
            let span = &mut timeline.spans[index];
            (span.slot, span.depth) = (slot, depth);
        }
    }
    for (lane, slots) in timeline.lanes.iter_mut().zip(lanes) {
        lane.slots = slots.count;
    }
}

/// Slots of one lane. They are requested in order of time.
#[derive(Default)]
struct Slots {
    count: usize,
    /// Occupied slots with the time at which they become free; earliest first.
    taken: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// Free slots; smallest number first.
    free: BinaryHeap<Reverse<usize>>,
}

impl Slots {
    fn take(&mut self, start: Nanos, end: Nanos) -> usize {
        while let Some(Reverse((until, slot))) = self.taken.peek().copied()
            && until <= start
        {
            self.taken.pop();
            self.free.push(Reverse(slot));
        }
        let slot = self.free.pop().map_or(self.count, |Reverse(slot)| slot);
        self.count = self.count.max(slot + 1);
        self.taken.push(Reverse((end, slot)));
        slot
    }
}
