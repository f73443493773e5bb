//! What the rows of a predictor are given: the hidden states of the target's rows before them.
//!
//! A predictor's sequence has the tokens of its target from a certain one on, the first one before which it knows the hidden states; it has no
//! keys of earlier rows. Its row r is that of the target's token `first + r`, and is given the hidden states of the row before that. Where the
//! target has not computed these yet, as for the second token of a draft, the predictor's own take their place.

use std::ops::Range;

use super::Sequence;
use crate::draft::{DRAFT_MAX, Schedule};
use crate::message::HiddenRows;
use crate::scheduler::effect::SchedulerEffect;

/// Most rows of a companion that count as a decode step: those of a draft that was accepted elsewhere, and
/// the next token. More are a prompt to catch up with.
pub(super) const STEP_ROWS: usize = DRAFT_MAX + 1;

/// Hidden states that rows of a predictor are given.
#[derive(Debug)]
pub(super) struct Given {
    /// The target's token of the first row.
    first: usize,
    /// The first row whose hidden states are here; those before it are needed no more.
    from: usize,
    /// Rows before this one are given the target's, later ones the predictor's own.
    own: usize,
    width: usize,
    values: Vec<f32>,
}

impl Given {
    /// Nothing yet, for a sequence whose first row comes after the first of these.
    pub(super) fn after(hidden: &HiddenRows) -> Given {
        let (first, width) = (hidden.start + 1, hidden.width);
        Given { first, from: 0, own: 0, width, values: Vec::new() }
    }

    /// The target's token of the first row.
    pub(super) fn first(&self) -> usize {
        self.first
    }

    /// Rows that are given something.
    fn end(&self) -> usize {
        self.from + self.values.len() / self.width.max(1)
    }

    /// Number of ready rows. Without a wish for tokens only rows of the target's tokens but the last, and only many at once.
    pub(super) fn due(&self, sequence: &Sequence, drafted: bool) -> usize {
        let ready = |goal: usize| self.end().min(goal).saturating_sub(sequence.sent);
        match drafted {
            false => ready(sequence.goal()),
            true => match ready(sequence.ids.len() - 1) {
                few if few <= STEP_ROWS => 0,
                many => many,
            },
        }
    }

    /// What rows are given, side by side.
    pub(super) fn rows(&self, rows: &Range<usize>) -> &[f32] {
        let at = |row: usize| row.saturating_sub(self.from) * self.width;
        self.values.get(at(rows.start)..at(rows.end)).unwrap_or_default()
    }

    /// Keeps what is given to rows before `end` only.
    fn truncate(&mut self, end: usize) {
        self.values.truncate(end.saturating_sub(self.from) * self.width);
    }

    /// Drops what rows before `start` are given, if these are many.
    fn drop_before(&mut self, start: usize) {
        let rows = start.min(self.end()).saturating_sub(self.from);
        if rows > STEP_ROWS {
            self.values.drain(..rows * self.width);
            self.from += rows;
        }
    }

    /// Adds hidden states of the target, in place of the predictor's own. `false` if those of a row between are missing.
    fn add(&mut self, hidden: &HiddenRows) -> bool {
        let rows = hidden.values.len() / self.width.max(1);
        let first = hidden.start + 1;
        if first > self.first + self.own || hidden.width != self.width {
            return false;
        }
        let end = (first + rows).saturating_sub(self.first);
        if end > self.own {
            let new = &hidden.values[hidden.values.len() - (end - self.own) * self.width..];
            let at = (self.own - self.from) * self.width;
            let within = new.len().min(self.values.len() - at);
            self.values[at..at + within].copy_from_slice(&new[..within]);
            self.values.extend_from_slice(&new[within..]);
            self.own = end;
        }
        true
    }
}

impl Sequence {
    /// What its rows are given, if it is a predictor's.
    pub(super) fn given(&self) -> Option<&Given> {
        self.speculation.as_ref()?.given.as_ref()
    }

    fn given_mut(&mut self) -> Option<&mut Given> {
        self.speculation.as_mut()?.given.as_mut()
    }

    /// The target's token of a companion's first row.
    pub(super) fn first(&self) -> usize {
        self.given().map_or(0, Given::first)
    }

    /// Whether hidden states of its rows are given to a predictor: the one that drafts for it, or itself.
    pub(in super::super) fn passes_on(&self) -> bool {
        let drafts = self.model_drafts();
        self.given().is_some() || drafts.is_some_and(|it| it.is_given && it.stopped.is_none())
    }

    /// Whether hidden states are wanted of more of the next `rows` rows than those that need their output.
    pub(in super::super) fn passes_rows_on(&self, rows: usize) -> bool {
        self.passes_on() && rows + self.branch_rows() > self.selected_in(rows)
    }

    /// Keeps hidden states of rows that are computed: for its predictor, or of a predictor for its next row.
    pub(in super::super) fn keep_hidden(&mut self, hidden: HiddenRows) {
        let is_wanted = self.passes_on();
        let Some(speculation) = self.speculation.as_mut().filter(|_| is_wanted) else { return };
        match &mut speculation.given {
            None => speculation.hidden.push(hidden),
            Some(given) if hidden.start + 1 == given.end() && hidden.width == given.width => {
                given.values.extend_from_slice(&hidden.values);
            }
            // The target's are known already.
            Some(_) => {}
        }
    }

    /// Drops hidden states that no predictor has taken.
    pub(super) fn forget_hidden(&mut self) {
        if let Some(speculation) = &mut self.speculation {
            speculation.hidden = Vec::new();
        }
    }

    /// Drops what a predictor's rows behind `row` are given by rows that are computed again.
    pub(super) fn drop_own_hidden(&mut self, row: usize) {
        if let Some(given) = self.given_mut() {
            given.truncate(given.own.max(row + 1));
        }
    }

    /// Takes the hidden states of the target over. A predictor that drafts while the target waits computes the rows again that were given its
    /// own instead.
    pub(super) fn take_hidden(
        &mut self,
        target: &mut Sequence,
        effects: &mut Vec<SchedulerEffect>,
    ) {
        let is_sync = target.model_drafts().is_some_and(|it| it.schedule == Schedule::Synchronous);
        let (agreed, complete) = (self.agreed(), self.progress.complete());
        let (Some(given), Some(of_target)) = (self.given_mut(), &mut target.speculation) else {
            return;
        };
        let own = given.own;
        let taken = of_target.hidden.iter().take_while(|hidden| given.add(hidden)).count();
        of_target.hidden.drain(..taken);
        let is_new = given.own > own;
        given.drop_before(own.min(agreed).min(complete));
        if is_sync && is_new && self.sent > own {
            self.roll_back(own, effects);
        }
    }

    /// Whether a predictor's sequence cannot go on: hidden states of a row are missing, so that it would wait for ever.
    pub(in super::super) fn lacks_hidden(&self, target: &Sequence) -> bool {
        let Some(given) = self.given() else { return false };
        let waiting = target.speculation.as_ref().and_then(|it| it.hidden.first());
        let gap = waiting.is_some_and(|hidden| hidden.start + 1 > given.first + given.own);
        let is_idle = self.in_flight == 0 && waiting.is_none() && target.awaits_draft();
        gap || is_idle && given.end() <= self.sent
    }
}
