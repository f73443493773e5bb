//! Runs a scenario.

use lapwing_traces::Recording;

use super::Scenario;
use crate::simulate::error::SimulateError;
use crate::simulate::processors::Processors;
use crate::simulate::simulated::Simulated;
use crate::simulate::{machine, world};

impl Scenario {
    /// Runs the scenario.
    ///
    /// # Errors
    /// [`SimulateError::Model`], and [`SimulateError::Run`] if the strategy does not fit.
    pub fn run(&self) -> Result<Simulated, SimulateError> {
        self.simulate(false).map(|(run, _)| run)
    }

    /// Runs the scenario and records its timeline, as for a live run.
    ///
    /// # Errors
    /// As [`run`](Scenario::run).
    pub fn record(&self) -> Result<(Simulated, Recording), SimulateError> {
        let (run, recording) = self.simulate(true)?;
        let missing = || SimulateError::Run { reason: "the run was not recorded".to_owned() };
        Ok((run, recording.ok_or_else(missing)?))
    }

    fn simulate(&self, record: bool) -> Result<(Simulated, Option<Recording>), SimulateError> {
        match self.processors() {
            Processors::Soc(soc) => world::run(self, soc, record),
            Processors::Machine(machine) => machine::run::run(self, machine, record),
        }
    }
}
