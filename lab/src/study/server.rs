//! Scenarios like `lapwing load` on a modelled server, or on several behind a router.

use std::time::Duration;

use lapwing_actors::policy::PolicyChoice;
use lapwing_actors::scheduler::Reserve;

use super::numbers::Numbers;
use super::subject::{Misfit, Places, Subject, bad, read, switch};
use crate::load::{Experiment, LoadReport, Measure, PassTime, ServerOptions};
use crate::simulate::{SimulateError, seconds};

mod routed;

use routed::{Router, numbered_files};

/// A workload on a modelled server.
#[derive(Clone)]
pub(super) struct ModelledServer {
    places: Places,
    experiment: Option<String>,
    /// Text of the trace and of the file of costs.
    trace: Option<String>,
    costs: Option<String>,
    policy: PolicyChoice,
    first: Option<usize>,
    kv_tokens: Option<usize>,
    chunk: Option<usize>,
    sequences: Option<usize>,
    prefix_cache: Option<bool>,
    token_gap: Option<Duration>,
    host: Option<Duration>,
    reserve: Option<Reserve>,
    prefill_alone: Option<bool>,
    max_prefill_tokens: Option<usize>,
    admit_every: Option<usize>,
    until: Option<f64>,
    seed: u64,
    router: Router,
}

const KEYS: [&str; 17] = [
    "experiment",
    "trace",
    "costs",
    "policy",
    "first",
    "kv-tokens",
    "chunk",
    "sequences",
    "prefix-cache",
    "token-gap",
    "host",
    "reserve",
    "prefill-alone",
    "max-prefill-tokens",
    "admit-every",
    "until",
    "seed",
];

/// The experiment whose server and measure count for traces: those of VTC.
const USUAL: &str = "vtc-overload";

impl ModelledServer {
    pub(super) fn new(places: &Places) -> ModelledServer {
        ModelledServer {
            places: places.clone(),
            experiment: None,
            trace: None,
            costs: None,
            policy: PolicyChoice::default(),
            first: None,
            kv_tokens: None,
            chunk: None,
            sequences: None,
            prefix_cache: None,
            token_gap: None,
            host: None,
            reserve: None,
            prefill_alone: None,
            max_prefill_tokens: None,
            admit_every: None,
            until: None,
            seed: Experiment::SEED,
            router: Router::default(),
        }
    }

    /// The experiment, or the trace on a server with these costs.
    fn workload(&self) -> Result<Experiment, SimulateError> {
        let name = self.experiment.as_deref().unwrap_or(USUAL);
        let mut made = self.router.experiment(name, self.seed)?;
        if let Some(trace) = &self.trace {
            made.requests = self.places.trace("trace", trace)?;
            (made.measure, made.server.prefix_cache) = (Measure::default(), true);
            made.server.options = ServerOptions::default();
        }
        if let Some(file) = &self.costs {
            made.server.time = costs(&self.places, "costs", file)?;
        }
        made.requests.truncate(self.first.unwrap_or(usize::MAX));
        let server = &mut made.server;
        server.kv_tokens = self.kv_tokens.unwrap_or(server.kv_tokens);
        server.chunk_rows = self.chunk.unwrap_or(server.chunk_rows);
        server.sequences_max = self.sequences.unwrap_or(server.sequences_max);
        server.prefix_cache = self.prefix_cache.unwrap_or(server.prefix_cache);
        server.token_gap = self.token_gap.or(server.token_gap);
        server.options = self.options(server.options);
        Ok(made)
    }

    /// How the server admits requests and forms passes, with what is set in place of its own.
    fn options(&self, own: ServerOptions) -> ServerOptions {
        let mut batches = own.batches;
        batches.alone = self.prefill_alone.unwrap_or(batches.alone);
        batches.prompt_tokens = self.max_prefill_tokens.or(batches.prompt_tokens);
        batches.steps = self.admit_every.unwrap_or(batches.steps);
        ServerOptions {
            host: self.host.unwrap_or(own.host),
            reserve: self.reserve.unwrap_or(own.reserve),
            batches,
        }
    }
}

/// The costs of a file.
fn costs(places: &Places, key: &str, file: &str) -> Result<PassTime, SimulateError> {
    let text = std::fs::read_to_string(places.path(file));
    let text = text.map_err(|error| bad(key, file, error.to_string()))?;
    PassTime::fit(&text).map_err(|error| bad(key, file, error.to_string()))
}

/// A time.
fn time(key: &str, value: &str) -> Result<Duration, SimulateError> {
    let time = seconds(value).and_then(|it| Duration::try_from_secs_f64(it).ok());
    time.ok_or_else(|| bad(key, value, "it must be a time, as in 250ms"))
}

