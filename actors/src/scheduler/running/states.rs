//! The states of a sequence's layers: a place of its own that each row changes, and places where it keeps what they were after some
//! rows, for others to go on there.

use std::ops::Range;

use lapwing_kernels::device::{Batch, SpanStates};
use lapwing_kernels::kv::{KvLayout, KvPage, OutOfPages};

use super::Sequence;
use crate::prefix::{KeptState, Namespace, PrefixTree, PrefixUse};
use crate::scheduler::models::Model;

/// Places of the states of a sequence.
pub(in crate::scheduler) struct States {
    /// Its own.
    own: KvPage,
    /// Where its first rows go on, as long as they are not sent.
    start: Option<KvPage>,
    /// Rows after which the states are to be kept, ascending.
    wanted: Vec<usize>,
    /// Places where rows that are sent next keep them, or rows that are sent.
    kept: Vec<KeptState>,
    /// The same for the rows of a draft, ascending: the sequence goes on at one of them if tokens behind it are rejected.
    drafted: Vec<KeptState>,
}

impl Model {
    /// A free place for states. The one that was used least recently is dropped if none is free.
    fn state_place(&self) -> Result<KvPage, OutOfPages> {
        let states = &self.kv.states;
        if let (0, Some(prefixes)) = (states.free_pages(), &self.prefixes) {
            prefixes.tree().free_state();
        }
        let mut places = states.alloc(1)?;
        places.pop().ok_or(OutOfPages { wanted: 1, free: 0 })
    }
}

impl States {
    /// Puts the places into the latest span of a batch, which has these rows. Returns them.
    pub(super) fn send(&mut self, rows: &Range<usize>, batch: &mut Batch) -> Vec<KvPage> {
        let from = match (rows.start, self.start.take()) {
            (0, _) => None,
            (_, Some(start)) => Some(start),
            (_, None) => Some(self.own.clone()),
        };
        let is_in_span = |state: &&KeptState| state.rows > rows.start && state.rows <= rows.end;
        let kept = self.kept.iter().chain(&self.drafted).filter(is_in_span);
        let mut kept: Vec<KeptState> = kept.cloned().collect();
        kept.sort_by_key(|state| state.rows);
        if let Some(span) = batch.spans.last_mut() {
            span.states = SpanStates {
                from: from.as_ref().map(KvPage::id),
                to: self.own.id(),
                keep: kept.iter().map(|state| (state.rows, state.place.id())).collect(),
            };
        }
        let kept = kept.into_iter().map(|state| state.place);
        from.into_iter().chain([self.own.clone()]).chain(kept).collect()
    }
}

impl Sequence {
    /// The states of a sequence that begins at one that is kept, or at its first row. `None` if the model has none.
    pub(super) fn first_states(
        &self,
        model: &Model,
        start: Option<&KeptState>,
    ) -> Result<Option<Box<States>>, OutOfPages> {
        if !model.has_state {
            return Ok(None);
        }
        let own = model.state_place()?;
        let cached = start.map_or(0, |state| state.rows);
        let start = start.map(|state| state.place.clone());
        let mut states =
            States { own, start, wanted: Vec::new(), kept: Vec::new(), drafted: Vec::new() };
        if let (Some(prefixes), PrefixUse::Shared(namespace)) = (&model.prefixes, &self.prefix) {
            let ids = &self.ids[..self.reusable_rows()];
            // Where another text has gone on in another way.
            let branch = prefixes.tree().matched(namespace, ids);
            let layout = &model.kv.layout;
            states.wanted = wanted(layout, ids.len(), model.context);
            states.wanted.push(branch / layout.page_rows * layout.page_rows);
            states.wanted.retain(|rows| *rows > cached);
            states.wanted.sort_unstable();
            states.wanted.dedup();
        }
        Ok(Some(Box::new(states)))
    }

    /// Has the states kept after so many rows, if these are not sent yet.
    pub(in crate::scheduler) fn want_state(&mut self, rows: usize) {
        let Some(states) = self.states.as_mut().filter(|_| rows > self.sent) else { return };
        if let Err(at) = states.wanted.binary_search(&rows) {
            states.wanted.insert(at, rows);
        }
    }

