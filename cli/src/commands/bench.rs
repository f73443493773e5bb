//! `lapwing bench`: tokens per second, counted as in llama-bench; comparison with other engines; and
//! comparison of strategies.

use std::path::{Path, PathBuf};

use lapwing_engine::draft::DraftChoice;

use crate::cli::draft::DraftArg;
use crate::cli::failure::Failure;
use crate::cli::resolve::model_file;
use crate::cli::session::Session;
use crate::cli::trace::TraceArg;
use crate::cli::{EngineArgs, ModelArg, at_least_one};
use help::EXAMPLES;
use measure::{Kind, Test};
use peer::Peer;
use reading::Reader;
use report::Record;

mod against;
mod alone;
mod compare;
mod drafts;
mod help;
mod measure;
mod pairs;
mod peer;
pub(super) mod progress;
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

    /// Accept each drafted token with this probability, whatever the model would choose: the speed of --draft at an acceptance of
    /// choice, also with random weights
    #[arg(long, value_name = "RATE", conflicts_with = "vs")]
    acceptance: Option<f32>,

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

    /// Predict from this profile, or from the one in a report [default: the stored one of these devices]
    #[arg(long, value_name = "FILE.json", conflicts_with = "vs")]
    profile: Option<PathBuf>,

    #[command(flatten)]
    trace: TraceArg,

    #[command(flatten)]
    model: ModelArg,
    #[command(flatten)]
    engine: EngineArgs,
}

/// What is measured, and with what it is compared.
#[derive(Debug)]
struct Measurement<'a> {
    model: PathBuf,
    engine: &'a EngineArgs,
    tests: Vec<Test>,
    /// Measured runs of each test, or pairs of processes.
    repetitions: usize,
    /// Whether each test has a warm-up run.
    warm_up: bool,
    /// Measures in this process how fast the same bytes can be read, if requested.
    reader: Option<Reader>,
    /// Other engines. With some, each repetition is a process of its own.
    peers: &'a [Peer],
    /// Probability with which drafted tokens are accepted; `None` if the model chooses.
    acceptance: Option<f32>,
    save: Option<&'a Path>,
    profile: Option<&'a Path>,
    against: Option<Record>,
}

/// Measures and prints.
pub(crate) async fn run(mut args: Args, session: &Session) -> Result<(), Failure> {
    // Speeds are those of the model itself unless a drafter is given.
    let drafter = args.engine.draft.get_or_insert_with(|| DraftArg(DraftChoice::none()));
    let has_drafter = drafter.0.name() != DraftChoice::none().name();
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
    if args.acceptance.is_some() && !has_drafter {
        return Err(Failure::usage("--acceptance is that of drafted tokens: add --draft DRAFTER"));
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
    let against = args.against.as_deref().map(stored::load).transpose()?;
    let model = model_file(&args.model.model, session).await?;
    let reader = args.reading.then(|| Reader::new(&args.engine, &model)).transpose()?;
    let measurement = Measurement {
        model,
        engine: &args.engine,
        tests,
        repetitions: args.repetitions.unwrap_or(5),
        warm_up: !args.no_warmup,
        reader,
        peers: &args.vs,
        acceptance: args.acceptance,
        save: args.output.as_deref(),
        profile: args.profile.as_deref(),
        against,
    };
    match args.vs.is_empty() {
        true => alone::run(measurement, &args.trace, session).await,
        false => pairs::run(measurement, session).await,
    }
}

impl Args {
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
