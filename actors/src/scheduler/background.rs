//! Background work: it is computed when no other request needs the devices, and gives its place to those that arrive.

use lapwing_traces::Nanos;

use super::effect::SchedulerEffect;
use super::models::ChunkKind;
use super::running::Sequence;
use super::selection::Selection;
use super::state::Scheduler;

impl Sequence {
    /// Whether it gives way to other requests: it is background work that has had rows lately.
    pub(super) fn gives_way(&self, now: Nanos) -> bool {
        self.entry.gives_way(now)
    }
}

impl Scheduler {
    /// Whether a chunk has prompt rows of background work.
    pub(super) fn is_background_chunk(&self, chunk: &Selection) -> bool {
        let mut sequences = chunk.rows.iter().map(|(at, _)| &self.running[*at]);
        sequences
            .any(|sequence| !sequence.is_decoding() && sequence.entry.urgency().is_background())
    }

    /// Whether prompt rows of that kind are ready of requests that give way to none.
    pub(super) fn has_foreground_prompts(&self, kind: ChunkKind) -> bool {
        let now = self.queue.now;
        let is_ready = |sequence: &Sequence| {
            sequence.kind() == kind && sequence.due() > 0 && !sequence.is_decoding()
        };
        self.running.iter().any(|sequence| is_ready(sequence) && !sequence.gives_way(now))
    }

    /// Whether a waiting request is no background work.
    fn is_foreground(&self, waiting: usize) -> bool {
        !self.waiting[waiting].entry.urgency().is_background()
    }

    /// Whether a request that is no background work waits for a place, and not for rows that another one computes.
    pub(super) fn foreground_waits(&self) -> bool {
        let mut waiting = 0..self.waiting.len();
        waiting.any(|at| self.is_foreground(at) && !self.awaits_prefix(at))
    }

    /// Takes the place of background work for a waiting request that is none: for the one at an index, which lacks KV pages, or
    /// for any, which lacks a place among the running ones. Returns whether there is more room now.
    pub(super) fn makes_room(
        &mut self,
        waiting: Option<usize>,
        effects: &mut Vec<SchedulerEffect>,
    ) -> bool {
        let needs_room = match waiting {
            Some(at) => self.is_foreground(at),
            None => self.foreground_waits(),
        };
        if !needs_room {
            return false;
        }
        let now = self.queue.now;
        let model = waiting.map(|at| self.waiting[at].model);
        let may_go = |sequence: &Sequence| {
            !sequence.is_companion()
                && sequence.in_flight == 0
                && sequence.gives_way(now)
                && model.is_none_or(|model| sequence.model == model)
        };
        let Some(victim) = self.running.iter().rposition(may_go) else { return false };
        self.preempt(victim, effects);
        true
    }
}
