//! How many drafted tokens a step verifies.

use super::acceptance::{ASSUMED_ACCEPTANCE, Rate, UsualAcceptance};
use super::best::best_count;
use super::tree::Followed;
use super::trials::Trials;

/// Chooses the length of a sequence's drafts from their acceptance and from the times of steps.
///
/// With acceptance α, a draft of γ tokens yields (1 − α^(γ+1)) / (1 − α) tokens on average (Leviathan et al.,
/// 2023, equation 1). The chosen γ gives the most tokens per second of the whole batch. If no γ is at least
/// [`GAIN_MIN`](super::GAIN_MIN) better than none, no draft is verified, except for a short one now and then, which shows
/// whether the text has changed.
#[derive(Clone, Debug)]
pub(crate) struct DraftLength {
    /// Of the likeliest tokens: the accepted ones, and those that could have been.
    first: Rate,
    /// Of the alternatives of a tree, where likelier tokens were rejected.
    others: Rate,
    /// What was learned since it was last asked for.
    untold: (usize, usize),
    /// Of proposals that do not pay.
    trials: Trials,
    /// Drafts that were chosen one after another.
    in_a_row: usize,
    /// Whether a step without a draft costs no more than the gain of one, as where drafts are made while the target waits.
    pub(super) may_pause: bool,
}

/// Acceptance that is assumed of the alternatives of a tree, where likelier tokens were rejected.
const ASSUMED_OF_OTHERS: f64 = 0.3;

/// Factor of the weight of earlier drafts at each new one.
const DECAY: f64 = 0.9;

/// Tokens of a trial, which says most of all where few are accepted.
const TRIAL_TOKENS: usize = 1;

/// Drafts whose gain is less than this are left out now and then: while every step has one, nothing shows that steps without them have
/// become faster.
const GAIN_SURE: f64 = 1.25;

/// Most such drafts one after another.
const IN_A_ROW_MAX: usize = 6;

impl Default for DraftLength {
    fn default() -> DraftLength {
        DraftLength {
            first: Rate::assumed(ASSUMED_ACCEPTANCE),
            others: Rate::assumed(ASSUMED_OF_OTHERS),
            untold: (0, 0),
            trials: Trials::after(0),
            in_a_row: 0,
            may_pause: true,
        }
    }
}

impl DraftLength {
    /// The acceptance that is expected of the next token.
    pub(crate) fn acceptance(&self) -> f64 {
        self.first.expected()
    }

    /// The acceptance by which a length is chosen.
    pub(crate) fn hopeful_acceptance(&self) -> f64 {
        self.first.hopeful()
    }

    /// The acceptance that is expected of an alternative where likelier tokens are rejected.
    pub(crate) fn acceptance_of_others(&self) -> f64 {
        self.others.expected()
    }

    /// Tells what it learned since it did so last, or, if that is nothing at all, begins with what is usual.
    pub(crate) fn meet(&mut self, usual: &mut UsualAcceptance) {
        match std::mem::take(&mut self.untold) {
            (_, 0) if self.first.is_new() => self.first = usual.of_request(),
            (_, 0) => {}
            untold => usual.learn(untold),
        }
    }

    /// Learns from a verified draft.
    pub(crate) fn learn(&mut self, followed: Followed) {
        let Followed { first, other, .. } = followed;
        self.untold = (self.untold.0 + first.0, self.untold.1 + first.1);
        self.first.learn(first, DECAY);
        if other.1 > 0 {
            self.others.learn(other, DECAY);
        }
    }

