//! Policies by name.

use std::time::Duration;

use super::choice::PolicyError;
use super::dfs_weight::DfsWeight;
use super::dlpm::Dlpm;
use super::edf::Edf;
use super::fcfs::{Fcfs, FcfsOvertaking};
use super::hrrn::Hrrn;
use super::learned::{Learned, OnlineRanker};
use super::limited::{Limited, RequestLimits};
use super::lpm::Lpm;
use super::mlfq::Mlfq;
use super::parameters::{Parameter, Parameters};
use super::preble::Preble;
use super::queue_policy::QueuePolicy;
use super::shortest::Shortest;
use super::vtc::Vtc;

/// A policy that can be chosen by name.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Its name.
    pub name: &'static str,
    /// Its effect, in one line.
    pub about: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// Whether clients may have weights (`weight.CLIENT=W`).
    pub weighted: bool,
    /// Requests per minute that a client may send if no other limit is given (`rpm=N`, `rpm.CLIENT=N`).
    pub requests_per_minute: Option<usize>,
    /// Makes one for an engine, without such limits.
    pub make: fn(&Parameters) -> Box<dyn QueuePolicy>,
}

/// Every policy that comes with Lapwing, the default first.
pub fn known() -> &'static [Known] {
    KNOWN
}

/// The policy of a name with parameters: `NAME` or `NAME:KEY=VALUE,…`.
///
/// # Errors
/// [`PolicyError`].
pub fn by_name(text: &str) -> Result<Box<dyn QueuePolicy>, PolicyError> {
    let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
    let known = KNOWN.iter().find(|known| known.name == name);
    let known = known.ok_or_else(|| PolicyError::Unknown { name: name.to_owned() })?;
    let Known { name, parameters: all, weighted, .. } = known;
    let parameters = Parameters::parse(name, parameters, all, *weighted)?;
    let (made, mut limits) = ((known.make)(&parameters), parameters.limits());
    limits.others = limits.others.or(known.requests_per_minute);
    match limits == RequestLimits::default() {
        true => Ok(made),
        false => Ok(Box::new(Limited::new(name, made, limits))),
    }
}

const fn parameter(
    name: &'static str,
    about: &'static str,
    default: f64,
    from: f64,
    to: f64,
) -> Parameter {
    Parameter { name, about, default, from, to }
}

const OUTPUT: Parameter =
    parameter("output", "cost of a generated token in prompt tokens", Shortest::OUTPUT, 0.0, 1e3);
const AGING: Parameter =
    parameter("aging", "prompt tokens per second of waiting", Shortest::AGING, 0.0, 1e6);
const SERVICE: Parameter = parameter("output", "service of a generated token", 2.0, 0.0, 1e3);
const PROMPT: Parameter = parameter("prompt", "service of a prompt token", 1.0, 0.0, 1e3);

