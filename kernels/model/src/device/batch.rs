//! The rows that a device computes.

use std::ops::Range;

use crate::graph::RowSet;
use crate::kv::{PageId, PageIds, StateId};

/// Number of a model in an engine, such as a target or its draft model. An engine with one model
/// numbers it 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModelId(pub usize);

/// Rows to compute, as a device sees them: no request, no text, no channel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// The model that the rows are for; all rows of a batch are for the same one.
    pub model: ModelId,
    /// Token id of each row.
    pub ids: Vec<u32>,
    /// Position of each row in its sequence.
    pub positions: Vec<u32>,
    /// Sequences that the rows belong to, in row order, without gaps. The branches of a token tree follow the
    /// span of their sequence.
    pub spans: Vec<BatchSpan>,
    /// Rows whose logits are wanted, ascending.
    pub selected: Vec<usize>,
    /// Whether all rows go on to where hidden states are passed on ([`RowSet::Passed`]), not only the selected
    /// ones.
    pub passes_on: bool,
    /// The rows of [`Op::Given`](crate::op::Op::Given), side by side; empty for a model that is given none.
    pub given: Vec<f32>,
}

/// Consecutive rows of one sequence, at consecutive positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchSpan {
    /// Rows of the batch.
    pub rows: Range<usize>,
    /// Position of the first row; the cache holds all positions before it.
    pub start: usize,
    /// KV pages of the sequence, from position 0 to at least the last row.
    pub pages: PageIds,
    /// Where it leaves an earlier span of its sequence, if it is a branch of a token tree.
    pub fork: Option<Fork>,
    /// Where layers with a state find it and keep it.
    pub states: SpanStates,
}

/// Places of the states of a sequence's layers, as a span needs them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpanStates {
    /// The state before the first row; `None` at the beginning of a sequence.
    pub from: Option<StateId>,
    /// The state after the last row. It may be the same place as `from`.
    pub to: StateId,
    /// Positions within the span, and its end, before which the state is also kept elsewhere, ascending. A position may have several.
    pub keep: Vec<(usize, StateId)>,
}

impl SpanStates {
    /// The states of a sequence that has the place `own` for itself, from position `start` on.
    pub fn own(own: StateId, start: usize) -> SpanStates {
        SpanStates { from: (start > 0).then_some(own), to: own, keep: Vec::new() }
    }

    /// Places that the rows write.
    pub fn written(&self) -> impl Iterator<Item = StateId> {
        self.keep.iter().map(|(_, place)| *place).chain([self.to])
    }
}

/// Where a branch of a token tree leaves an earlier span of its sequence.
///
/// A branch has a list of pages of its own: it shares the full pages before its first row, and begins with a copy
/// of a partly filled one, as sequences do that share a prompt in vLLM (Kwon et al., 2023, section 4.4). Each of its
/// rows thus finds the keys and values of the rows before it at the positions that they have in a sequence without
/// branches, so that attention adds them in the same order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fork {
    /// Row of the batch that comes before the first row of the branch.
    pub after: usize,
    /// A page with rows before the branch, and the page of the branch that begins as its copy; `None` if the branch
    /// begins a page. Each layer is copied after the rows of earlier spans are written, and before those of the
    /// branch are.
    pub copy: Option<(PageId, PageId)>,
}

impl BatchSpan {
    /// One past the position of the last row.
    pub fn end(&self) -> usize {
        self.start + self.rows.len()
    }

    /// Positions whose keys and values are written, those of a copied page included; `page_rows` are the positions
    /// of a page.
    pub fn written(&self, page_rows: usize) -> Range<usize> {
        let start = match self.fork {
            Some(_) => self.start / page_rows * page_rows,
            None => self.start,
        };
        start..self.end()
    }
}