fn count(key: &str, value: &str) -> Result<usize, SimulateError> {
    let count = value.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| bad(key, value, "it must be a whole number from 1 on"))
}

impl Subject for ModelledServer {
    fn keys(&self) -> Vec<String> {
        KEYS.into_iter().chain(Router::KEYS).map(str::to_owned).collect()
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), SimulateError> {
        match key {
            "experiment" => {
                Experiment::named(value, 0).map_err(|error| bad(key, value, error.to_string()))?;
                self.experiment = Some(value.to_owned());
            }
            "trace" => {
                self.places.trace(key, value)?;
                self.trace = Some(value.to_owned());
            }
            "costs" => self.costs = Some(value.to_owned()),
            "policy" => {
                self.policy = PolicyChoice::from(value);
                self.policy.make().map_err(|error| bad(key, value, error.to_string()))?;
            }
            "first" => self.first = Some(count(key, value)?),
            "kv-tokens" => self.kv_tokens = Some(count(key, value)?),
            "chunk" => self.chunk = Some(count(key, value)?),
            "sequences" => self.sequences = Some(count(key, value)?),
            "prefix-cache" => self.prefix_cache = Some(switch(key, value)?),
            "token-gap" => self.token_gap = Some(time(key, value)?),
            "host" => self.host = Some(time(key, value)?),
            "reserve" => {
                let reserve: Result<Reserve, _> = value.parse();
                self.reserve = Some(reserve.map_err(|error| bad(key, value, error.to_string()))?);
            }
            "prefill-alone" => self.prefill_alone = Some(switch(key, value)?),
            "max-prefill-tokens" => self.max_prefill_tokens = Some(count(key, value)?),
            "admit-every" => {
                self.admit_every = Some(read(key, value, "it must be a whole number")?);
            }
            "until" => {
                let until = value.parse().ok().filter(|until: &f64| *until > 0.0);
                let wrong = || bad(key, value, "it must be a number of seconds above 0");
                self.until = Some(until.ok_or_else(wrong)?);
            }
            "seed" => self.seed = read(key, value, "it must be a whole number")?,
            _ if Router::KEYS.contains(&key) => self.router.set(&self.places, key, value)?,
            _ => return Err(bad(key, value, format!("a server has {}", self.keys().join(", ")))),
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Misfit> {
        let needed = "a scenario of 'load' needs an experiment, or a trace with its costs";
        match (&self.experiment, &self.trace, &self.costs) {
            (None, None, _) => Err(Misfit::new("experiment", needed)),
            (None, Some(_), None) => Err(Misfit::new("trace", needed)),
            (Some(_), Some(_), _) => {
                Err(Misfit::new("trace", "give a trace or an experiment, not both"))
            }
            _ => {
                self.router.check(self.trace.is_some())?;
                self.workload().map(|_| ()).map_err(|error| Misfit::new("costs", error.to_string()))
            }
        }
    }

    fn dependent(&self) -> &'static [&'static str] {
        &Router::KEYS
    }

    fn run(&self) -> Result<Numbers, SimulateError> {
        let experiment = self.workload()?;
        let policy = match self.experiment {
            Some(_) => experiment.policy(&self.policy),
            None => self.policy.clone(),
        };
        if self.router.is_used() {
            return self.router.run(&self.places, (experiment, &policy, self.until));
        }
        let Experiment { requests, server, measure, .. } = experiment;
        let served = server.run(&requests, &policy, self.until);
        let (outcomes, stats) =
            served.map_err(|error| SimulateError::Run { reason: error.to_string() })?;
        let report = LoadReport::new(self.policy.name(), &outcomes, &stats, &measure);
        Ok(Numbers::of(&report))
    }

    fn copy(&self) -> Box<dyn Subject> {
        Box::new(self.clone())
    }

    fn figures(&self) -> &'static [&'static str] {
        match self.router.is_used() {
            true => &["tokens_per_second", "hit_rate", "imbalance.busy", "latencies.ttft_ms.p95"],
            false => &["tokens_per_second", "jain_index", "latencies.ttft_ms.p95"],
        }
    }

    fn files<'a>(&self, key: &str, value: &'a str) -> Vec<&'a str> {
        match key {
            "trace" | "costs" => vec![value],
            "worker-server" => {
                let files = numbered_files(value).unwrap_or_default();
                files.into_iter().map(|(_, file)| file).collect()
            }
            _ => Vec::new(),
        }
    }
}
