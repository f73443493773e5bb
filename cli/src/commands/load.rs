//! `lapwing load`: many requests, on the live engine or on a modelled server.

mod live;
mod text;
mod workload;

use std::path::PathBuf;

use lapwing_engine::policy::{PolicyChoice, known};
use lapwing_engine::{EngineStats, Shutdown};
use lapwing_lab::load::{
    Experiment, LoadReport, LoadRequest, Measure, PassTime, RequestOutcome, Server, page,
};
use lapwing_traces::whole_file;
use serde::Serialize;

use self::workload::WorkloadArgs;
use crate::cli::failure::Failure;
use crate::cli::files;
use crate::cli::opening::open;
use crate::cli::output::{print, print_json};
use crate::cli::resolve::ModelChoice;
use crate::cli::session::Session;
use crate::cli::{EngineArgs, ModelArg, PrefixArgs, at_least_one};

const EXAMPLES: &str = "\
Examples:
  lapwing load --experiment vtc-overload --policies all --html load.html
  lapwing load --clients 8 --requests 1 --shared-prefix 400 --prompt-tokens 450
  lapwing load trace.jsonl -m FILE.gguf --policies fcfs+vtc --csv service.csv
  lapwing load trace.csv --server costs.json --kv-tokens 20000

A trace has one request on each line. In our own form:
  {\"at\":0.5,\"client\":\"a\",\"prompt_tokens\":420,\"output_tokens\":64,\"prefix\":[[\"system\",400]]}
Prompts that name the same prefix begin with the same tokens; all other tokens are made up, and
differ. A table of comma-separated values has the columns at,prompt_tokens,output_tokens[,client].
Published traces are read as they are: those of Azure, BurstGPT and Mooncake.

--experiment and --server run in virtual time, with the engine's own scheduler, policies and prefix
cache. The other workloads run on the live engine, in real time. Experiments:
  vtc-overload, vtc-8-clients, vtc-proportional, vtc-on-off, vtc-on-off-overload, vtc-short-long,
  vtc-ramp, vtc-shift, vtc-4-clients, vtc-arena, dlpm, preble-toolbench, preble-embodied,
  preble-programming, preble-video, preble-loogle, preble-mixed

With --json: {\"workload\":\"…\",\"virtual\":BOOL,\"reports\":[{…}]}
  one report for each policy; docs/json.md describes its fields";

/// Options of `load`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// A trace of requests; without one, they are generated
    #[arg(value_name = "TRACE", conflicts_with = "experiment")]
    trace: Option<PathBuf>,

    /// Only the first N requests of the trace
    #[arg(long, value_name = "N", value_parser = at_least_one, requires = "trace")]
    first: Option<usize>,

    /// A published experiment in virtual time
    #[arg(long, value_name = "NAME")]
    experiment: Option<String>,

    #[command(flatten)]
    workload: WorkloadArgs,

    /// Queue policies to compare, as in fcfs+vtc, or all [default: that of --policy]
    #[arg(long, value_name = "NAMES", conflicts_with = "policy")]
    policies: Option<String>,

    /// Run in virtual time on a server with these measured costs, a JSON file: input tokens → output
    /// tokens → [batch size, seconds of a prompt, seconds of its output]
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "experiment",
        help_heading = "Virtual server"
    )]
    server: Option<PathBuf>,

    /// Tokens that its KV cache holds [default: 10000, or as the experiment says]
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Virtual server")]
    kv_tokens: Option<usize>,

    /// Seconds of virtual time after which it ends [default: when all requests have ended, or as the
    /// experiment says]
    #[arg(long, value_name = "S", help_heading = "Virtual server")]
    until: Option<f64>,

    /// Write the service of each client in each window as comma-separated values
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Write a page with plots of latencies, differences and service under each policy
    #[arg(long, value_name = "FILE.html")]
    html: Option<PathBuf>,

    #[command(flatten)]
    model: ModelArg,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    prefix: PrefixArgs,
}

#[derive(Serialize)]
struct Report {
    workload: String,
    r#virtual: bool,
    reports: Vec<LoadReport>,
}

/// Where the requests are served.
enum Place {
    Virtual(Box<Server>, Option<f64>),
    Live,
}

