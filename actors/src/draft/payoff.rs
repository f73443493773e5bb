//! Whether the drafts of a request repay that its prompt goes through the draft model, too.
//!
//! A layer that predicts a further token reads all of a prompt before its first draft, and the model passes the hidden states of all
//! rows on to it. Whether drafts repay that depends on their acceptance, which earlier requests show, and on the length of the answer.

use std::fmt;

use super::acceptance::{ASSUMED_ACCEPTANCE, UsualAcceptance};
use super::best::best_length;
use super::trials::Trials;
use super::{DRAFT_MAX, DraftCost};

/// Tokens that are assumed of an answer before any has ended.
const ASSUMED_ANSWER: f64 = 256.0;

/// Weight of a new answer in the mean of all.
const WEIGHT: f64 = 0.1;

/// Which requests draft, of those that draft only if it pays.
#[derive(Clone, Debug)]
pub(crate) struct Payoff {
    /// Mean tokens of an answer.
    answer: f64,
    /// Of requests whose drafts are expected not to pay.
    trials: Trials,
}

/// What is predicted of a request.
pub(crate) struct Prospect<F> {
    /// Most tokens of its answer.
    pub(crate) tokens_max: usize,
    /// Time in ns of its prompt in the draft model, with what the model does for it.
    pub(crate) prompt: f64,
    /// Sequences that decode beside it.
    pub(crate) others: usize,
    /// The cost of its drafts, whatever their acceptance.
    pub(crate) cost: DraftCost,
    /// Predicts the time of a step in ns by its rows.
    pub(crate) verify: F,
    /// Whether another request shows at this moment how often drafts are accepted.
    pub(crate) is_shown: bool,
}

/// Why a request does not draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoDrafts {
    /// Steps with drafts are too slow on these devices.
    TooSlow,
    /// The answer is too short for its prompt.
    TooShort,
    /// An earlier request is still showing what drafts gain.
    NotKnown,
    /// Drafts of earlier requests were rejected too often.
    Rejected,
}

impl fmt::Display for NoDrafts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoDrafts::TooSlow => "verifying drafts takes too long on these devices",
            NoDrafts::TooShort => {
                "the answer is too short for drafts to repay that its prompt goes through the layer"
            }
            NoDrafts::NotKnown => "what drafts gain is not known yet; another request shows it",
            NoDrafts::Rejected => {
                "drafts of earlier requests were rejected too often to repay that the prompt goes through the layer"
            }
        })
    }
}

impl Default for Payoff {
    fn default() -> Payoff {
        Payoff { answer: ASSUMED_ANSWER, trials: Trials::of_what_paid() }
    }
}

impl Payoff {
    /// Learns the tokens of an answer. One that `was_cut` at its limit might have been longer.
    pub(crate) fn learn(&mut self, tokens: usize, was_cut: bool) {
        let tokens = tokens as f64;
        if !was_cut || tokens > self.answer {
            self.answer += WEIGHT * (tokens - self.answer);
        }
    }

    /// Whether a request drafts.
    ///
    /// # Errors
    /// Why it does not.
    pub(crate) fn decide<F>(
        &mut self,
        usual: &UsualAcceptance,
        of: &Prospect<F>,
    ) -> Result<(), NoDrafts>
    where
        F: Fn(usize) -> Option<f64>,
    {
        let expected = usual.hopeful();
        let best = expected.max(ASSUMED_ACCEPTANCE);
        match self.saved(best, of) {
            saved if saved <= 0.0 => return Err(NoDrafts::TooSlow),
            saved if saved <= of.prompt => return Err(NoDrafts::TooShort),
            _ => {}
        }
        if self.saved(expected, of) <= of.prompt {
            return if self.trials.is_due() { Ok(()) } else { Err(NoDrafts::Rejected) };
        }
        self.trials = Trials::of_what_paid();
        if of.is_shown && !usual.is_known() { Err(NoDrafts::NotKnown) } else { Ok(()) }
    }