const KNOWN: &[Known] = &[
    Known {
        name: "fcfs",
        about: "first come, first served; a request that does not fit blocks those behind it",
        parameters: &[],
        weighted: false,
        requests_per_minute: None,
        make: |_| Box::new(Fcfs),
    },
    Known {
        name: "fcfs-overtaking",
        about: "as fcfs, but requests that fit overtake one that does not, for a bounded time",
        parameters: &[parameter("patience", "seconds of being overtaken", 10.0, 0.0, 1e6)],
        weighted: false,
        requests_per_minute: None,
        make: |p| {
            Box::new(FcfsOvertaking { patience: Duration::from_secs_f64(p.value("patience")) })
        },
    },
    Known {
        name: "sjf",
        about: "shortest job first, with aging",
        parameters: &[OUTPUT, AGING],
        weighted: false,
        requests_per_minute: None,
        make: |p| Box::new(shortest(false, p)),
    },
    Known {
        name: "srtf",
        about: "shortest remaining time first, with aging",
        parameters: &[OUTPUT, AGING],
        weighted: false,
        requests_per_minute: None,
        make: |p| Box::new(shortest(true, p)),
    },
    Known {
        name: "mlfq",
        about: "multi-level feedback queue with skip-join",
        parameters: &[
            parameter("quantum", "tokens of the first level", 64.0, 1.0, 1e6),
            parameter("levels", "number of levels", 8.0, 1.0, 32.0),
            parameter("starvation", "seconds of waiting until promotion", 30.0, 0.001, 1e6),
        ],
        weighted: false,
        requests_per_minute: None,
        make: |p| {
            let starvation = Duration::from_secs_f64(p.value("starvation"));
            Box::new(Mlfq::new(p.value("quantum"), p.value("levels") as usize, starvation))
        },
    },
    Known {
        name: "hrrn",
        about: "highest response ratio next, in tokens",
        parameters: &[],
        weighted: false,
        requests_per_minute: None,
        make: |_| Box::new(Hrrn::default()),
    },
    Known {
        name: "lpm",
        about: "longest prefix match: the most cached tokens first",
        parameters: &[
            parameter("shared", "tokens in common from which requests wait", 32.0, 0.0, 1e6),
            parameter("most", "most waiting requests that are compared", 128.0, 0.0, 1e6),
        ],
        weighted: false,
        requests_per_minute: None,
        make: |p| Box::new(Lpm::new(p.value("shared") as usize, p.value("most") as usize)),
    },
    Known {
        name: "dfs-weight",
        about: "depth-first through the tree of cached prefixes, the most requested branch first",
        parameters: &[],
        weighted: false,
        requests_per_minute: None,
        make: |_| Box::new(DfsWeight::default()),
    },
    Known {
        name: "preble",
        about: "groups by the cached share of the prompt, visited in turn",
        parameters: &[
            parameter("groups", "number of groups", 10.0, 1.0, 1e3),
            parameter("quota", "admissions of a visit per group number", 10.0, 1.0, 1e6),
        ],
        weighted: false,
        requests_per_minute: None,
        make: |p| Box::new(Preble::new(p.value("groups") as usize, p.value("quota") as usize)),
    },
    Known {
        name: "vtc",
        about: "virtual token counter: the client with the least service first",
        parameters: &[
            PROMPT,
            SERVICE,
            parameter("predict", "1 charges the expected output at admission", 0.0, 0.0, 1.0),
        ],
        weighted: true,
        requests_per_minute: None,
        make: |p| {
            let predict = p.value("predict") >= 0.5;
            Box::new(Vtc::new(p.value("prompt"), p.value("output"), predict, p.weights()))
        },
    },
    Known {
        name: "dlpm",
        about: "deficit longest prefix match: locality within each client's credit",
        parameters: &[
            parameter("quantum", "credit of a refill", 2000.0, 1e-3, 1e9),
            PROMPT,
            SERVICE,
        ],
        weighted: true,
        requests_per_minute: None,
        make: |p| {
            let (quantum, prompt, output) =
                (p.value("quantum"), p.value("prompt"), p.value("output"));
            Box::new(Dlpm::new(quantum, prompt, output, p.weights()))
        },
    },
    Known {
        name: "learned",
        about: "the shortest expected answer first, learned from answers that have ended",
        parameters: &[parameter(
            "starvation",
            "seconds of waiting after which a request goes first",
            60.0,
            0.001,
            1e6,
        )],
        weighted: false,
        requests_per_minute: None,
        make: |p| {
            let starvation = Duration::from_secs_f64(p.value("starvation"));
            Box::new(Learned::new(Box::<OnlineRanker>::default(), starvation))
        },
    },
    Known {
        name: "rpm",
        about: "fcfs, but refuses requests of a client beyond 'rpm' in a minute",
        parameters: &[],
        weighted: false,
        requests_per_minute: Some(20),
        make: |_| Box::new(Fcfs),
    },
    Known {
        name: "edf",
        about: "priorities, and within each the earliest deadline first",
        parameters: &[],
        weighted: false,
        requests_per_minute: None,
        make: |_| Box::new(Edf),
    },
];

fn shortest(remaining: bool, p: &Parameters) -> Shortest {
    Shortest { remaining, output: p.value("output"), aging: p.value("aging") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_finds_the_policy_that_bears_it() {
        for known in known() {
            assert_eq!(by_name(known.name).expect("is known").name(), known.name);
            assert_eq!(super::known().iter().filter(|k| k.name == known.name).count(), 1);
            for parameter in known.parameters {
                assert!((parameter.from..=parameter.to).contains(&parameter.default));
            }
        }
        assert!(by_name("no-such-policy").is_err());
    }
}
