//! `lapwing bench`: tokens per second, counted as in llama-bench; comparison with other engines; and
//! comparison of strategies.

use std::path::PathBuf;

use serde::Serialize;

use crate::cli::attention::AttentionChanges;
use crate::cli::failure::Failure;
use crate::cli::output::print_json;
use crate::cli::requant::RequantReport;
use crate::cli::resolve::model_file;
use crate::cli::session::Session;
use crate::cli::signals::Signal;
use crate::cli::trace::{self, TraceArg};
use crate::cli::{EngineArgs, ModelArg, at_least_one};
use against::Against;
use help::EXAMPLES;
use measure::{Kind, Runs, Test};
use peer::Peer;
use reading::Reader;
use report::{EngineRuns, Measured, Record};
use stored::RunSettings;
use subject::Subject;

mod against;
mod child;
mod compare;
mod drafts;
mod help;
mod measure;
mod pairs;
mod peer;
mod progress;
mod ratios;
mod reading;
mod report;
mod stored;
mod strategies;
mod subject;
mod text;

/// Options of `bench`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Prompt lengths, in tokens [default: 512; 135,300,525 when strategies are compared]
    #[arg(short, long, alias = "prompt", value_name = "N,…", value_delimiter = ',')]
    prompt_tokens: Option<Vec<usize>>,

    /// Generated lengths, in tokens [default: 128; 4 when strategies are compared]
    #[arg(short = 'n', long, alias = "generate", value_name = "N,…", value_delimiter = ',')]
    max_tokens: Option<Vec<usize>>,

    /// Tokens of context before each prompt and each generation [default: 0]
    #[arg(short, long, value_name = "N,…", value_delimiter = ',')]
    depth: Option<Vec<usize>>,

    /// Measured runs of each test; with --vs, pairs of processes [default: 5; 3 when strategies are
    /// compared]
    #[arg(short, long, value_name = "R", value_parser = at_least_one)]
    repetitions: Option<usize>,

    /// Skip the warm-up run before each test
    #[arg(long)]
    no_warmup: bool,

    /// Also measure how fast the bytes that each generated token reads can be read without computing
    #[arg(long, conflicts_with = "trace")]
    reading: bool,

    /// Compare with another engine, run by run: llama.cpp or openvino, with the program that runs it
    /// (llama-bench, a Python) if it is not found automatically; may be repeated
    #[arg(long, value_name = "NAME[=PROGRAM]", conflicts_with = "trace")]
    vs: Vec<Peer>,

    /// Write all samples, with machine and date, to FILE
    #[arg(short, long, alias = "save", value_name = "FILE.json")]
    output: Option<PathBuf>,

    /// Compare with a saved run
    #[arg(long, value_name = "FILE.json")]
    against: Option<PathBuf>,

    /// As -p, and also compares strategies: those of --strategy, or all
    #[arg(
        long,
        hide = true,
        value_name = "N,…",
        value_delimiter = ',',
        conflicts_with_all = ["prompt_tokens", "trace"]
    )]
    length: Option<Vec<usize>>,

    /// Compare strategies quickly: one measured run of each, at one length [default: 135]
    #[arg(long, conflicts_with_all = ["repetitions", "trace"])]
    quick: bool,

    /// Compare strategies (those of --strategy), and write their timelines to an HTML page
    #[arg(long, value_name = "FILE.html")]
    html: Option<PathBuf>,

    #[command(flatten)]
    trace: TraceArg,

    #[command(flatten)]
    model: ModelArg,
    #[command(flatten)]
    engine: EngineArgs,
}

#[derive(Debug, Serialize)]
struct Report {
    results: Vec<Measured>,
    model: String,
    model_bytes: u64,
    architecture: String,
    threads: usize,
    /// The cores that the threads are pinned to.
    cores: Option<String>,
    isa: String,
    /// Kernels of the OpenCL devices that compute, and whether nothing else computes.
    #[serde(skip)]
    opencl: (Vec<String>, bool),
    kv: &'static str,
    activations: &'static str,
    requant: Option<RequantReport>,
    #[serde(flatten)]
    attention: AttentionChanges,
    chunk: usize,
    repetitions: usize,
    /// Maximum resident memory of the process, if the system reports it and nothing else was read.
    peak_resident_bytes: Option<u64>,
    against: Option<Against>,
}

/// Measures and prints.
pub(crate) async fn run(args: Args, session: &Session) -> Result<(), Failure> {
    if let Some(options) = args.comparison(session)? {
        return compare::run(options, session).await;
    }
    args.engine.check(session)?;
    args.trace.check()?;
    let tests = args.tests();
    if tests.is_empty() {
        return Err(Failure::usage("nothing to measure: -p and -n are 0"));
    }
    if args.reading && tests.iter().all(|test| test.kind == Kind::Prompt) {
        return Err(Failure::usage("--reading needs a generation, but -n is 0"));
    }
    if !args.vs.is_empty() && args.engine.cores.is_some() {
        return Err(Failure::usage(
            "--vs cannot pin the other engine to --cores; pin both with: taskset -c CORES lapwing bench …",
        ));
    }
    if let Some(peer) = peer::twice(&args.vs) {
        return Err(Failure::usage(format!(
            "--vs {0} is given twice; measure one with -o FILE and the other with --against FILE",
            peer.name()
        )));
    }
    args.output.as_deref().map_or(Ok(()), stored::check)?;
    let kept = args.against.as_deref().map(stored::load).transpose()?;
    let path = model_file(&args.model.model, session).await?;
    let reader = if args.reading { Some(Reader::new(&args.engine, &path)?) } else { None };
    if args.vs.is_empty() {
        return alone(&args, (path, tests, kept), reader, session).await;
    }
    let options = pairs::PairOptions {
        model: path,
        engine: &args.engine,
        peers: &args.vs,
        tests,
        pairs: args.repetitions(),
        warm_up: !args.no_warmup,
        reader,
        save: args.output.as_deref(),
        against: kept,
    };
    pairs::run(options, session).await
}

