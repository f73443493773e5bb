//! What drafts did for a request.

use super::tree::Followed;

/// The result of a step's verification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct VerifiedDraft {
    /// Drafted tokens that were verified.
    pub(crate) drafted: usize,
    /// Those of a longest path.
    pub(crate) depth: usize,
    pub(crate) followed: Followed,
    /// Whether a token of a branch was accepted.
    pub(crate) branch: bool,
}

impl VerifiedDraft {
    /// Of a draft of `drafted` tokens without alternatives, the first `accepted` of which were accepted.
    pub(crate) fn chain(drafted: usize, accepted: usize) -> VerifiedDraft {
        let followed = Followed::chain(drafted, accepted);
        VerifiedDraft { drafted, depth: drafted, followed, branch: false }
    }
}

/// Counts of the drafts of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DraftStats {
    /// Decode steps: passes through the model after the prompt.
    pub steps: usize,
    /// Steps that verified a draft.
    pub verified_steps: usize,
    /// Drafted tokens that were verified.
    pub drafted: usize,
    /// Drafted tokens that were accepted.
    pub accepted: usize,
    /// Drafts that were proposed and not verified, because they would not have paid.
    pub declined: usize,
    /// Steps that verified a draft with alternatives, a tree.
    pub tree_steps: usize,
    /// Steps that accepted a token of a branch: one that a longest path of the tree does not have.
    pub branch_steps: usize,
    /// By position in the draft: how many drafts had tokens there, and of how many one of them was accepted.
    pub positions: Vec<(usize, usize)>,
    /// Of the likeliest tokens after accepted ones, or at the begin of a draft: how many were accepted, and how many
    /// were there.
    pub next: (usize, usize),
    /// Rows of verification passes whose results were discarded: of rejected tokens, and of passes that were sent on the
    /// assumption that an earlier draft is accepted.
    pub wasted: usize,
    /// Rows that the draft model computed, without those of the text before its first draft; 0 without a draft model.
    pub draft_rows: usize,
    /// Those of them whose tokens the model did not choose, or that were computed for a text that was rejected.
    pub draft_rows_wasted: usize,
    /// Why drafting ended before the request did, if so: for example because the draft model's device failed.
    pub stopped: Option<String>,
}

impl DraftStats {
    /// Counts a step.
    pub(crate) fn count(&mut self, step: &VerifiedDraft) {
        let VerifiedDraft { drafted, depth, followed, branch } = *step;
        let accepted = followed.accepted;
        self.steps += 1;
        self.verified_steps += usize::from(drafted > 0);
        self.tree_steps += usize::from(drafted > depth);
        self.branch_steps += usize::from(branch);
        self.drafted += drafted;
        self.accepted += accepted;
        self.next = (self.next.0 + followed.first.0, self.next.1 + followed.first.1);
        self.positions.resize(self.positions.len().max(depth), (0, 0));
        for (position, (verified, right)) in self.positions.iter_mut().take(depth).enumerate() {
            *verified += 1;
            *right += usize::from(position < accepted);
        }
    }

    /// Adds the counts of another request.
    pub fn add(&mut self, other: &DraftStats) {
        self.steps += other.steps;
        self.verified_steps += other.verified_steps;
        self.drafted += other.drafted;
        self.accepted += other.accepted;
        self.declined += other.declined;
        self.next = (self.next.0 + other.next.0, self.next.1 + other.next.1);
        self.tree_steps += other.tree_steps;
        self.branch_steps += other.branch_steps;
        self.wasted += other.wasted;
        self.draft_rows += other.draft_rows;
        self.draft_rows_wasted += other.draft_rows_wasted;
        self.positions.resize(self.positions.len().max(other.positions.len()), (0, 0));
        for (sum, (verified, right)) in self.positions.iter_mut().zip(&other.positions) {
            *sum = (sum.0 + verified, sum.1 + right);
        }
        if self.stopped.is_none() {
            self.stopped.clone_from(&other.stopped);
        }
    }

    /// Tokens per decode step; 1 without accepted drafts, 0 without a step.
    pub fn tokens_per_step(&self) -> f64 {
        match self.steps {
            0 => 0.0,
            steps => 1.0 + self.accepted as f64 / steps as f64,
        }
    }

    /// Share of the verified tokens that were accepted; `None` if none was verified.
    pub fn acceptance(&self) -> Option<f64> {
        (self.drafted > 0).then(|| self.accepted as f64 / self.drafted as f64)
    }

    /// The probability that the likeliest next token is accepted if those before it are: α of Leviathan et al. (2023).
    /// `None` if none was verified.
    pub fn next_acceptance(&self) -> Option<f64> {
        let (accepted, tried) = self.next;
        (tried > 0).then(|| accepted as f64 / tried as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_counted_by_position() {
        let mut stats = DraftStats::default();
        assert_eq!((stats.acceptance(), stats.tokens_per_step()), (None, 0.0));
        for (drafted, accepted) in [(3, 2), (1, 0), (0, 0)] {
            stats.count(&VerifiedDraft::chain(drafted, accepted));
        }
        assert_eq!(stats.positions, [(2, 1), (1, 1), (1, 0)]);
        // Two accepted tokens, the rejected one after them, and the rejected one of the second draft.
        assert_eq!(stats.next_acceptance(), Some(0.5));
        assert_eq!((stats.steps, stats.verified_steps), (3, 2));
        assert_eq!((stats.drafted, stats.accepted), (4, 2));
        assert_eq!(stats.acceptance(), Some(0.5));
        assert!((stats.tokens_per_step() - 5.0 / 3.0).abs() < 1e-12);
        let mut both = DraftStats { wasted: 1, ..DraftStats::default() };
        both.count(&VerifiedDraft::chain(1, 1));
        both.add(&stats);
        assert_eq!(both.positions, [(3, 2), (1, 1), (1, 0)]);
        assert_eq!((both.steps, both.drafted, both.accepted, both.wasted), (4, 5, 3, 1));
    }

    #[test]
    fn a_tree_has_fewer_positions_than_tokens() {
        let mut stats = DraftStats::default();
        let followed = Followed { accepted: 1, first: (0, 1), other: (1, 1) };
        stats.count(&VerifiedDraft { drafted: 3, depth: 2, followed, branch: true });
        assert_eq!((stats.drafted, stats.tree_steps, stats.branch_steps), (3, 1, 1));
        assert_eq!(stats.positions, [(1, 1), (1, 0)]);
    }
}
