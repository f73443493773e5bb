//! Leases KV pages for generated rows.

use super::companions::NO_ROOM;
use super::effect::SchedulerEffect;
use super::end::fail;
use super::state::Scheduler;

impl Scheduler {
    /// Leases a page for every generated row that needs a new one. If no page is free, sequences of
    /// worse rank are preempted; the sequence of the best rank always makes progress. If room is promised, none is
    /// preempted, and a sequence waits instead. Returns whether one has failed, so that others may be admitted.
    pub(super) fn reserve_decode_rows(&mut self, effects: &mut Vec<SchedulerEffect>) -> bool {
        let (mut at, mut has_failed) = (0, false);
        let may_all_grow = self.may_all_grow();
        while at < self.running.len() {
            let sequence = &mut self.running[at];
            let model = &mut self.models[sequence.model.0];
            // Prompts got their pages when they were admitted.
            let has_pages = sequence.due() == 0 || sequence.has_pages(&model.kv);
            let waits = !model.may_step() && !sequence.is_ahead();
            if has_pages || waits || !may_all_grow && !self.gets_page(at) {
                at += 1;
                continue;
            }
            let sequence = &mut self.running[at];
            if sequence.reserve(&mut self.models[sequence.model.0]).is_ok() {
                at += 1;
                continue;
            }
            if sequence.is_companion() {
                self.end_companion(at, NO_ROOM, effects);
                // Its request waits for drafts no longer, and may need a page.
                at = 0;
            } else if let Some(victim) = self.victim(at) {
                match self.running[victim].is_companion() {
                    true => self.end_companion(victim, NO_ROOM, effects),
                    false => self.preempt(victim, effects),
                }
            } else if let Some(error) =
                self.models[self.running[at].model.0].kv.too_small_for(self.running[at].ids.len())
            {
                fail(&mut self.queue, self.running.remove(at), &error, effects);
                has_failed = true;
            } else {
                at += 1;
            }
        }
        // Only pages that no draft without branches needs.
        for sequence in &mut self.running {
            let model = &mut self.models[sequence.model.0];
            sequence.reserve_branches(model);
            sequence.reserve_draft_states(model);
        }
        has_failed
    }

    /// Whether a sequence may have a page, with its draft or without.
    fn gets_page(&mut self, at: usize) -> bool {
        if self.may_grow(at) {
            return true;
        }
        let sequence = &mut self.running[at];
        sequence.drop_due_draft();
        let has_pages = sequence.has_pages(&self.models[sequence.model.0].kv);
        !has_pages && self.may_grow(at)
    }
}
