//! The experiments of VTC (Sheng et al., 2024), DLPM (Cao et al., 2025) and Preble (Srivatsa et al., 2024), as far as
//! their settings are public, on modelled servers.

mod dlpm;
mod preble;
mod vtc;

use lapwing_actors::policy::PolicyChoice;

use super::cost::CostError;
use super::report::Measure;
use super::request::{LoadRequest, WorkloadError};
use super::server::Server;

/// A workload with the server that it is for.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Experiment {
    /// Name.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
    /// The requests.
    pub requests: Vec<LoadRequest>,
    /// The server.
    pub server: Server,
    /// Parameters that policies have in it: name, and `KEY=VALUE,…`.
    pub parameters: Vec<(&'static str, &'static str)>,
    /// How service is counted.
    pub measure: Measure,
}

/// Why an experiment cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// There is none of that name.
    #[error("there is no experiment '{name}'; it must be one of {}", known())]
    Unknown {
        /// The name.
        name: String,
    },
    /// Its trace cannot be read.
    #[error(transparent)]
    Trace(#[from] WorkloadError),
    /// Its costs cannot be read.
    #[error(transparent)]
    Cost(#[from] CostError),
}

fn known() -> String {
    Experiment::ALL.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

impl Experiment {
    /// The seed of the published workloads.
    pub const SEED: u64 = 42;

    /// Names of all experiments, and what they show.
    pub const ALL: [(&'static str, &'static str); 18] = [
        ("vtc-overload", "two clients send 1.5 and 3 requests/s, more than the server can do"),
        ("vtc-overload-600", "the same for 600 s, as in the published runs with FCFS"),
        ("vtc-8-clients", "three clients send 0.4 requests/s and five 0.6"),
        ("vtc-proportional", "three clients send 0.25, 0.5 and 1.5 requests/s"),
        ("vtc-on-off", "one client pauses every other minute and stays below its share"),
        ("vtc-on-off-overload", "one client pauses every other minute; both overload the server"),
        ("vtc-short-long", "8 short requests/s of one client, 1.5 long ones/s of another"),
        ("vtc-ramp", "one client keeps its rate, the other raises it from 0.2 to 2 requests/s"),
        ("vtc-shift", "the rates of two clients change twice in 15 minutes"),
        ("vtc-4-clients", "four clients of weights 1 to 4 send 0.8, 0.8, 1.2 and 1.6 requests/s"),
        ("vtc-arena", "requests of 27 clients, recorded by Chatbot Arena"),
        ("dlpm", "three users ask 50 questions each, with 16, 2 and 2 branches"),
        ("preble-toolbench", "prompts of 1835 tokens, 85 % of them a tool's instructions"),
        ("preble-embodied", "prompts of 2285 tokens, 97 % of them the steps before"),
        ("preble-programming", "prompts of 3871 tokens, 97 % of them shared"),
        ("preble-video", "prompts of 9865 tokens, 88 % of them a video"),
        ("preble-loogle", "prompts of 23 474 tokens, 91 % of them a document"),
        ("preble-mixed", "tools and programming together, one client each"),
    ];

    /// The experiment of that name. The same seed gives the same requests; [`SEED`](Experiment::SEED) gives the published ones.
    ///
    /// # Errors
    /// [`ExperimentError`].
    pub fn named(name: &str, seed: u64) -> Result<Experiment, ExperimentError> {
        let entry = Experiment::ALL.iter().find(|(known, _)| *known == name);
        let Some((name, about)) = entry.copied() else {
            return Err(ExperimentError::Unknown { name: name.to_owned() });
        };
        let measure = Measure::default();
        let made = |requests, server| Experiment {
            name,
            about,
            requests,
            server,
            parameters: Vec::new(),
            measure,
        };
        Ok(match name {
            "dlpm" => Experiment {
                parameters: dlpm::PARAMETERS.to_vec(),
                ..made(dlpm::requests(), dlpm::server())
            },
            _ if name.starts_with("preble") => made(preble::requests(name, seed), preble::server()),
            _ => {
                let weighted = name == "vtc-4-clients";
                let parameters = if weighted { vtc::WEIGHTS.to_vec() } else { Vec::new() };
                let measure = Measure::VTC;
                Experiment {
                    parameters,
                    measure,
                    ..made(vtc::requests(name, seed)?, vtc::server()?)
                }
            }
        })
    }

    /// A policy with the parameters that it has in the experiment, apart from those that the choice gives.
    pub fn policy(&self, choice: &PolicyChoice) -> PolicyChoice {
        let (name, given) = choice.name().split_once(':').unwrap_or((choice.name(), ""));
        match self.parameters.iter().find(|(policy, _)| *policy == name) {
            // Of several values of a parameter, the last one counts.
            Some((_, own)) => PolicyChoice::from(format!("{name}:{own},{given}")),
            None => choice.clone(),
        }
    }
}
