//! `lapwing load`: many requests, on the live engine or on a modelled server.

mod live;
mod text;
mod virtual_server;
mod workers;
mod workload;

use std::path::PathBuf;

use lapwing_engine::policy::{PolicyChoice, known};
use lapwing_engine::{EngineStats, Shutdown};
use lapwing_lab::load::{
    Experiment, LoadReport, LoadRequest, Measure, RequestOutcome, Server, page, repeated,
};
use lapwing_lab::table::table as comma_separated;
use lapwing_traces::whole_file;
use serde::Serialize;

use self::virtual_server::ServerArgs;
use self::workers::{Files, Routed, WorkersArgs};
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
  lapwing load --experiment vtc-on-off --policies vtc --requests-out times.csv
  lapwing load --experiment preble-toolbench --copies 4 --workers 4 --route all

A trace has one request on each line. In our own form:
  {\"at\":0.5,\"client\":\"a\",\"prompt_tokens\":420,\"output_tokens\":64,\"prefix\":[[\"system\",400]]}
Prompts that name the same prefix begin with the same tokens; all other tokens are made up, and
differ. A table of comma-separated values has the columns at,prompt_tokens,output_tokens[,client].
Published traces are read as they are: those of Azure, BurstGPT and Mooncake.

--experiment and --server run in virtual time, with the engine's own scheduler, policies and prefix
cache. The other workloads run on the live engine, in real time. Experiments:
  vtc-overload, vtc-overload-600, vtc-8-clients, vtc-proportional, vtc-on-off, vtc-on-off-overload,
  vtc-short-long, vtc-ramp, vtc-shift, vtc-4-clients, vtc-arena, dlpm, preble-toolbench,
  preble-embodied, preble-programming, preble-video, preble-loogle, preble-mixed
They have the published seed, 42, unless another is given, and policies have the published
parameters and weights of clients, unless they are given, as in --policies dlpm:quantum=2000.

With --json: {\"workload\":\"…\",\"virtual\":BOOL,\"reports\":[{…}]}
  one report for each policy; docs/json.md describes its fields. With --workers, one for each
  routing policy and queue policy";

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

    #[command(flatten)]
    place: ServerArgs,

    #[command(flatten)]
    workers: WorkersArgs,

    /// Write the service of each client in each window, or with --workers what each of them did, as
    /// comma-separated values
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Write the times of each request as comma-separated values
    #[arg(long, value_name = "FILE", conflicts_with = "workers")]
    requests_out: Option<PathBuf>,

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

/// A workload, and where it is served.
struct Subject {
    name: String,
    requests: Vec<LoadRequest>,
    place: Place,
    measure: Measure,
    policies: Vec<Policy>,
}

/// A policy by the name that it was asked for, and with the parameters that it has.
struct Policy {
    name: String,
    choice: PolicyChoice,
}

/// Where the requests are served.
enum Place {
    Virtual(Box<Server>),
    Live,
}

/// Runs a workload under each policy and prints the reports.
pub(crate) async fn run(args: Args, session: &Session) -> Result<(), Failure> {
    for path in args.csv.iter().chain(&args.html).chain(&args.requests_out) {
        whole_file::check(path).map_err(|error| Failure::file("write", path, &error))?;
    }
    let Subject { name: workload, requests, place, measure, policies } = args.subject(session)?;
    if let Some(count) = args.workers.count() {
        let Place::Virtual(server) = place else {
            let hint =
                "--workers needs --experiment or --server: several workers run in virtual time";
            return Err(Failure::usage(hint.to_owned()));
        };
        let (server, until) = (*server, args.place.until);
        let subject = Routed { workload, requests, server, until, measure, policies };
        let reports = args.workers.reports(count, &subject)?;
        let files = Files { csv: args.csv.as_deref(), html: args.html.as_deref() };
        return workers::put(&subject, reports, files, session);
    }
    let (mut reports, mut times) = (Vec::new(), text::times_head());
    for Policy { name, choice } in policies {
        let (outcomes, stats) = match &place {
            Place::Virtual(server) => {
                let served = server.run(&requests, &choice, args.place.until);
                served.map_err(|error| Failure::usage(error.to_string()))?
            }
            Place::Live => args.live(&requests, &choice, session).await?,
        };
        if args.requests_out.is_some() {
            times.extend(text::times(&name, &outcomes));
        }
        reports.push(LoadReport::new(&name, &outcomes, &stats, &measure));
    }
    if let Some(path) = &args.requests_out {
        files::write(path, comma_separated(times).as_bytes(), session)?;
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

impl Args {
    fn policies(&self, experiment: Option<&Experiment>) -> Result<Vec<Policy>, Failure> {
        let one = self.policies.as_deref().or(self.engine.policy.as_deref());
        let names = one.unwrap_or("fcfs").split('+').flat_map(|name| match name {
            "all" => known().iter().map(|known| known.name().to_owned()).collect(),
            name => vec![name.to_owned()],
        });
        let policy = |name: String| {
            let choice = PolicyChoice::from(name.as_str());
            let choice = experiment.map_or(choice.clone(), |it| it.policy(&choice));
            let made = choice.make().map(|_| ());
            made.map_err(|error| Failure::usage(format!("--policies: {error}")))?;
            Ok(Policy { name, choice })
        };
        names.map(policy).collect()
    }

    /// The workload, and where it is served.
    fn subject(&self, session: &Session) -> Result<Subject, Failure> {
        let changed = |server| {
            Place::Virtual(Box::new(self.place.changed(server, &self.engine, &self.prefix)))
        };
        if let Some(name) = &self.experiment {
            let seed = self.workload.seed.unwrap_or(Experiment::SEED);
            let experiment = repeated(name, seed, self.workers.copies());
            let experiment = experiment.map_err(|error| Failure::usage(error.to_string()))?;
            let policies = self.policies(Some(&experiment))?;
            let Experiment { requests, server, measure, .. } = experiment;
            let (name, place) = (name.clone(), changed(server));
            return Ok(Subject { name, requests, place, measure, policies });
        }
        let policies = self.policies(None)?;
        let (name, requests) = match &self.trace {
            Some(path) => workload::read(path, self.first, session)?,
            None => self.workload.generated()?,
        };
        let place = self.place.of_file()?.map_or(Place::Live, changed);
        Ok(Subject { name, requests, place, measure: Measure::default(), policies })
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
