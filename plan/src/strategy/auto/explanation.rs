//! The predictions behind a decision of `auto`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Mixed;
use crate::error::PlanError;
use crate::predict::prediction::Prediction;
use crate::route::Route;

/// The prediction of a candidate.
#[derive(Clone, Debug)]
pub struct Rated {
    /// Name of the strategy.
    pub strategy: String,
    /// Predicted time and route of the first chunk, or the reason why it has no route.
    pub outcome: Result<(Prediction, Arc<Route>), PlanError>,
}

impl Rated {
    /// Predicted time; `None` without a route.
    pub fn makespan(&self) -> Option<Duration> {
        self.outcome.as_ref().ok().map(|(prediction, _)| prediction.makespan)
    }
}

/// The predictions of all candidates, and the winner.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// Candidates, in their given order.
    pub rated: Vec<Rated>,
    /// Index of the winner in `rated`.
    pub winner: usize,
    /// The prompt in chunks that take different routes, if that is faster than the winner.
    pub mixed: Option<Mixed>,
}

impl Explanation {
    /// The candidate with the least predicted time.
    pub fn winner(&self) -> &Rated {
        &self.rated[self.winner]
    }

    /// The second fastest candidate.
    pub fn runner_up(&self) -> Option<&Rated> {
        let others = self.rated.iter().enumerate().filter(|(at, _)| *at != self.winner);
        others
            .map(|(_, rated)| rated)
            .filter(|r| r.makespan().is_some())
            .min_by_key(|r| r.makespan())
    }
}

impl fmt::Display for Explanation {
    /// The predictions of the winner and the runner-up, in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let winner = self.winner();
        let Ok((prediction, _)) = &winner.outcome else { return Ok(()) };
        write!(f, "'{}' is predicted to take {:.1?}", winner.strategy, prediction.makespan)?;
        if let Some(other) = self.runner_up()
            && let Some(time) = other.makespan()
        {
            write!(f, " (next best: '{}', {time:.1?})", other.strategy)?;
        }
        let busiest = prediction.busiest().as_secs_f64();
        let share = 100.0 * busiest / prediction.makespan.as_secs_f64().max(1e-12);
        write!(f, "; its busiest device is busy for {share:.0} % of that time")?;
        match self.mixed {
            Some(Mixed { rows, time }) => write!(
                f,
                "; in chunks of {rows} rows that take different routes, the prompt takes {time:.1?}, and 'auto' computes it so"
            ),
            None => Ok(()),
        }
    }
}

/// Finds the winner of the candidates.
pub(super) fn explanation(rated: Vec<Rated>) -> Result<Explanation, PlanError> {
    let times = rated.iter().enumerate().filter_map(|(at, r)| Some((r.makespan()?, at)));
    match times.min() {
        Some((_, winner)) => Ok(Explanation { rated, winner, mixed: None }),
        None => {
            let mut errors: Vec<PlanError> =
                rated.into_iter().filter_map(|rated| rated.outcome.err()).collect();
            // That something does not fit says more than that a strategy needs another device.
            let by = |error: &PlanError| match error {
                PlanError::NotKept { .. } => 0,
                PlanError::Memory { .. } => 1,
                _ => 2,
            };
            errors.sort_by_key(by);
            let none = PlanError::Coverage { found: 0..0, expected: 0 };
            Err(errors.into_iter().next().unwrap_or(none))
        }
    }
}
