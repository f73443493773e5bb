//! Runs in virtual time: the engine's scheduler, workers and strategies on the modelled processors
//! of a phone or on the modelled devices of a live engine. Needs no weights and takes milliseconds.
//! Also compares such runs with published numbers.
//!
//! ```
//! use lapwing::simulate::Scenario;
//!
//! let mut scenario = Scenario::new("sd8gen3")?;
//! scenario.set("prompt", "525")?;
//! scenario.set("strategy", "pipe")?;
//! let pipe = scenario.run()?;
//! scenario.set("strategy", "tensor-level")?;
//! assert!(scenario.run()?.prefill_ms < pipe.prefill_ms);
//! # Ok::<(), lapwing::simulate::SimulateError>(())
//! ```
//!
//! `docs/simulation.md` defines the models and shows how closely they match the published numbers.

mod change;
mod composite;
mod crossings;
mod decisions;
mod error;
mod fit;
mod given_shape;
mod interference;
pub(crate) mod labels;
mod machine;
mod names;
pub mod plot;
mod processors;
mod products;
pub mod published;
mod repeated;
mod reproduce;
mod reproduce_output;
mod runs;
mod scenario;
mod sensitivity;
mod simulated;
mod sweep;
mod uncertainty;
mod what_if;
mod world;

pub use change::Change;
pub(crate) use composite::seconds;
pub use composite::{
    ClientRun, Composite, CompositeRun, DraftSettings, Overlaps, RequestRun, RequestText, Stage,
    Workflow, requests, stages,
};
pub use crossings::Crossings;
pub use decisions::Decision;
pub use error::SimulateError;
pub use fit::{Fit, FittedCheck, FittedParameter, FittedPin};
pub use interference::Interference;
pub use lapwing_actors::simulate::{OwnDevice, speculation};
pub use lapwing_plan::cost::Modelled;
pub use lapwing_plan::soc::{
    Number, NumberKind, PRESETS, Range, Soc, SocError, SyncMode, WeightBits, Workload,
};
pub use machine::calibration::{Calibration, LeftOut, MeasuredRun, PredictedTime};
pub use machine::{Machine, MachineDevice};
pub use names::SETTINGS;
pub use processors::Processors;
pub use repeated::{Mean, Repeated};
pub use reproduce::{
    CHECK_ERROR_MAX, HeldBack, ReproduceOptions, Reproduced, ReproducedOrder, Reproduction,
};
pub use runs::Runs;
pub use scenario::{ParameterValue, Scenario};
pub use sensitivity::{Measurement, Sensitivity, Skipped, Slope};
pub use simulated::{DeviceUse, Simulated};
pub use sweep::{Axis, Difference, FIGURES, Figure, GroupMean, Point, Results, Sweep, figure};
pub(crate) use sweep::{SEED, cell, combination, combinations};
pub use what_if::WhatIf;
