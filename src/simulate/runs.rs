//! Runs that are made once, and what is taken from them.

use std::collections::HashMap;

use super::published::{Over, Quantity, Row, Run};
use super::{Scenario, SimulateError, Simulated};

/// Runs by scenario: equal ones are made once.
#[derive(Debug, Default)]
pub struct Runs {
    made: HashMap<String, Simulated>,
}

impl Runs {
    /// What comes of a scenario.
    ///
    /// # Errors
    /// As [`Scenario::run`].
    pub fn run(&mut self, scenario: &Scenario) -> Result<Simulated, SimulateError> {
        let key = scenario.key();
        if let Some(known) = self.made.get(&key) {
            return Ok(known.clone());
        }
        let run = scenario.run()?;
        self.made.insert(key, run.clone());
        Ok(run)
    }

    /// Runs that were made.
    pub fn count(&self) -> usize {
        self.made.len()
    }

    /// The model's number for a row.
    ///
    /// # Errors
    /// As [`Scenario::run`].
    pub fn value(&mut self, base: &Scenario, row: &Row) -> Result<f64, SimulateError> {
        if let Some(product) = &row.product {
            return base.product_alone_us(product);
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
            return self.ratio(base, (run, row.by.as_ref()), row.quantity);
        }
        let at = |prompt: usize| {
            let mut by = row.by.clone();
            by.iter_mut().for_each(|by| by.prompt = prompt);
            let run = Run { prompt, ..run.clone() };
            self.ratio(base, (&run, by.as_ref()), row.quantity)
        };
        let values: Vec<f64> = row.prompts.iter().copied().map(at).collect::<Result<_, _>>()?;
        Ok(match row.over {
            Some(Over::Min) => values.iter().copied().fold(f64::INFINITY, f64::min),
            Some(Over::Max) => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Some(Over::Mean) | None => values.iter().sum::<f64>() / values.len() as f64,
        })
    }

    /// A quantity of a run, by that of another.
    pub(super) fn ratio(
        &mut self,
        base: &Scenario,
        (run, by): (&Run, Option<&Run>),
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
    /// That quantity of a run, if it has it.
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
            Quantity::AloneUs => None,
        }
    }
}
