//! Predicts the length of drafts.

use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::draft::{ASSUMED_ACCEPTANCE, DRAFT_MAX, DraftCost, best_length};
use lapwing_plan::Phase;
use lapwing_plan::planner::PlannerParts;
use lapwing_plan::predict::alone;
use lapwing_plan::strategy::ChunkShape;

use super::Engine;
use crate::draft::DraftExplanation;
use crate::error::Error;

/// Shares of accepted tokens for which lengths are shown.
const ACCEPTANCES: [f64; 5] = [0.3, 0.5, ASSUMED_ACCEPTANCE, 0.8, 0.95];

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
        let (drafter, is_default) = (inner.draft.name().to_owned(), inner.draft.is_of_file());
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
            return Ok(Some(DraftExplanation { drafter, is_default, draft, verify, lengths }));
        };
        let (overlaps, waits) = (inner.draft.overlaps(), !inner.draft.pre_verifies());
        let best = |acceptance: f64| {
            let per_token = draft.as_secs_f64();
            let cost = DraftCost { per_token, overlaps, waits, acceptance };
            let step = |rows: usize| {
                let verify = verify.get(rows - 1)?.as_secs_f64();
                Some(cost.step(rows - 1, verify))
            };
            Some((acceptance, best_length(acceptance, DRAFT_MAX, 0, step)?))
        };
        let lengths = ACCEPTANCES.into_iter().filter_map(best).collect();
        Ok(Some(DraftExplanation { drafter, is_default, draft, verify, lengths }))
    }
}