impl Batch {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.ids.len()
    }

    /// Number of rows of [`RowSet::Passed`].
    pub fn passed_rows(&self) -> usize {
        if self.passes_on { self.rows() } else { self.selected.len() }
    }

    /// The rows of a value with rows for `from` that one with rows for `to` keeps, by their places; `None` if these are all.
    pub fn kept_rows(&self, from: RowSet, to: RowSet) -> Option<&[usize]> {
        let has_all = |set| set == RowSet::All || set == RowSet::Passed && self.passes_on;
        (has_all(from) && !has_all(to)).then_some(&self.selected[..])
    }

    /// Appends the rows of one sequence. `selected` are the offsets, within `ids`, of the rows
    /// whose logits are wanted, ascending. States are at the place with the number of the first page.
    pub fn push(
        &mut self,
        ids: &[u32],
        start: usize,
        pages: impl Into<PageIds>,
        selected: Range<usize>,
    ) {
        let first = self.rows();
        let pages = pages.into();
        self.ids.extend_from_slice(ids);
        self.positions.extend((start..start + ids.len()).map(|p| p as u32));
        let rows = first..first + ids.len();
        let states = SpanStates::own(pages.first().copied().unwrap_or_default(), start);
        self.spans.push(BatchSpan { rows, start, pages, fork: None, states });
        self.selected.extend(selected.map(|row| first + row));
    }

    /// Appends a branch of the latest sequence, all of whose logits are wanted.
    pub fn push_branch(&mut self, ids: &[u32], start: usize, pages: PageIds, fork: Fork) {
        self.push(ids, start, pages, 0..ids.len());
        if let Some(span) = self.spans.last_mut() {
            span.fork = Some(fork);
        }
    }

    /// The span of each sequence, without branches.
    pub fn sequences(&self) -> impl Iterator<Item = &BatchSpan> {
        self.spans.iter().filter(|span| span.fork.is_none())
    }

    /// Place of the span with a row.
    fn span_at(&self, row: usize) -> usize {
        self.spans.partition_point(|span| span.rows.end <= row)
    }

    /// Whether a row is the last one of its sequence's own span.
    pub fn is_last_of_sequence(&self, row: usize) -> bool {
        let span = self.spans.get(self.span_at(row));
        span.is_some_and(|span| span.fork.is_none() && span.rows.end == row + 1)
    }

    /// The rows of each sequence, its branches included.
    pub fn sequence_rows(&self) -> impl Iterator<Item = Range<usize>> {
        let starts = self.sequences().map(|span| span.rows.start);
        let ends = self.sequences().skip(1).map(|span| span.rows.start).chain([self.rows()]);
        starts.zip(ends).map(|(start, end)| start..end)
    }

    /// The row that follows `row` in its sequence with the token `id`: the next one, or the first of a branch.
    pub fn child(&self, row: usize, id: u32) -> Option<usize> {
        self.children(row).find(|next| self.ids[*next] == id)
    }

    /// The row that follows `row` on the longest path of its sequence, or else on its first branch.
    pub fn first_child(&self, row: usize) -> Option<usize> {
        self.children(row).next()
    }

    fn children(&self, row: usize) -> impl Iterator<Item = usize> {
        let own = self.span_at(row);
        let next = self.spans[own..].first().map(|span| row + 1..span.rows.end);
        // The branches of a sequence follow its span.
        let later = self.spans.get(own + 1..).unwrap_or_default();
        let branches = later.iter().map_while(|span| Some((span, span.fork.as_ref()?)));
        let branches = branches.filter(move |(_, fork)| fork.after == row);
        let next = next.into_iter().flat_map(|rest| rest.take(1));
        next.chain(branches.map(|(span, _)| span.rows.start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_are_rows_of_their_sequence() {
        let mut batch = Batch::default();
        batch.push(&[4, 5, 6], 30, [0, 1], 1..3);
        batch.push_branch(&[7], 32, [0, 2].into(), Fork { after: 1, copy: None });
        batch.push_branch(&[8, 9], 33, [0, 3].into(), Fork { after: 3, copy: Some((2, 3)) });
        batch.push(&[5], 8, [4], 0..1);
        let sequences: Vec<_> = batch.sequences().map(|span| span.rows.clone()).collect();
        assert_eq!(sequences, [0..3, 6..7]);
        assert_eq!(batch.sequence_rows().collect::<Vec<_>>(), [0..6, 6..7]);
        assert_eq!(
            (&batch.positions[..], &batch.selected[..]),
            (&[30, 31, 32, 32, 33, 34, 8][..], &[1, 2, 3, 4, 5, 6][..])
        );
        let children =
            [(0, 5, Some(1)), (1, 6, Some(2)), (1, 7, Some(3)), (1, 8, None), (2, 7, None)];
        for (row, id, child) in
            children.into_iter().chain([(3, 8, Some(4)), (4, 9, Some(5)), (5, 5, None)])
        {
            assert_eq!(batch.child(row, id), child, "{id} after row {row}");
        }
        let written: Vec<_> = batch.spans.iter().map(|span| span.written(32)).collect();
        assert_eq!(written, [30..33, 32..33, 32..35, 8..9]);
    }
}
