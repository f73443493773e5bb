//! Background work: it is computed when no other request needs the devices, and gives its place to those that arrive.

use std::time::Duration;

use lapwing_traces::Nanos;

use super::effect::SchedulerEffect;
use super::models::{ChunkKind, Model};
use super::running::Sequence;
use super::selection::Selection;
use super::state::Scheduler;
use crate::sequence::SequenceId;

/// Time without rows after which background work may have a turn, and between two turns.
const AGE: Duration = Duration::from_secs(10);

impl Sequence {
    /// Whether it gives way to other requests: it is background work without a turn.
    pub(super) fn gives_way(&self) -> bool {
        self.entry.gives_way()
    }
}

impl Scheduler {
    /// Whether a chunk has prompt rows of background work.
    pub(super) fn is_background_chunk(&self, chunk: &Selection) -> bool {
        let mut sequences = chunk.rows.iter().map(|(at, _)| &self.running[*at]);
        sequences
            .any(|sequence| !sequence.is_decoding() && sequence.entry.urgency().is_background())
    }

    /// Whether a chunk with prompt rows may hold none of background work: other requests have prompt rows of that kind, or wait
    /// for its place.
    pub(super) fn displaces_background(&self, kind: ChunkKind) -> bool {
        let has_any = self.running.iter().any(Sequence::gives_way);
        has_any
            && !self.pace.is_forced
            && (self.has_foreground_prompts(kind) || self.foreground_waits())
    }

    /// Whether prompt rows of that kind are ready of requests that give way to none.
    fn has_foreground_prompts(&self, kind: ChunkKind) -> bool {
        let is_ready = |sequence: &Sequence| {
            sequence.kind() == kind && sequence.due() > 0 && !sequence.is_decoding()
        };
        self.running.iter().any(|sequence| is_ready(sequence) && !sequence.gives_way())
    }

    /// Gives the background request that has had no rows for longest a turn until its next token, at most one at a time and
    /// one in each [`AGE`]: it then ranks with other requests.
    pub(super) fn give_turn(&mut self, now: Nanos) {
        let all = || self.waiting.background().chain(&self.running);
        let is_due = |sequence: &&Sequence| {
            sequence.gives_way() && !sequence.is_companion() && now >= sequence.entry.served() + AGE
        };
        if now < self.pace.latest_turn + AGE {
            return;
        }
        let longest = all().filter(is_due).min_by_key(|it| (it.entry.served(), it.id));
        let Some(longest) = longest.map(|sequence| sequence.id) else { return };
        if all().any(|sequence| sequence.entry.has_turn()) {
            return;
        }
        self.pace.latest_turn = now;
        self.set_turn(longest, true);
    }

    /// Ends the turn of a request that has had a token.
    pub(super) fn end_turn(&mut self, at: usize) {
        if self.running[at].entry.has_turn() {
            self.set_turn(self.running[at].id.request(), false);
        }
    }

    /// Gives a request and its companion a turn, or takes it.
    fn set_turn(&mut self, request: SequenceId, has_turn: bool) {
        for sequence in self.waiting.iter_mut().chain(&mut self.running) {
            if sequence.id.request() == request {
                sequence.entry.set_turn(has_turn);
            }
        }
    }

    /// Whether a request that gives way to none waits for a place, and not for rows that another one computes.
    pub(super) fn foreground_waits(&self) -> bool {
        self.first_foreground().is_some()
    }

    fn first_foreground(&self) -> Option<usize> {
        let mut waiting = 0..self.waiting.len();
        waiting.find(|at| !self.waiting[*at].gives_way() && !self.awaits_prefix(*at))
    }

    /// Takes the place of background work for a waiting request that gives way to none: for the one at an index, which lacks KV
    /// pages, or for any, which lacks a place among the running ones. Does so only if enough pages become free. Returns
    /// whether there is more room now.
    pub(super) fn makes_room(
        &mut self,
        waiting: Option<usize>,
        effects: &mut Vec<SchedulerEffect>,
    ) -> bool {
        let may_go = |sequence: &Sequence| {
            let is_idle = sequence.in_flight == 0 && !sequence.is_companion();
            is_idle && sequence.gives_way()
        };
        // Checked first, because the steps below look at every waiting request and every cached page.
        if !self.running.iter().any(may_go) {
            return false;
        }
        let found = match waiting {
            Some(at) => Some(at).filter(|at| !self.waiting[*at].gives_way()),
            None => self.first_foreground(),
        };
        let Some(found) = found.filter(|at| self.is_promised(*at, true)) else { return false };
        let request = &self.waiting[found];
        let (model, rows) = (request.model, request.ids.len());
        let Model { kv, prefixes, .. } = &self.models[model.0];
        let of_model = self.running.iter().filter(|it| it.model == model && may_go(it));
        let taken: usize = of_model.map(|sequence| sequence.lease.pages().len()).sum();
        let cached = prefixes.as_ref().map_or(0, |cache| cache.tree().unleased());
        if kv.layout.pages_for(rows) > kv.pool.free_pages() + cached + taken {
            return false;
        }
        // Pages are those of a model; a place is anyone's.
        let fits = |sequence: &Sequence| waiting.is_none() || sequence.model == model;
        let victim = self.running.iter().rposition(|it| may_go(it) && fits(it));
        let Some(victim) = victim else { return false };
        self.preempt(victim, effects);
        true
    }
}