/// Measures this engine in this process.
async fn alone(
    args: &Args,
    (path, tests, kept): (PathBuf, Vec<Test>, Option<Record>),
    reader: Option<Reader>,
    session: &Session,
) -> Result<(), Failure> {
    let longest = tests.iter().map(|test| test.context()).max().unwrap_or(1);
    // Random prompts that run one after another cannot share anything.
    let mut builder = args.engine.builder(path.clone())?.context(longest).cache_tokens(longest);
    if args.trace.trace.is_some() {
        builder = builder.recorder(trace::recorder());
    }
    let mut subject = Subject::open(builder, !args.no_warmup, session).await?;
    let results = measured(args, &tests, &mut subject, reader.as_ref(), session).await?;
    let engine = subject.engine()?;
    let mut report = Report {
        results,
        model: engine.model_path().display().to_string(),
        model_bytes: std::fs::metadata(&path).map_or(0, |data| data.len()),
        architecture: engine.model().arch.name().to_owned(),
        threads: args.engine.thread_count(),
        cores: args.engine.cores.as_ref().map(ToString::to_string),
        isa: args.engine.isa_name(),
        opencl: text::opencl_kernels(engine.placement()),
        kv: args.engine.kv.name(),
        activations: args.engine.activations().name(),
        requant: engine.requantized().map(RequantReport::of),
        attention: AttentionChanges::of(engine),
        chunk: engine.chunk_rows(),
        repetitions: args.repetitions(),
        // It would include the memory that was read.
        peak_resident_bytes: match args.reading {
            true => None,
            false => child::resident_peak(std::process::id()),
        },
        against: None,
    };
    if args.output.is_some() || kept.is_some() {
        let ours = EngineRuns {
            name: pairs::OURS.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            results: report.results.clone(),
            peak_bytes: None,
            one_token_ms: None,
        };
        let record = RunSettings {
            model: &path,
            engine: &args.engine,
            warm_up: !args.no_warmup,
            processes: false,
        }
        .record(vec![ours])?;
        if let Some(path) = &args.output {
            stored::save(&record, path, session)?;
        }
        report.against = kept.as_ref().map(|kept| against::compare(&record, kept, session));
    }
    if session.json { print_json(&report) } else { text::print_own(&report) }
}

/// Runs the tests, ends the engine, and saves the recording.
async fn measured(
    args: &Args,
    tests: &[Test],
    subject: &mut Subject,
    reader: Option<&Reader>,
    session: &Session,
) -> Result<Vec<Measured>, Failure> {
    let name = args.engine.draft.0.name().to_owned();
    let drafter = (name != "none").then_some(&*name);
    let runs = Runs { repetitions: args.repetitions(), drafter, warm_up: !args.no_warmup };
    let bar = session.bar("{msg:.bold} {bar:40.cyan/dim} {pos}/{len} runs");
    if let Some(bar) = &bar {
        let each = runs.repetitions + usize::from(runs.warm_up);
        bar.set_length((tests.len() * each) as u64);
    }
    let mut received = Signal::Interrupt;
    let recorder = subject.engine()?.recorder().clone();
    let results = {
        let measuring = measure::measure(tests, runs, (subject, reader), bar.as_ref(), session);
        if args.trace.trace.is_none() {
            Some(measuring.await?)
        } else {
            // A signal ends the process after the recording is saved.
            let claim = session.interrupts.claim();
            tokio::select! {
                biased;
                signal = claim.interrupted() => {
                    received = signal;
                    None
                }
                results = measuring => Some(results?),
            }
        }
    };
    if results.is_none() {
        session.restore_after_interrupt();
    }
    bar.iter().for_each(indicatif::ProgressBar::finish_and_clear);
    subject.shutdown().await?;
    args.trace.save(|| recorder.recording(), session)?;
    results.ok_or(Failure::Interrupted(received))
}

impl Args {
    fn repetitions(&self) -> usize {
        self.repetitions.unwrap_or(5)
    }

    /// All tests: every prompt and every generation at every depth.
    fn tests(&self) -> Vec<Test> {
        let of = |kind, tokens: &Option<Vec<usize>>, default| {
            let tokens = tokens.clone().unwrap_or_else(|| vec![default]);
            tokens.into_iter().filter(|tokens| *tokens > 0).map(move |tokens| (kind, tokens))
        };
        let all = || {
            let prompts = of(Kind::Prompt, &self.prompt_tokens, 512);
            prompts.chain(of(Kind::Generate, &self.max_tokens, 128))
        };
        let depths = self.depth.clone().unwrap_or_else(|| vec![0]);
        let at = |depth| all().map(move |(kind, tokens)| Test { kind, tokens, depth });
        depths.into_iter().flat_map(at).collect()
    }
}