    /// Time in ns that drafts save while a request decodes, if so many of their tokens are accepted; 0 if they do not pay.
    fn saved<F>(&self, acceptance: f64, of: &Prospect<F>) -> f64
    where
        F: Fn(usize) -> Option<f64>,
    {
        let Prospect { others, cost, verify, .. } = of;
        let cost = DraftCost { acceptance, ..*cost };
        let time = |rows: usize| Some(cost.step(rows - 1 - others, verify(rows)?));
        let best = best_length(acceptance, DRAFT_MAX, *others, time).filter(|best| best.pays());
        let (Some(best), Some(step)) = (best, verify(others + 1)) else { return 0.0 };
        let tokens = (of.tokens_max as f64).min(self.answer.max(1.0));
        tokens * step * (1.0 - 1.0 / best.gain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step of 100 ns, each further row of which takes 5.
    fn steps(rows: usize) -> Option<f64> {
        Some(95.0 + 5.0 * rows as f64)
    }

    type Predicted = Prospect<fn(usize) -> Option<f64>>;

    fn prospect(tokens_max: usize, prompt: f64) -> Predicted {
        let cost = DraftCost { per_token: 10.0, overlaps: false, waits: true, acceptance: 0.0 };
        Prospect { tokens_max, prompt, others: 0, cost, verify: steps, is_shown: false }
    }

    /// The acceptance after `tried` tokens, of which one of `of` was accepted; none if that is 0.
    fn after(tried: usize, of: usize) -> UsualAcceptance {
        let mut usual = UsualAcceptance::default();
        (0..tried).for_each(|at| usual.learn((usize::from(of > 0 && at % of == 0), 1)));
        usual
    }

    #[test]
    fn an_answer_drafts_if_it_is_long_enough_for_its_prompt() {
        let mut payoff = Payoff::default();
        let unknown = UsualAcceptance::default();
        let rows = [
            ("a short prompt", 100, 100.0, Ok(())),
            ("a prompt as long as the answer saves nothing of", 100, 1e4, Err(NoDrafts::TooShort)),
            ("a single token", 1, 100.0, Err(NoDrafts::TooShort)),
            ("no more than usual answers have", 1 << 20, 2e4, Err(NoDrafts::TooShort)),
        ];
        for (name, tokens, prompt, expected) in rows {
            assert_eq!(payoff.decide(&unknown, &prospect(tokens, prompt)), expected, "{name}");
        }
        // Long answers of earlier requests.
        (0..100).for_each(|_| payoff.learn(4000, false));
        assert_eq!(payoff.decide(&unknown, &prospect(1 << 20, 2e4)), Ok(()));
        let slow = Predicted { verify: |rows| Some(100.0 * rows as f64), ..prospect(100, 0.0) };
        assert_eq!(payoff.decide(&unknown, &slow), Err(NoDrafts::TooSlow));
    }

    #[test]
    fn an_answer_that_was_cut_is_at_least_as_long() {
        let mut payoff = Payoff::default();
        (0..100).for_each(|_| payoff.learn(5, true));
        assert_eq!(payoff.answer, ASSUMED_ANSWER);
        (0..100).for_each(|_| payoff.learn(5, false));
        assert!(payoff.answer < 6.0, "{}", payoff.answer);
    }

    #[test]
    fn one_request_at_a_time_shows_what_drafts_gain() {
        let mut payoff = Payoff::default();
        let beside = Prospect { is_shown: true, ..prospect(100, 100.0) };
        assert_eq!(payoff.decide(&after(3, 1), &beside), Err(NoDrafts::NotKnown));
        assert_eq!(payoff.decide(&after(40, 1), &beside), Ok(()));
    }

    #[test]
    fn drafts_that_are_rejected_are_tried_ever_more_rarely_until_they_pay() {
        let mut payoff = Payoff::default();
        let rejected = after(40, 0);
        let drafts = |payoff: &mut Payoff| payoff.decide(&rejected, &prospect(100, 100.0)).is_ok();
        let trials: Vec<usize> = (0..200).filter(|_| drafts(&mut payoff)).collect();
        assert_eq!(trials, [8, 17, 34, 67, 132]);
        assert_eq!(payoff.decide(&rejected, &prospect(1, 100.0)), Err(NoDrafts::TooShort));
        assert_eq!(payoff.decide(&after(40, 1), &prospect(100, 100.0)), Ok(()));
        let next = (0..20).position(|_| drafts(&mut payoff));
        assert_eq!(next, Some(8), "it is tried as often as at first");
    }
}