    /// Reserves places for the states that are wanted after some of the next `rows` rows, as long as there are any.
    pub(in crate::scheduler) fn reserve_states(&mut self, rows: usize, model: &Model) {
        let end = self.sent + rows;
        let Some(states) = &mut self.states else { return };
        let due = states.wanted.partition_point(|rows| *rows <= end);
        for rows in states.wanted.drain(..due) {
            if let Ok(place) = model.state_place() {
                states.kept.push(KeptState { rows, place });
            }
        }
    }

    /// Reserves places for the states after each row of a draft but the last, so that any of its tokens may be rejected. Drops the
    /// tokens of the draft for which there are none.
    pub(in crate::scheduler) fn reserve_draft_states(&mut self, model: &Model) {
        let (first, end) = (self.ids.len(), self.rows());
        if self.due() == 0 || self.sent >= first || end == first {
            return;
        }
        let Some(states) = &mut self.states else { return };
        states.drafted.retain(|state| (first..end).contains(&state.rows));
        for rows in first + states.drafted.len()..end {
            let Ok(place) = model.state_place() else {
                self.shorten_draft(rows - first);
                return;
            };
            states.drafted.push(KeptState { rows, place });
        }
    }

    /// Goes back to the states after `row` rows, if a draft had more.
    pub(super) fn restore_states(&mut self, row: usize) {
        let Some(states) = &mut self.states else { return };
        let kept = states.drafted.iter().find(|state| state.rows == row);
        debug_assert!(kept.is_some() || states.drafted.is_empty(), "no states after {row} rows");
        if let Some(kept) = kept {
            states.own = kept.place.clone();
        }
        states.kept.retain(|state| state.rows <= row);
    }

    /// Puts the states after rows that are computed, of tokens that are not drafted any more, into the prefix cache, which has the pages
    /// of these rows; if the sequence has ended, also its latest.
    pub(in crate::scheduler) fn keep_states(
        &mut self,
        tree: &mut PrefixTree,
        namespace: &Namespace,
        ended: bool,
    ) {
        let complete = self.progress.complete();
        let Some(states) = &mut self.states else { return };
        let known = complete.min(self.ids.len());
        let done = states.kept.partition_point(|state| state.rows <= known);
        for KeptState { rows, place } in states.kept.drain(..done) {
            tree.insert_state(namespace, &self.ids[..rows], place);
        }
        if ended && complete == self.sent && complete <= self.ids.len() {
            tree.insert_state(namespace, &self.ids[..complete], states.own.clone());
        }
    }

    /// Gives up the places of a draft that is verified.
    pub(super) fn end_draft_states(&mut self) {
        if let Some(states) = &mut self.states {
            states.drafted.clear();
        }
    }

    /// The row to go back to so that the rows from `row` on are computed again: the first one if the sequence has states, because
    /// these have no way back.
    pub(in crate::scheduler) fn go_back(&mut self, row: usize) -> usize {
        let Some(states) = &mut self.states else { return row };
        states.kept.clear();
        states.drafted.clear();
        states.start = None;
        0
    }
}

/// Ends of pages after which states are worth their memory: the last one of the `rows` rows of a prompt, because a longer prompt may begin with
/// this one, and ends from which on the keys and values before take as much memory as the states, at distances that double up to
/// `context` rows, so that a text that goes on elsewhere computes at most half of its rows again.
fn wanted(layout: &KvLayout, rows: usize, context: usize) -> Vec<usize> {
    let page_rows = layout.page_rows.max(1);
    let least = layout.state_bytes().div_ceil(layout.row_bytes().max(1));
    let first = least.div_ceil(page_rows).max(1) * page_rows;
    let doubled = std::iter::successors(Some(first), |rows| rows.checked_mul(2));
    let mut wanted: Vec<usize> = doubled.take_while(|end| *end <= context).collect();
    wanted.push(rows / page_rows * page_rows);
    wanted
}
