//! Why drafts have the length that they have.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::draft::{
    ASSUMED_ACCEPTANCE, BestLength, DRAFT_MAX, DraftCost, GAIN_MIN, best_length,
};
use lapwing_plan::Phase;
use lapwing_plan::planner::PlannerParts;
use lapwing_plan::predict::alone;
use lapwing_plan::strategy::ChunkShape;

use super::Engine;
use crate::error::Error;

/// Predicted lengths of drafts, before any acceptance or time is measured ([`Engine::explain_drafts`]).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DraftExplanation {
    /// Name of the drafter.
    pub drafter: String,
    /// Predicted time of drafting one token; 0 for a drafter that answers at once.
    pub draft: Duration,
    /// Predicted times of passes of 1, 2, … rows through the model: one row more than the longest draft. Empty if the
    /// speed of a device is unknown.
    pub verify: Vec<Duration>,
    /// The best length by the share of drafted tokens that are accepted, from low to high.
    pub lengths: Vec<(f64, BestLength)>,
}

/// Shares of accepted tokens for which lengths are shown.
const ACCEPTANCES: [f64; 5] = [0.3, 0.5, ASSUMED_ACCEPTANCE, 0.8, 0.95];

impl DraftExplanation {
    /// The length of the first draft of a request: that of the acceptance which is assumed at first.
    pub fn first(&self) -> Option<&BestLength> {
        let assumed = |(acceptance, _): &&(f64, BestLength)| *acceptance == ASSUMED_ACCEPTANCE;
        self.lengths.iter().find(assumed).map(|(_, length)| length)
    }
}

impl fmt::Display for DraftExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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

impl Engine {
    /// Why the drafts of a single sequence of `context` tokens have their length. `None` without a drafter. While the
    /// engine runs, measured times and each request's own acceptance take the place of these.
    ///
    /// # Errors
    /// When the strategy finds no route.
    pub fn explain_drafts(&self, context: usize) -> Result<Option<DraftExplanation>, Error> {
        let (inner, explainer) = (&*self.inner, &self.inner.explainer);
        if inner.draft.drafts().is_none() {
            return Ok(None);
        }
        let drafter = inner.draft.name().to_owned();
        let time = |parts: &PlannerParts, rows: usize| -> Result<Option<Duration>, Error> {
            let (phase, prompt) = (Phase::Decode, 0);
            let shape = ChunkShape { phase, rows, selected: rows, context, prompt };
            let route = parts.strategy.route(&parts.input(), &shape)?;
            let known = explainer.knows_times(&route);
            Ok(known.then(|| alone(&parts.input(), &shape, &Arc::clone(&route)).makespan))
        };
        let draft = match &explainer.draft {
            Some(parts) => time(parts, 1)?,
            None => Some(Duration::ZERO),
        };
        let verify: Option<Vec<Duration>> = (1..=DRAFT_MAX + 1)
            .map(|rows| time(&explainer.parts, rows))
            .collect::<Result<_, _>>()?;
        let (Some(draft), Some(verify)) = (draft, verify) else {
            let (draft, verify, lengths) = (Duration::ZERO, Vec::new(), Vec::new());
            return Ok(Some(DraftExplanation { drafter, draft, verify, lengths }));
        };
        let overlaps = inner.draft.overlaps();
        let best = |acceptance: f64| {
            let cost = DraftCost { per_token: draft.as_secs_f64(), overlaps, acceptance };
            let step = |rows: usize| {
                let verify = verify.get(rows - 1)?.as_secs_f64();
                Some(cost.step(rows - 1, verify))
            };
            Some((acceptance, best_length(acceptance, DRAFT_MAX, 0, step)?))
        };
        let lengths = ACCEPTANCES.into_iter().filter_map(best).collect();
        Ok(Some(DraftExplanation { drafter, draft, verify, lengths }))
    }
}
