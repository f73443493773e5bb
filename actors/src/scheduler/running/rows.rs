//! The rows of a sequence: which are ready, which need their output, and how they go into a chunk.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use lapwing_kernels::device::Batch;
use lapwing_plan::Route;

use super::given::STEP_ROWS;
use super::{Sequence, SequenceTask};
use crate::chunk::{OutputAction, SequenceRows};
use crate::handover::Sampling;

impl Sequence {
    /// Number of rows of all tokens, including the draft.
    pub(super) fn rows(&self) -> usize {
        self.ids.len() + self.draft().len()
    }

    /// Token ids of these rows.
    pub(super) fn row_ids(&self, rows: Range<usize>) -> Cow<'_, [u32]> {
        if rows.end <= self.ids.len() {
            return Cow::Borrowed(&self.ids[rows]);
        }
        let all = self.ids.iter().chain(self.draft());
        Cow::Owned(all.skip(rows.start).take(rows.len()).copied().collect())
    }

    /// Number of rows to compute. The last token of a scored text predicts no other token, and a row
    /// does not depend on later ones.
    pub(in super::super) fn goal(&self) -> usize {
        match self.work {
            SequenceTask::Tokens(_) => self.rows(),
            SequenceTask::Scores { .. } => self.ids.len() - 1,
            SequenceTask::Hidden { whole: true, .. } => self.ids.len(),
            SequenceTask::Hidden { end, .. } => end,
        }
    }

    /// Number of ready, undispatched rows; 0 after a roll-back until the last stale chunk has ended, and while
    /// drafted tokens are awaited.
    pub(in super::super) fn due(&self) -> usize {
        let waits = self.stale > 0 || self.awaits_draft();
        let drafted = self.drafts_to().is_some_and(|end| self.ids.len() >= end);
        match self.given() {
            _ if waits => 0,
            Some(given) => given.due(self, drafted),
            None if drafted => 0,
            None if self.computes_single_rows() => (self.goal() - self.sent).min(1),
            None => self.goal() - self.sent,
        }
    }

    /// Whether a draft model's sequence computes one row at a time: it has computed the target's first tokens.
    fn computes_single_rows(&self) -> bool {
        let single = self.speculation.as_ref().is_some_and(|it| it.single_rows);
        single && self.sent >= self.times.prompt_tokens
    }

    /// Whether the ready rows are a decode step.
    pub(in super::super) fn is_decoding(&self) -> bool {
        match self.drafts_to() {
            None => self.due() > 0 && self.sent + 1 >= self.ids.len() && self.has_generated(),
            Some(_) => (1..=STEP_ROWS).contains(&self.due()),
        }
    }

    /// How many of the last `rows` rows need logits.
    fn sampled_rows(&self, rows: usize) -> usize {
        if self.has_generated() { (1 + self.draft().len()).min(rows) } else { 1 }
    }

    /// Prompt rows for a chunk with room for `left`. Rows that see later ones are all in one chunk; a text that is
    /// longer than the room has a chunk of its own, in which it comes first.
    pub(in super::super) fn prompt_rows(&self, left: usize, others: bool) -> usize {
        match self.work {
            SequenceTask::Hidden { whole: true, .. } if others && self.due() > left => 0,
            SequenceTask::Hidden { whole: true, .. } => self.due(),
            _ => self.due().min(left),
        }
    }

    /// How many of the next `rows` rows, and of the branches beside them, need their output.
    pub(in super::super) fn selected_in(&self, rows: usize) -> usize {
        let end = self.sent + rows;
        match &self.work {
            SequenceTask::Tokens(state)
                if end == self.goal() && (state.is_some() || self.is_ahead()) =>
            {
                self.sampled_rows(rows) + self.branch_rows()
            }
            SequenceTask::Tokens(_) => 0,
            SequenceTask::Scores { next, .. } => end - (*next - 1).clamp(self.sent, end),
            SequenceTask::Hidden { next, end: last, .. } => {
                let last = (*last).min(end);
                last - (*next).clamp(self.sent, last)
            }
        }
    }

    /// Puts the next `rows` rows into the batch of a chunk with that number.
    pub(in super::super) fn send_rows(
        &mut self,
        rows: usize,
        chunk: u64,
        route: &Route,
        batch: &mut Batch,
    ) -> SequenceRows {
        let sent = self.sent..self.sent + rows;
        let drafts = self.speculation.is_some();
        let role = if drafts { self.begin_pass() } else { None };
        let (selected, action) = self.dispatch_rows(rows);
        let pages = self.lease.page_ids().clone();
        batch.push(&self.row_ids(sent.clone()), sent.start, pages, selected);
        if let Some(given) = self.given() {
            batch.given.extend_from_slice(given.rows(&sent));
        }
        let states = self.states.as_mut().map_or_else(Vec::new, |states| states.send(&sent, batch));
        let branches = if drafts { self.push_branches(batch) } else { Vec::new() };
        self.on_pass(chunk, sent, route);
        SequenceRows {
            sequence: self.id,
            epoch: self.progress.epoch(),
            lease: self.lease.clone(),
            branches,
            states,
            progress: Arc::clone(&self.progress),
            sink: Arc::clone(&self.sink),
            action,
            passes_on: self.passes_on(),
            hidden: None,
            role,
            context: self.context,
        }
    }

    /// Dispatches the next `rows` rows. Returns the offsets of rows that need their output, and its use.
    fn dispatch_rows(&mut self, rows: usize) -> (Range<usize>, OutputAction) {
        let (start, end) = (self.sent, self.sent + rows);
        let (goal, sampled) = (self.goal(), self.sampled_rows(rows));
        self.sent = end;
        self.in_flight += 1;
        match &mut self.work {
            SequenceTask::Tokens(state) if end == goal => {
                let links = self.speculation.as_mut().map(|it| it.link_passes());
                let (before, next) = links.unwrap_or_default();
                let sampling = match (state.take(), before) {
                    (Some(generate), _) => Sampling::new(generate, next),
                    (None, Some(before)) => Sampling::after(before, next),
                    (None, None) => return (0..0, OutputAction::None),
                };
                (rows - sampled..rows, OutputAction::Sample(sampling))
            }
            SequenceTask::Tokens(_) => (0..0, OutputAction::None),
            SequenceTask::Scores { next, top } => {
                // The row at position p predicts the token at p + 1.
                let first = (*next - 1).clamp(start, end);
                if first == end {
                    return (0..0, OutputAction::None);
                }
                let (ids, top) = (self.ids[first + 1..end + 1].to_vec(), *top);
                (first - start..rows, OutputAction::Score { ids, top })
            }
            SequenceTask::Hidden { next, end: last, .. } => {
                let last = (*last).min(end);
                match (*next).clamp(start, last) {
                    first if first == last => (0..0, OutputAction::None),
                    first => (first - start..last - start, OutputAction::Embed),
                }
            }
        }
    }
}