/// Runs a workload under each policy and prints the reports.
pub(crate) async fn run(args: Args, session: &Session) -> Result<(), Failure> {
    for path in args.csv.iter().chain(&args.html) {
        whole_file::check(path).map_err(|error| Failure::file("write", path, &error))?;
    }
    let policies = args.policies()?;
    let (workload, requests, place, measure) = args.subject(session)?;
    let mut reports = Vec::new();
    for choice in policies {
        let (outcomes, stats) = match &place {
            Place::Virtual(server, until) => {
                let served = server.run(&requests, &choice, *until);
                served.map_err(|error| Failure::usage(error.to_string()))?
            }
            Place::Live => args.live(&requests, &choice, session).await?,
        };
        let until = if let Place::Virtual(_, until) = place { until } else { None };
        let duration = until.unwrap_or_else(|| duration(&outcomes));
        reports.push(LoadReport::new(choice.name(), &outcomes, &stats, duration, &measure));
    }
    if let Some(path) = &args.csv {
        files::write(path, text::csv(&reports).as_bytes(), session)?;
    }
    let is_virtual = matches!(place, Place::Virtual(..));
    if let Some(path) = &args.html {
        let page = page(&workload, text::place(is_virtual), &reports);
        files::write(path, page.as_bytes(), session)?;
    }
    match session.json {
        true => print_json(&Report { workload, r#virtual: is_virtual, reports }),
        false => print(&text::report(&workload, is_virtual, &reports)),
    }
}

/// Time of the last event.
fn duration(outcomes: &[RequestOutcome]) -> f64 {
    let last = |outcome: &RequestOutcome| outcome.tokens.last().copied().unwrap_or(outcome.at);
    outcomes.iter().map(last).fold(0.0, f64::max)
}

impl Args {
    fn policies(&self) -> Result<Vec<PolicyChoice>, Failure> {
        let names: Vec<String> = match self.policies.as_deref() {
            None => vec![self.engine.policy.clone().unwrap_or_else(|| "fcfs".to_owned())],
            Some("all") => known().iter().map(|known| known.name().to_owned()).collect(),
            Some(names) => names.split('+').map(str::to_owned).collect(),
        };
        let choices: Vec<PolicyChoice> =
            names.iter().map(|name| PolicyChoice::from(name.as_str())).collect();
        for choice in &choices {
            let made = choice.make().map(|_| ());
            made.map_err(|error| Failure::usage(format!("--policies: {error}")))?;
        }
        Ok(choices)
    }

    /// Name and requests of the workload, and where they are served.
    fn subject(
        &self,
        session: &Session,
    ) -> Result<(String, Vec<LoadRequest>, Place, Measure), Failure> {
        let usage = |error: &dyn std::fmt::Display| Failure::usage(error.to_string());
        if let Some(name) = &self.experiment {
            let experiment = Experiment::named(name, self.workload.seed);
            let mut experiment = experiment.map_err(|error| usage(&error))?;
            experiment.server.kv_tokens = self.kv_tokens.unwrap_or(experiment.server.kv_tokens);
            if self.prefix.is_off() {
                experiment.server.prefix_cache = false;
            }
            experiment.server.token_gap = self.engine.token_gap;
            let until = self.until.or(experiment.until);
            let place = Place::Virtual(Box::new(experiment.server), until);
            return Ok((name.clone(), experiment.requests, place, experiment.measure));
        }
        let (name, requests) = match &self.trace {
            Some(path) => workload::read(path, self.first, session)?,
            None => self.workload.generated()?,
        };
        let place = match &self.server {
            None => Place::Live,
            Some(path) => {
                let text = std::fs::read_to_string(path);
                let text = text.map_err(|error| Failure::file("read", path, &error))?;
                let server = Server {
                    time: PassTime::fit(&text).map_err(|error| usage(&error))?,
                    kv_tokens: self.kv_tokens.unwrap_or(10_000),
                    chunk_rows: self.engine.chunk.unwrap_or(2048),
                    sequences_max: 256,
                    prefix_cache: !self.prefix.is_off(),
                    token_gap: self.engine.token_gap,
                };
                Place::Virtual(Box::new(server), self.until)
            }
        };
        Ok((name, requests, place, Measure::default()))
    }

    /// Serves the requests with a new engine.
    async fn live(
        &self,
        requests: &[LoadRequest],
        policy: &PolicyChoice,
        session: &Session,
    ) -> Result<(Vec<RequestOutcome>, EngineStats), Failure> {
        ModelChoice::of(&self.model.model)?;
        self.engine.check(session)?;
        let builder = self.engine.builder_of(&self.model.model, session).await?;
        let builder = self.prefix.applied(builder);
        let builder = builder.policy(policy.clone()).requests_max(requests.len().max(1));
        let engine = open(builder, session).await?;
        let outcomes = live::run(&engine, requests).await;
        let stats = engine.stats().await?;
        engine.shutdown(Shutdown::Drain).await?;
        Ok((outcomes, stats))
    }
}
