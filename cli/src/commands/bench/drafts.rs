//! Generations with and without drafts, pair by pair in one engine.

use lapwing_engine::draft::DraftStats;
use lapwing_traces::metrics::rate;
use serde::{Deserialize, Serialize};

use super::report::Figures;
use super::subject::Subject;
use crate::cli::failure::Failure;

/// What speculative decoding did in the measured runs of a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Drafted {
    drafter: String,
    /// Tokens per second of the same generation without drafts, run by run.
    without: Figures,
    /// Speed with drafts / speed without, pair by pair.
    speed_up: Figures,
    tokens_per_step: f64,
    drafted: usize,
    accepted: usize,
    /// By position in a draft: tokens verified, and accepted.
    positions: Vec<(usize, usize)>,
    /// Steps that verified a tree, and those of them that accepted a token of a branch.
    #[serde(default)]
    tree_steps: usize,
    #[serde(default)]
    branch_steps: usize,
    /// Rows of the model whose results were discarded.
    wasted_rows: usize,
    draft_rows: usize,
    draft_rows_wasted: usize,
    stopped: Option<String>,
}

/// A generation with and without drafts.
pub(super) struct Pair {
    /// Tokens per second with drafts.
    pub(super) with: f64,
    without: f64,
    stats: DraftStats,
}

/// The pairs of a test so far.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    without: Vec<f64>,
    speed_ups: Vec<f64>,
    stats: DraftStats,
}

impl Pair {
    /// Generates with and without drafts, the same tokens unless their acceptance is given; `first` says whether with drafts first.
    pub(super) async fn measure(
        subject: &Subject,
        ids: Vec<u32>,
        tokens: usize,
        first: bool,
    ) -> Result<Pair, Failure> {
        let one = subject.generation(ids.clone(), tokens + 1, first).await?;
        let other = subject.generation(ids, tokens + 1, !first).await?;
        let (with, without) = if first { (one, other) } else { (other, one) };
        if with.ids != without.ids && subject.drafts_change_nothing() {
            return Err(Failure::failed(
                "drafts changed a token, which is a bug; please report it with the model and the devices",
            ));
        }
        Ok(Pair {
            with: rate(tokens, with.times.decode()),
            without: rate(tokens, without.times.decode()),
            stats: with.drafts.unwrap_or_default(),
        })
    }
}

impl Extend<Pair> for Pairs {
    fn extend<T: IntoIterator<Item = Pair>>(&mut self, pairs: T) {
        for pair in pairs {
            self.without.push(pair.without);
            self.speed_ups.push(pair.with / pair.without);
            self.stats.add(&pair.stats);
        }
    }
}

impl Pairs {
    /// The report; `None` if nothing was measured.
    pub(super) fn report(self, drafter: &str) -> Option<Drafted> {
        let Pairs { without, speed_ups, stats } = self;
        Some(Drafted {
            drafter: drafter.to_owned(),
            without: Figures::of(without)?,
            speed_up: Figures::of(speed_ups)?,
            tokens_per_step: stats.tokens_per_step(),
            drafted: stats.drafted,
            accepted: stats.accepted,
            positions: stats.positions,
            tree_steps: stats.tree_steps,
            branch_steps: stats.branch_steps,
            wasted_rows: stats.wasted,
            draft_rows: stats.draft_rows,
            draft_rows_wasted: stats.draft_rows_wasted,
            stopped: stats.stopped,
        })
    }
}

impl Drafted {
    /// The report as lines of text.
    pub(super) fn lines(&self, test: &str) -> String {
        let Drafted { drafter, without, speed_up, tokens_per_step, drafted, accepted, .. } = self;
        let Figures { median, min, max, .. } = speed_up;
        let mut text = format!(
            "{test} with drafts of {drafter}: {median:.2} times ({min:.2} to {max:.2}) the speed without, which is \
             {:.2} tok/s\n  {accepted} of {drafted} drafted tokens accepted, {tokens_per_step:.2} tokens per pass, \
             {} rows wasted",
            without.median, self.wasted_rows
        );
        if self.draft_rows > 0 {
            let Drafted { draft_rows, draft_rows_wasted, .. } = self;
            text += &format!(
                "; {draft_rows} rows of the draft model, {draft_rows_wasted} of them wasted"
            );
        }
        if self.tree_steps > 0 {
            let Drafted { tree_steps, branch_steps, .. } = self;
            text += &format!("; {branch_steps} of {tree_steps} trees left their longest path");
        }
        let share = |(verified, right): &(usize, usize)| {
            format!("{:.0} %", 100.0 * *right as f64 / (*verified).max(1) as f64)
        };
        let positions: Vec<String> = self.positions.iter().map(share).collect();
        if !positions.is_empty() {
            text += &format!("\n  accepted by position in a draft: {}", positions.join(", "));
        }
        if let Some(reason) = &self.stopped {
            text += &format!("\n  drafting ended early: {reason}");
        }
        text + "\n"
    }
}
