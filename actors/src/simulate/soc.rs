//! Whole runs on a modelled system on a chip: the scheduler, workers and strategies of the live engine
//! in virtual time, on processors that compute no values and take the times of a [`Soc`].

use std::sync::Arc;

use lapwing_kernels::device::DeviceKind;
use lapwing_traces::{Recorder, Scope};

use super::error::SocRunError;
use super::traffic::{Traffic, TrafficOutcome};
use super::virtual_engine::{Caller, VirtualEngine};
use lapwing_plan::soc::Soc;
use lapwing_plan::strategy::Strategy;
use lapwing_plan::{PlanError, Route};

mod devices;
mod options;
mod outcome;
mod setup;
mod shapes;

use devices::Unit;
pub use options::{MakeDevice, SocModel, SocOptions, SocValues};
pub use outcome::{SocOutcome, SocPhase, SocUnit};
use setup::{Load, Setup};
pub use shapes::{Fault, Shapes};

/// A run on a system, ready to start.
pub struct SocSimulation {
    engine: VirtualEngine,
    soc: Soc,
    options: SocOptions,
    /// The devices, in the order of their registration.
    units: Vec<Unit>,
    routes: [Arc<Route>; 2],
    ids: Vec<u32>,
}

impl SocSimulation {
    /// A run of a model on a system.
    ///
    /// # Errors
    /// [`SocRunError::Option`], [`SocRunError::NoProcessor`] or [`SocRunError::NameTwice`] for impossible options,
    /// [`SocRunError::Plan`] when the strategy finds no route on these devices, or on the CPU if the options add it.
    pub fn new(
        model: &SocModel,
        soc: &Soc,
        strategy: &Arc<dyn Strategy>,
        options: &SocOptions,
    ) -> Result<SocSimulation, SocRunError> {
        SocSimulation::build(model, soc, strategy, options, Load::One)
    }

    /// A run of many requests, to [`serve`](SocSimulation::serve). The options' prompt and answer are ignored.
    ///
    /// # Errors
    /// As [`new`](SocSimulation::new), and [`SocRunError::Number`] for impossible traffic.
    pub fn with_traffic(
        model: &SocModel,
        soc: &Soc,
        strategy: &Arc<dyn Strategy>,
        options: &SocOptions,
        traffic: &Traffic,
    ) -> Result<SocSimulation, SocRunError> {
        traffic.check()?;
        let prompts = traffic.arrivals.iter().map(|arrival| arrival.ids.len());
        let prompt = prompts.max().unwrap_or(1);
        let options = SocOptions { prompt, decode: 0, verify: 1, ..options.clone() };
        SocSimulation::build(model, soc, strategy, &options, Load::Traffic(traffic))
    }

    /// A run that also computes true values. The prompt is that of `values`; the options' prompt length
    /// is ignored. Times equal those of a run without values, except for graphs that are prepared during
    /// a run: only the run without values always shares them between layers.
    ///
    /// # Errors
    /// As [`new`](SocSimulation::new), and [`SocRunError::Device`].
    pub fn with_values(
        model: &SocModel,
        soc: &Soc,
        strategy: &Arc<dyn Strategy>,
        options: &SocOptions,
        values: &SocValues<'_>,
    ) -> Result<SocSimulation, SocRunError> {
        let options = SocOptions { prompt: values.ids.len(), ..options.clone() };
        SocSimulation::build(model, soc, strategy, &options, Load::Values(values))
    }

    fn build(
        model: &SocModel,
        soc: &Soc,
        strategy: &Arc<dyn Strategy>,
        options: &SocOptions,
        load: Load<'_>,
    ) -> Result<SocSimulation, SocRunError> {
        let checks = [
            ("the prompt's length", options.prompt, 1, 1 << 20),
            ("the number of decoding steps", options.decode, 0, 1 << 20),
            ("the number of rows of a step", options.verify, 1, 64),
            ("the number of chunks in flight", options.in_flight, 1, 64),
        ];
        for (what, found, from, to) in checks {
            if !(from..=to).contains(&found) {
                return Err(SocRunError::Option { what, found, from, to });
            }
        }
        let without = [
            ("a device's fault", options.fault.is_some()),
            ("stepped preparation", options.stepped_preparation),
            ("a draft", options.verify > 1),
        ];
        if let Some((what, _)) = without.iter().find(|(_, set)| *set && load.values().is_some()) {
            return Err(SocRunError::Values { what });
        }
        let setup = Setup { model, soc, strategy, options, load };
        let faulty = options.fault.iter().map(|fault| &fault.kind);
        let mut kinds = options.devices.iter().chain(faulty);
        if let Some(kind) = kinds.find(|kind| !Soc::KINDS.contains(kind)) {
            return Err(SocRunError::NoProcessor { kind: kind.name() });
        }
        // The numbers do not depend on the order of registration.
        let named = |kinds: &[DeviceKind]| -> Vec<DeviceKind> {
            Soc::KINDS.into_iter().filter(|kind| kinds.contains(kind)).collect()
        };
        match setup.build(&named(&options.devices)) {
            Err(SocRunError::Plan(
                PlanError::Needs { kind: DeviceKind::Cpu, .. } | PlanError::NeedsTwoKinds { .. },
            )) if options.may_add_cpu() => {
                setup.build(&named(&[&options.devices[..], &[DeviceKind::Cpu]].concat()))
            }
            built => built,
        }
    }

    /// Names of the devices that compute, in the order of their registration.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        self.units.iter().map(|unit| &*unit.name)
    }

    /// The routes of a whole prompt (or its first chunk) and of a step of decoding.
    pub fn routes(&self) -> &[Arc<Route>; 2] {
        &self.routes
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// [`SocRunError`] when the request fails, the caller cancels before the first token, or
    /// resources are left in the engine.
    pub fn run(mut self) -> Result<SocOutcome, SocRunError> {
        let SocOptions { record, decode, verify, cancel, .. } = self.options;
        if record {
            self.engine.recorder().set_scope(Scope::All);
        }
        let seen = self.engine.run(&Caller { ids: &self.ids, decode, verify, cancel })?;
        let recording = record.then(|| self.engine.recorder().recording());
        Ok(outcome::outcome(&self, &seen, recording))
    }

    /// Serves the traffic to the end. It has had the same requests before, so that it knows the times of steps.
    ///
    /// # Errors
    /// [`SocRunError`] when a request fails, or resources are left in the engine.
    pub fn serve(mut self, traffic: &Traffic) -> Result<TrafficOutcome, SocRunError> {
        self.engine.serve_traffic(traffic)?;
        if self.options.record {
            self.engine.recorder().set_scope(Scope::All);
        }
        let outcome = self.engine.serve_traffic(traffic)?;
        let recording = self.options.record.then(|| self.engine.recorder().recording());
        Ok(TrafficOutcome { recording, ..outcome })
    }

    /// The recorder. It is on if the options request a recording, and also records failed runs.
    pub fn recorder(&self) -> &Recorder {
        self.engine.recorder()
    }
}
