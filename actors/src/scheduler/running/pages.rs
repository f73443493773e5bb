//! The KV pages of a sequence: its own, and those that it shares by the prefix cache.

use std::sync::Arc;

use lapwing_kernels::kv::{KvLayout, KvLease, OutOfPages};
use lapwing_traces::Nanos;

use super::{RowProgress, Sequence, SequenceTask};
use crate::message::RollBack;
use crate::prefix::{Found, Kept};
use crate::scheduler::effect::SchedulerEffect;
use crate::scheduler::models::Model;
use crate::scheduler::parts::KvPages;

impl Sequence {
    /// Leases pages for all tokens and starts from the first row that is not cached.
    pub(in super::super) fn reserve_prompt(
        &mut self,
        model: &mut Model,
        effects: &mut Vec<SchedulerEffect>,
    ) -> Result<(), OutOfPages> {
        let reusable = self.reusable_rows();
        if self.draft().is_empty() {
            let (ids, rows) = (&self.ids[..reusable], self.ids.len());
            if !model.may_have_room(&self.prefix, ids, rows) {
                let (wanted, free) = (model.kv.layout.pages_for(rows), model.kv.pool.free_pages());
                return Err(OutOfPages { wanted, free });
            }
        }
        let mut found = model.find_prefix(&self.prefix, &self.ids[..reusable]);
        let mut states = self.first_states(model, found.state.as_ref());
        if states.is_err() {
            // The only place that is not in use may be that of the state that was found.
            found = Found { known: found.known, ..Found::default() };
            states = self.first_states(model, None);
        }
        let states = states?;
        let Found { pages, partial, known, .. } = found;
        let whole = pages.len() * model.kv.layout.page_rows;
        let place = pages.len();
        self.lease = KvLease::new(pages);
        if let Err(error) = self.reserve(model) {
            self.lease = KvLease::default();
            return Err(error);
        }
        let mut cached = whole;
        if let Some((page, rows)) = partial {
            let instead = RollBack { sequence: self.id, row: whole };
            let copy = model.copy_page(page, self.lease.pages()[place].clone(), instead);
            cached += if copy.is_some() { rows } else { 0 };
            effects.extend(copy.map(SchedulerEffect::Copy));
        }
        if self.times.admitted == Nanos::default() {
            self.times.cached_tokens = cached;
            let again = if model.has_state { known.saturating_sub(cached) } else { 0 };
            self.times.recomputed_tokens = again;
        }
        self.states = states;
        let nodes = model.planner(self.kind().output).graph().nodes().len();
        self.progress = Arc::new(RowProgress::after(cached, nodes));
        (self.sent, self.shared) = (cached, Kept::rows(whole));
        Ok(())
    }

    /// First rows of which only keys and values are needed, and nothing that a route ends with.
    pub(in super::super) fn reusable_rows(&self) -> usize {
        let needed = match self.work {
            SequenceTask::Tokens(_) => self.ids.len() - 1,
            SequenceTask::Scores { next, .. } => next - 1,
            SequenceTask::Hidden { next, .. } => next,
        };
        needed.min(self.goal())
    }

    /// Leases pages for all tokens so far. Drops what is not sent of the draft if there are no pages for it.
    pub(in super::super) fn reserve(&mut self, model: &mut Model) -> Result<(), OutOfPages> {
        let rows = self.rows();
        let all = model.grow(&mut self.lease, rows);
        let sent = self.sent.saturating_sub(self.ids.len());
        if all.is_ok() || self.draft().len() <= sent {
            return all;
        }
        self.shorten_draft(sent);
        let rows = self.rows();
        model.grow(&mut self.lease, rows)
    }

    /// Drops what is not sent of the draft.
    pub(in super::super) fn drop_due_draft(&mut self) {
        self.shorten_draft(self.sent.saturating_sub(self.ids.len()));
    }

    /// Gives up the pages of the prefix cache that hold rows from `row` on, because they will be written.
    /// Returns the first row to compute.
    pub(in super::super) fn unshare(&mut self, row: usize, layout: &KvLayout) -> usize {
        if row >= self.shared.rows {
            return row;
        }
        let whole = row / layout.page_rows * layout.page_rows;
        self.shared = Kept::rows(whole);
        self.lease.truncate(layout, whole);
        whole
    }

    /// Whether there are pages for all tokens so far.
    pub(in super::super) fn has_pages(&self, kv: &KvPages) -> bool {
        self.missing_pages(kv) == 0
    }

    /// Pages that it lacks for all tokens so far.
    pub(in super::super) fn missing_pages(&self, kv: &KvPages) -> usize {
        kv.layout.pages_for(self.rows()).saturating_sub(self.lease.pages().len())
    }
}
