//! Shared parts of the commands: options, output to the terminal and in JSON, and failures.

pub(crate) mod answer;
pub(crate) mod attention;
mod device_args;
pub(crate) mod draft;
pub(crate) mod energy;
mod engine_args;
pub(crate) mod failure;
mod fetch_progress;
pub(crate) mod files;
pub(crate) mod input;
pub(crate) mod interrupts;
pub(crate) mod limits;
pub(crate) mod output;
mod parse;
mod prefix_args;
pub(crate) mod profiles;
pub(crate) mod requant;
pub(crate) mod resolve;
mod sampling_args;
pub(crate) mod scales;
mod scenario_args;
pub(crate) mod session;
pub(crate) mod signals;
pub(crate) mod simulated;
pub(crate) mod stage_report;
pub(crate) mod table;
pub(crate) mod terminal;
pub(crate) mod trace;
pub(crate) mod visible;
pub(crate) mod watch;

pub(crate) use device_args::DeviceArgs;
pub(crate) use engine_args::{EngineArgs, ModelArg, PositionalModel};
pub(crate) use parse::at_least_one;
pub(crate) use prefix_args::PrefixArgs;
pub(crate) use sampling_args::SamplingArgs;
pub(crate) use scenario_args::{ScenarioArgs, soc};
