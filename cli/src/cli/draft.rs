//! The drafter of speculative decoding: its option and its report.

use std::str::FromStr;

use lapwing_engine::draft::{ChoiceError, DraftChoice, DraftStats};
use serde::Serialize;

/// Value of `--draft`.
#[derive(Clone, Debug, Default)]
pub(crate) struct DraftArg(pub(crate) DraftChoice);

impl FromStr for DraftArg {
    type Err = ChoiceError;

    fn from_str(name: &str) -> Result<DraftArg, ChoiceError> {
        name.parse().map(DraftArg)
    }
}

/// What the drafts of an answer did, as printed by `--json`.
#[derive(Debug, Serialize)]
pub(crate) struct DraftReport {
    drafter: String,
    steps: usize,
    verified_steps: usize,
    drafted: usize,
    accepted: usize,
    declined: usize,
    tokens_per_step: f64,
    positions: Vec<(usize, usize)>,
    tree_steps: usize,
    branch_steps: usize,
    wasted_rows: usize,
    draft_rows: usize,
    draft_rows_wasted: usize,
    stopped: Option<String>,
}

impl DraftReport {
    /// The report of a drafter's counts.
    pub(crate) fn new(drafter: &str, stats: &DraftStats) -> DraftReport {
        DraftReport {
            drafter: drafter.to_owned(),
            steps: stats.steps,
            verified_steps: stats.verified_steps,
            drafted: stats.drafted,
            accepted: stats.accepted,
            declined: stats.declined,
            tokens_per_step: stats.tokens_per_step(),
            positions: stats.positions.clone(),
            tree_steps: stats.tree_steps,
            branch_steps: stats.branch_steps,
            wasted_rows: stats.wasted,
            draft_rows: stats.draft_rows,
            draft_rows_wasted: stats.draft_rows_wasted,
            stopped: stats.stopped.clone(),
        }
    }

    /// The report on one line.
    pub(crate) fn line(&self) -> String {
        let DraftReport { drafter, steps, drafted, accepted, declined, tokens_per_step, .. } = self;
        let wasted_rows = self.wasted_rows;
        let trees = match self.tree_steps {
            0 => String::new(),
            trees => format!(", {} of {trees} trees left their longest path", self.branch_steps),
        };
        let is_unused = self.draft_rows == 0 && self.verified_steps == 0;
        let when = if is_unused { "nothing was drafted" } else { "drafting ended early" };
        let stopped = self.stopped.as_ref().map(|reason| format!("; {when}: {reason}"));
        format!(
            "[draft {drafter}: {accepted} of {drafted} drafted tokens accepted, {tokens_per_step:.2} tokens per \
             step in {steps} steps, {wasted_rows} rows wasted{trees}; {declined} drafts were declined, because they would not have paid{}]",
            stopped.unwrap_or_default()
        )
    }
}
