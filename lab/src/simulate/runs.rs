//! Caches runs, and takes quantities from them.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use lapwing_actors::simulate::OwnDevice;
use lapwing_plan::strategy::Strategies;

use super::error::SimulateError;
use super::products;
use super::published::{Over, Product, Quantity, Row, Run};
use super::scenario::Choice;
use super::scenario::Scenario;
use super::simulated::Simulated;

/// A cache of runs by scenario: equal scenarios run only once.
#[derive(Default)]
pub struct Runs {
    made: HashMap<String, (Simulated, Kept)>,
}

/// What keeps a caller's own strategies and devices alive, because they are identified by their addresses.
type Kept = (Choice, Strategies, Vec<OwnDevice>);

impl fmt::Debug for Runs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.made.keys()).finish()
    }
}

impl Scenario {
    /// A quantity of a single matmul.
    fn product(&self, product: &Product, quantity: Quantity) -> Result<f64, SimulateError> {
        products::quantity(self.soc()?, product, quantity)
    }

    /// Time to prepare the graphs of one layer for that many rows, in ms.
    fn preparation_ms(&self, rows: usize) -> Result<f64, SimulateError> {
        let graph = Arc::new(self.load_model()?.0.graph);
        Ok(products::preparation_ms(self.soc()?, &graph, rows))
    }
}

impl Runs {
    /// The result of a scenario.
    ///
    /// # Errors
    /// As [`Scenario::run`].
    pub fn run(&mut self, scenario: &Scenario) -> Result<Simulated, SimulateError> {
        let key = scenario.key();
        if let Some((known, ..)) = self.made.get(&key) {
            return Ok(known.clone());
        }
        let run = scenario.run()?;
        let Scenario { choice, strategies, own, .. } = scenario;
        self.made.insert(key, (run.clone(), (choice.clone(), strategies.clone(), own.clone())));
        Ok(run)
    }

    /// Number of runs made.
    pub fn count(&self) -> usize {
        self.made.len()
    }

    /// The simulated number of a row.
    ///
    /// # Errors
    /// As [`Scenario::run`].
    pub fn value(&mut self, base: &Scenario, row: &Row) -> Result<f64, SimulateError> {
        if let Some(product) = &row.product {
            let value = base.product(product, row.quantity)?;
            return match &row.by_product {
                None => Ok(value),
                Some(by) => Ok(value / base.product(by, row.quantity)?),
            };
        }
        if let Some(rows) = row.graphs {
            return base.preparation_ms(rows);
        }
        let Some(run) = &row.run else {
            return Err(SimulateError::Published {
                reason: format!("row '{}' has no run", row.id),
            });
        };
        if row.prompts.is_empty() {
            return self.ratio(base, run, row.by.as_ref(), row.quantity);
        }
        let at = |prompt: usize| {
            let mut by = row.by.clone();
            by.iter_mut().for_each(|by| by.prompt = prompt);
            let run = Run { prompt, ..run.clone() };
            self.ratio(base, &run, by.as_ref(), row.quantity)
        };
        let values: Vec<f64> = row.prompts.iter().copied().map(at).collect::<Result<_, _>>()?;
        Ok(match row.over {
            Some(Over::Min) => values.iter().copied().fold(f64::INFINITY, f64::min),
            Some(Over::Max) => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Some(Over::Mean) | None => values.iter().sum::<f64>() / values.len() as f64,
        })
    }

    /// A quantity of one run, divided by that of another.
    pub(super) fn ratio(
        &mut self,
        base: &Scenario,
        run: &Run,
        by: Option<&Run>,
        quantity: Quantity,
    ) -> Result<f64, SimulateError> {
        let value = self.quantity(base, run, quantity)?;
        match by {
            None => Ok(value),
            Some(by) => Ok(value / self.quantity(base, by, quantity)?),
        }
    }

    fn quantity(
        &mut self,
        base: &Scenario,
        run: &Run,
        quantity: Quantity,
    ) -> Result<f64, SimulateError> {
        let simulated = self.run(&base.with_run(run)?)?;
        quantity.of(&simulated).ok_or_else(|| SimulateError::Run {
            reason: format!("{} tokens with {}: it has no {quantity:?}", run.prompt, run.strategy),
        })
    }
}

impl Quantity {
    /// The quantity's value in a run, if there is one.
    pub fn of(self, run: &Simulated) -> Option<f64> {
        match self {
            Quantity::PrefillTokensPerSecond => Some(run.prefill_tokens_per_second),
            Quantity::PrefillMs => Some(run.prefill_ms),
            Quantity::PrefillButPreparationMs => Some(run.prefill_ms - run.preparation_ms),
            Quantity::PreparationMs => Some(run.preparation_ms),
            Quantity::DecodeTokensPerSecond => run.decode_tokens_per_second,
            Quantity::PrefillW => run.prefill_w,
            Quantity::DecodeW => run.decode_w,
            Quantity::PrefillJ => run.prefill_j,
            Quantity::MakespanMs => Some(run.makespan_ms),
            Quantity::DecodeGbPerS => run.decode_gb_per_s,
            Quantity::FramesPerSecond => run.frames_per_second,
            Quantity::AloneUs
            | Quantity::ProductGbPerS
            | Quantity::LaunchUs
            | Quantity::EntryUs => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lapwing_plan::strategy::{ChunkShape, PlanInput, Strategy, StrategyOptions, by_name};
    use lapwing_plan::{PlanError, Route};

    use super::*;

    /// Several different strategies of the same name.
    struct As(Arc<dyn Strategy>);

    impl Strategy for As {
        fn name(&self) -> &str {
            "mine"
        }

        fn route(
            &self,
            input: &PlanInput<'_>,
            shape: &ChunkShape,
        ) -> Result<Arc<Route>, PlanError> {
            self.0.route(input, shape)
        }
    }

    #[test]
    fn a_new_strategy_never_gets_the_run_of_a_dropped_one() {
        let base = Scenario::new("sd8gen3").expect("a preset");
        let mut runs = Runs::default();
        let mut run = |name: &str| {
            let own = by_name(name, &StrategyOptions::default()).expect("is known");
            let scenario = base.clone().own_strategy(As(own));
            let run = runs.run(&scenario).expect("a run");
            drop(scenario);
            run
        };
        let (gpu, pipe) = (run("gpu-only"), run("pipe"));
        assert_ne!(gpu, pipe);
        for _ in 0..3 {
            assert_eq!((run("gpu-only"), run("pipe")), (gpu.clone(), pipe.clone()));
        }
    }
}
