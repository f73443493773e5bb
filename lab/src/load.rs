//! Workloads of many requests: read from a trace or generated, served by a modelled server in virtual time, and
//! reported by client.
//!
//! ```
//! use lapwing::load::{Experiment, LoadReport};
//! use lapwing::policy::PolicyChoice;
//!
//! let mut experiment = Experiment::named("vtc-proportional", Experiment::SEED)?;
//! # experiment.requests.truncate(200);
//! let policy = experiment.policy(&PolicyChoice::from("fcfs"));
//! let (served, stats) = experiment.server.run(&experiment.requests, &policy, None)?;
//! let report = LoadReport::new("fcfs", &served, &stats, &experiment.measure);
//! assert_eq!(report.clients.len(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `docs/load.md` describes the experiments, the servers and every number of a report.

mod cost;
mod experiments;
mod generate;
mod mersenne;
mod outcome;
mod page;
mod random;
mod report;
mod request;
mod server;
#[cfg(test)]
mod tests;
mod trace;
mod workers;

pub use cost::{CostError, PassTime};
pub use experiments::{Experiment, ExperimentError};
pub use generate::{LoadClient, Rate, SharedPrefixes, generate};
pub use outcome::RequestOutcome;
pub use page::page;
pub use report::{ClientReport, Difference, Largest, Latencies, LoadReport, Mean, Measure};
pub use request::{LoadRequest, WorkloadError};
pub use server::{Server, ServerOptions};
pub use trace::{Trace, TraceForm};
pub use workers::{
    Imbalance, Routed, WorkerReport, Workers, WorkersReport, numbered_file, repeated,
};