    /// How many of the tokens that are accepted with probabilities `chances`, the likeliest first, to verify in a
    /// step that also has `others` rows of other sequences. `time` predicts the time of a step by its rows; `None` if
    /// nothing is known yet, and then nothing is verified.
    pub(crate) fn choose(
        &mut self,
        chances: &[f64],
        others: usize,
        time: impl Fn(usize) -> Option<f64>,
    ) -> usize {
        let Some(best) = best_count(chances.iter().copied(), others, time) else { return 0 };
        if best.pays() {
            self.trials = Trials::of_what_paid();
            self.in_a_row += 1;
            let pauses = self.in_a_row > IN_A_ROW_MAX && best.gain < GAIN_SURE && self.may_pause;
            if pauses {
                self.in_a_row = 0;
            }
            return if pauses { 0 } else { best.length };
        }
        self.in_a_row = 0;
        if self.trials.is_due() { chances.len().min(TRIAL_TOKENS) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::best::chain;
    use super::*;

    fn after(drafted: usize, accepted: usize) -> DraftLength {
        let mut length = DraftLength { trials: Trials::after(1), ..DraftLength::default() };
        (0..100).for_each(|_| length.learn(Followed::chain(drafted, accepted)));
        length
    }

    /// The choice for a chain of `proposed` tokens.
    fn choose(
        length: &mut DraftLength,
        proposed: usize,
        others: usize,
        time: impl Fn(usize) -> Option<f64>,
    ) -> usize {
        let chances: Vec<f64> = chain(length.acceptance()).take(proposed).collect();
        length.choose(&chances, others, time)
    }

    /// Memory-bound up to 4 rows, then proportional to the rows.
    fn bound(rows: usize) -> Option<f64> {
        Some((rows as f64 / 4.0).max(1.0))
    }

    /// Each row costs a quarter of the first one.
    fn rising(rows: usize) -> Option<f64> {
        Some(1.0 + 0.25 * (rows as f64 - 1.0))
    }

    /// Name, control, proposed tokens and rows of others, times, and the length.
    type Case = (&'static str, DraftLength, (usize, usize), fn(usize) -> Option<f64>, usize);

    #[test]
    fn the_length_follows_acceptance_and_time() {
        let rows: [Case; 7] = [
            ("half accepted: the rows that cost nothing", after(2, 1), (15, 0), bound, 3),
            ("a short proposal", after(4, 4), (2, 0), bound, 2),
            ("nothing proposed", after(4, 4), (0, 0), bound, 0),
            ("a full batch pays for every row", after(2, 1), (15, 16), bound, 0),
            ("rows cost little, all are accepted", after(4, 4), (5, 0), rising, 5),
            ("rows cost little, half are accepted", after(2, 1), (5, 0), rising, 1),
            ("rows cost little, none is accepted", after(4, 0), (5, 0), rising, 0),
        ];
        for (name, mut length, (proposed, others), time, expected) in rows {
            assert_eq!(choose(&mut length, proposed, others, time), expected, "{name}");
        }
        assert_eq!(choose(&mut after(4, 4), 4, 0, |_| None), 0, "no time is known");
    }

    #[test]
    fn drafts_that_do_not_pay_are_tried_ever_more_rarely_until_they_pay() {
        let mut length = after(4, 0);
        let mut trials = Vec::new();
        for proposal in 0..400 {
            if choose(&mut length, 8, 0, rising) > 0 {
                trials.push(proposal);
                length.learn(Followed::chain(2, 0));
            }
        }
        assert_eq!(trials, [1, 10, 27, 60, 125, 254, 383]);
        (0..20).for_each(|_| length.learn(Followed::chain(2, 2)));
        assert_eq!(choose(&mut length, 3, 0, rising), 3);
    }

    #[test]
    fn a_draft_that_gains_little_is_left_out_now_and_then() {
        let drafts = |time: fn(usize) -> Option<f64>, may_pause| {
            let mut length = DraftLength { may_pause, ..after(4, 4) };
            (0..28).filter(|_| choose(&mut length, 1, 0, time) > 0).count()
        };
        let dear: fn(usize) -> Option<f64> = |rows| Some(1.0 + 0.7 * (rows as f64 - 1.0));
        assert_eq!(drafts(dear, true), 24, "a gain of 15 %");
        assert_eq!(drafts(dear, false), 28, "where a pause costs more");
        assert_eq!(drafts(rising, true), 28, "a gain of 60 %");
    }

    #[test]
    fn acceptance_begins_with_the_assumed_one_and_forgets() {
        let mut length = DraftLength::default();
        assert!((length.acceptance() - 0.6).abs() < 1e-12);
        assert_eq!(length.hopeful_acceptance(), length.acceptance(), "nothing was tried");
        (0..50).for_each(|_| length.learn(Followed::chain(4, 4)));
        assert!(length.acceptance() > 0.95);
        (0..50).for_each(|_| length.learn(Followed::chain(4, 0)));
        assert!(length.acceptance() < 0.2);
    }

    #[test]
    fn a_length_is_chosen_by_a_hopeful_acceptance() {
        for accepted in [4, 2, 0] {
            let length = after(4, accepted);
            let gap = length.hopeful_acceptance() - length.acceptance();
            assert!(gap > 0.0 && gap < 0.07, "{accepted} of 4: {gap}");
        }
    }

    #[test]
    fn a_request_begins_with_the_acceptance_of_those_before() {
        let mut usual = UsualAcceptance::default();
        let mut first = DraftLength::default();
        first.meet(&mut usual);
        assert!((first.acceptance() - ASSUMED_ACCEPTANCE).abs() < 1e-12, "nothing is known");
        for accepted in [0, 0, 1, 0, 0].repeat(40) {
            first.learn(Followed::chain(1, accepted));
            first.meet(&mut usual);
        }
        let mut second = DraftLength::default();
        second.meet(&mut usual);
        assert!((second.acceptance() - 0.2).abs() < 0.1, "{}", second.acceptance());
        // Its own text counts from its first draft on, and is not forgotten when it meets the others.
        (0..30).for_each(|_| second.learn(Followed::chain(4, 4)));
        let own = second.acceptance();
        second.meet(&mut usual);
        second.meet(&mut usual);
        assert!(own > 0.9 && second.acceptance() == own);
    }

    #[test]
    fn alternatives_are_expected_as_often_as_they_were_accepted() {
        let mut length = DraftLength::default();
        assert!((length.acceptance_of_others() - 0.3).abs() < 1e-12);
        (0..50).for_each(|_| length.learn(Followed::chain(4, 2)));
        assert!((length.acceptance_of_others() - 0.3).abs() < 1e-12, "a chain shows nothing");
        let followed = Followed { accepted: 1, first: (0, 1), other: (1, 1) };
        (0..50).for_each(|_| length.learn(followed));
        assert!(length.acceptance_of_others() > 0.8 && length.acceptance() < 0.2);
    }
}
