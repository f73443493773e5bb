//! Hidden states that another model is given.

use std::ops::Range;

use lapwing_kernels::device::{Batch, DeviceError};

use super::{Decision, Logits};
use crate::draft::StepTokens;
use crate::message::HiddenRows;

/// The hidden states of a chunk, and the rows of one sequence in it.
pub(super) struct PassedOn<'a> {
    pub(super) batch: &'a Batch,
    /// Those of all rows, or only of rows whose output is wanted.
    pub(super) hidden: &'a Logits<'a>,
    pub(super) of_batch: Range<usize>,
    /// Which of the rows whose output is wanted is the sequence's first.
    pub(super) selected: usize,
}

impl PassedOn<'_> {
    /// The hidden states of the rows that the sequence goes on behind: all without a choice of tokens, otherwise those up to the row that
    /// chose the last token. Rows of rejected tokens are left out. `None` if the result is not needed.
    pub(super) fn after(&self, decision: &Decision) -> Result<Option<HiddenRows>, DeviceError> {
        let PassedOn { batch, hidden, of_batch, .. } = self;
        let rows = match decision {
            Decision::Nothing => of_batch.clone().collect(),
            Decision::Tokens(tokens, _) => self.path(tokens),
            _ => return Ok(None),
        };
        let has_all = hidden.tensor.rows() == batch.rows();
        let places = rows.into_iter().filter_map(|row| match has_all {
            true => Some((row, row)),
            false => Some((row, batch.selected.binary_search(&row).ok()?)),
        });
        let width = hidden.tensor.width;
        let mut passed: Option<HiddenRows> = None;
        for (row, place) in places {
            let start = batch.positions[row] as usize;
            let to = passed.get_or_insert_with(|| HiddenRows { start, width, values: Vec::new() });
            to.values.extend_from_slice(hidden.row(place)?);
        }
        Ok(passed)
    }

    /// The rows of the sequence up to the one that chose the last token.
    fn path(&self, tokens: &StepTokens) -> Vec<usize> {
        let PassedOn { batch, of_batch, selected, .. } = self;
        let mut at = batch.selected.get(*selected).copied().unwrap_or(of_batch.start);
        let mut rows: Vec<usize> = (of_batch.start..=at).collect();
        for token in tokens.iter().take(tokens.more.len()) {
            let Some(next) = batch.child(at, token.id) else { break };
            rows.push(next);
            at = next;
        }
        rows
    }
}
