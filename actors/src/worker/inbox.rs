//! The deliveries that wait for a device, and which of them is next.
//!
//! Steps of streams that are due come first, then other work, then background work; those alike in order of arrival. A device is kept for
//! a step that comes back to it for a later stage: otherwise a stage of a prompt would begin at each border of the step's stages, and the
//! step would wait for it each time. Before it begins, a step lets others pass as long as its streams have time. A delivery that two steps
//! have passed is passed by no other one, so that none waits for ever.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use lapwing_plan::DeviceId;

use crate::chunk::{Chunk, Delivery, Life, Turn};
use crate::traced::Traced;

/// Steps that may pass a delivery.
const PASSES_MAX: usize = 2;

/// Waiting deliveries, in order of arrival. One whose rows are not ready is skipped.
#[derive(Debug)]
pub(super) struct Inbox {
    device: DeviceId,
    waiting: VecDeque<Waiting>,
    /// The step for which the device is kept until it has computed its last stage of it.
    kept: Option<Kept>,
}

#[derive(Debug)]
struct Waiting {
    delivery: Traced<Delivery>,
    /// Steps that have passed it, and the latest of them.
    passed: usize,
    latest: Option<u64>,
}

#[derive(Debug)]
struct Kept {
    chunk: u64,
    life: Weak<Life>,
}

impl Waiting {
    fn new(delivery: Traced<Delivery>) -> Waiting {
        Waiting { delivery, passed: 0, latest: None }
    }

    fn turn(&self) -> Turn {
        match self.passed >= PASSES_MAX {
            true => Turn::Due,
            false => self.delivery.chunk().turn(),
        }
    }

    /// The chunk, if it is a step that has not begun and whose streams have time.
    fn unhurried(&self) -> Option<&Chunk> {
        let chunk = self.delivery.chunk();
        (chunk.cursor == 0 && chunk.life.is_unhurried()).then_some(chunk)
    }
}

impl Inbox {
    pub(super) fn new(device: DeviceId) -> Inbox {
        Inbox { device, waiting: VecDeque::new(), kept: None }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn push(&mut self, delivery: Traced<Delivery>) {
        self.waiting.push_back(Waiting::new(delivery));
    }

    /// Adds one that comes before all others alike.
    pub(super) fn push_first(&mut self, delivery: Traced<Delivery>) {
        self.waiting.push_front(Waiting::new(delivery));
    }

    /// The place of the next delivery, of those that may start. On a device that is kept for a step, only steps, and what takes no time
    /// of the device.
    pub(super) fn next(&self, starts: impl Fn(&Chunk) -> bool) -> Option<usize> {
        let is_kept = self.kept.as_ref().is_some_and(|kept| kept.life.strong_count() > 0);
        let may_start = |waiting: &Waiting| {
            let chunk = waiting.delivery.chunk();
            let is_free = || chunk.stage().decides() || chunk.is_void();
            (!is_kept || waiting.turn() == Turn::Due || is_free()) && starts(chunk)
        };
        let ready = || self.waiting.iter().enumerate().filter(|(_, waiting)| may_start(waiting));
        let first = |(at, waiting): &(usize, &Waiting)| (waiting.turn(), *at);
        let next = ready().min_by_key(first)?;
        let Some(step) = next.1.unhurried() else { return Some(next.0) };
        let others = ready().filter(|(_, waiting)| {
            let part = waiting.delivery.chunk().part_time(self.device);
            let may_pass = waiting.turn() == Turn::InTurn && waiting.unhurried().is_none();
            may_pass && step.life.can_spare(part)
        });
        Some(others.min_by_key(first).map_or(next.0, |(at, _)| at))
    }

    /// Takes the delivery at a place.
    pub(super) fn take(&mut self, at: usize) -> Option<Traced<Delivery>> {
        let taken = self.waiting.remove(at)?;
        let chunk = taken.delivery.chunk();
        if taken.turn() != Turn::Due && taken.unhurried().is_none() {
            let part = chunk.part_time(self.device);
            let unhurried = self.waiting.iter().filter_map(Waiting::unhurried);
            unhurried.for_each(|step| step.life.spend(part));
        } else if chunk.turn() == Turn::Due {
            for passed in self.waiting.range_mut(..at) {
                let is_other = passed.latest != Some(chunk.id);
                passed.passed += usize::from(is_other);
                passed.latest = Some(chunk.id);
            }
        }
        Some(taken.delivery)
    }

    /// Keeps the device for a step whose stage it has computed, as long as the step comes back.
    pub(super) fn on_done(&mut self, chunk: &Chunk) {
        if chunk.turn() == Turn::Due && chunk.comes_back_to(self.device) {
            self.kept = Some(Kept { chunk: chunk.id, life: Arc::downgrade(&chunk.life) });
        } else if self.kept.as_ref().is_some_and(|kept| kept.chunk == chunk.id) {
            self.kept = None;
        }
    }
}
