//! Why drafts have the length that they have.

use std::fmt;
use std::time::Duration;

use lapwing_actors::draft::{ASSUMED_ACCEPTANCE, BestLength, GAIN_MIN};

/// Predicted lengths of drafts, before any acceptance or time is measured ([`Engine::explain_drafts`](crate::Engine::explain_drafts)).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DraftExplanation {
    /// Name of the drafter.
    pub drafter: String,
    /// Whether it is the default, because it comes with the model's file.
    pub is_default: bool,
    /// Predicted time of drafting one token; 0 for a drafter that answers at once.
    pub draft: Duration,
    /// Predicted times of passes of 1, 2, … rows through the model: one row more than the longest draft. Empty if the
    /// speed of a device is unknown.
    pub verify: Vec<Duration>,
    /// The best length by the share of drafted tokens that are accepted, from low to high.
    pub lengths: Vec<(f64, BestLength)>,
}

impl DraftExplanation {
    /// The length of the first draft of a request: that of the acceptance which is assumed at first.
    pub fn first(&self) -> Option<&BestLength> {
        let assumed = |(acceptance, _): &&(f64, BestLength)| *acceptance == ASSUMED_ACCEPTANCE;
        self.lengths.iter().find(assumed).map(|(_, length)| length)
    }
}

impl fmt::Display for DraftExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_default {
            write!(
                f,
                "'{}' is the default, because the model's file has a layer that predicts a second token: a request drafts where that \
                 is expected to repay that its prompt goes through the layer (--draft none leaves it out); ",
                self.drafter
            )?;
        }
        let (Some(first), Some(one)) = (self.first(), self.verify.first()) else {
            return f.write_str(
                "the length of drafts follows measured times; none can be predicted, because the speed of a device is \
                 unknown",
            );
        };
        let BestLength { length, gain } = first;
        let assumed = 100.0 * ASSUMED_ACCEPTANCE;
        match first.pays() {
            true => write!(
                f,
                "first drafts of '{}' have {length} tokens: with {assumed:.0} % accepted, which is assumed at first, \
                 that is predicted to be {gain:.2} times as fast as no draft",
                self.drafter
            )?,
            false => write!(
                f,
                "'{}' drafts nothing at first, except for trials: with {assumed:.0} % accepted, which is assumed at \
                 first, the best length, {length}, is predicted to be {gain:.2} times as fast as no draft, and it \
                 must be {GAIN_MIN}",
                self.drafter
            )?,
        }
        let share = |time: &Duration| time.as_secs_f64() / one.as_secs_f64();
        let verify = self.verify.get(*length).map_or(1.0, share);
        write!(
            f,
            "; a pass of {} rows takes {verify:.2} times as long as one of one row",
            length + 1
        )?;
        if !self.draft.is_zero() {
            write!(f, ", and drafting a token {:.2} times", share(&self.draft))?;
        }
        Ok(())
    }
}
