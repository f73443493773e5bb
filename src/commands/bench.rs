//! `lapwing bench`: tokens per second, in llama-bench's manner; and strategies compared.

use std::path::PathBuf;

use lapwing::{Engine, Prompt, Request, Shutdown, Stations};
use lapwing_traces::Spread;
use lapwing_traces::metrics::rate;
use serde::Serialize;

use super::compare::{self, Wanted};
use super::failure::Failure;
use super::output::{print, print_json, visible};
use super::resolve::{model_file, open};
use super::session::Session;
use super::table::{Align, table};
use super::trace::{self, TraceArg};
use crate::cli::{EngineArgs, ModelArg, at_least_one};

const EXAMPLES: &str = "\
Examples:
  lapwing bench -m FILE.gguf -p 512 -n 128 -t 2 -r 5
  lapwing bench -m FILE.gguf -p 128,512,1024 -n 0
  lapwing bench --device phone --strategy all --length 135,300,525 --html strategies.html
  lapwing bench --device cpu+npu --strategy cpu-only,chunk-graph,row-cut --length 300

ppN: N token ids, different in each run and alone in the engine, from their admission to the first
token that follows them. tgN: generation after the begin token alone; N + 1 tokens are generated and
the N gaps between them timed; end tokens are not chosen. Every test runs once more beforehand,
unmeasured. N = 0 leaves a test out. With --trace all runs are recorded, which takes up to 1 % of
their speed.

With --length, or several names in --strategy, strategies are compared: the same prompts by each of
them on the same devices, with -r repetitions in two rounds and -n generated tokens (4 by default).
The table has the time to the first token, the makespan, the overlap of the devices, what they were
most idle by, bytes copied between them, the error of predicted waits, predicted times, and how much
this machine was later than the devices' models. --html writes all timelines onto one page.

With --json:
  {\"results\":[{\"test\":\"pp512\",\"tokens\":512,\"tokens_per_second\":{\"median\":X,\"min\":X,\"max\":X,
   \"all\":[…]}},{\"test\":\"tg128\",…}],\"model\":\"PATH\",\"model_bytes\":N,\"architecture\":\"…\",
   \"threads\":N,\"isa\":\"…\",\"chunk\":N,\"repetitions\":N}
  Strategies compared:
  {\"model\":\"…\",\"devices\":[…],\"lengths\":[{\"tokens\":N,\"fastest\":\"…\",\"chosen_by_auto\":\"…\",
   \"strategies\":[{\"strategy\":\"…\",\"ttft_ms\":X,\"makespan_ms\":X,\"overlap\":X,…}],\"absent\":[…]}],…}";

/// Options of `bench`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Prompt lengths, in tokens [default: 512]
    #[arg(short, long, value_name = "N,…", value_delimiter = ',')]
    prompt: Option<Vec<usize>>,

    /// Generated lengths, in tokens [default: 128; 4 where strategies are compared]
    #[arg(short = 'n', long, value_name = "N,…", value_delimiter = ',')]
    generate: Option<Vec<usize>>,

    /// Measured runs of each test [default: 5; 3 where strategies are compared]
    #[arg(short, long, value_name = "R", value_parser = at_least_one)]
    repetitions: Option<usize>,

    /// Compare strategies (those of --strategy, or all) at these prompt lengths [default: 135,300,525]
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        value_parser = at_least_one,
        conflicts_with_all = ["prompt", "trace"]
    )]
    length: Option<Vec<usize>>,

    /// Write the compared timelines onto one page for the browser
    #[arg(long, value_name = "OUT")]
    html: Option<PathBuf>,

    #[command(flatten)]
    trace: TraceArg,

    #[command(flatten)]
    model: ModelArg,
    #[command(flatten)]
    engine: EngineArgs,
}

/// One thing to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Test {
    Prompt(usize),
    Generate(usize),
}

#[derive(Debug, Serialize)]
struct Report {
    results: Vec<Measured>,
    model: String,
    model_bytes: u64,
    architecture: String,
    threads: usize,
    isa: String,
    chunk: usize,
    repetitions: usize,
}

#[derive(Debug, Serialize)]
struct Measured {
    test: String,
    tokens: usize,
    tokens_per_second: Speeds,
}

#[derive(Debug, Serialize)]
struct Speeds {
    median: f64,
    min: f64,
    max: f64,
    all: Vec<f64>,
}

/// Measures and prints.
pub(crate) async fn run(args: Args, session: &Session) -> Result<(), Failure> {
    if let Some(wanted) = args.comparison()? {
        return compare::run(wanted, session).await;
    }
    let repetitions = args.repetitions.unwrap_or(5);
    args.engine.check()?;
    args.trace.check()?;
    let tests = tests(&args);
    let Some(longest) = tests.iter().map(|test| test.context()).max() else {
        return Err(Failure::usage("there is nothing to measure: -p and -n are 0"));
    };
    let path = model_file(&args.model.model, session).await?;
    let model_bytes = std::fs::metadata(&path).map_or(0, |data| data.len());
    let mut builder = args.engine.builder(path)?.context(longest);
    if args.trace.trace.is_some() {
        builder = builder.recorder(trace::recorder());
    }
    let engine = open(builder).await?;
    let bar = session.bar("{msg:.bold} {bar:40.cyan/dim} {pos}/{len} runs");
    if let Some(bar) = &bar {
        bar.set_length((tests.len() * (repetitions + 1)) as u64);
    }
    let results = {
        let measuring = measure(tests, repetitions, &engine, bar.as_ref(), session);
        if args.trace.trace.is_none() {
            Some(measuring.await?)
        } else {
            // Ctrl-C ends the process, but not before what was recorded is written.
            let claim = session.interrupts.claim();
            tokio::select! {
                biased;
                () = claim.interrupted() => None,
                results = measuring => Some(results?),
            }
        }
    };
    if results.is_none() {
        session.restore_after_interrupt();
    }
    bar.iter().for_each(indicatif::ProgressBar::finish_and_clear);
    engine.shutdown(Shutdown::Drain).await?;
    args.trace.save(|| engine.recorder().recording(), session)?;
    let results = results.ok_or(Failure::Interrupted)?;
    let report = Report {
        results,
        model: engine.model_path().display().to_string(),
        model_bytes,
        architecture: engine.model().arch.name.to_owned(),
        threads: args.engine.thread_count(),
        isa: args.engine.isa_name(),
        chunk: engine.chunk_rows(),
        repetitions,
    };
    if session.json { print_json(&report) } else { print_table(&report) }
}

/// Runs every test, once more than measured.
async fn measure(
    tests: Vec<Test>,
    repetitions: usize,
    engine: &Engine,
    bar: Option<&indicatif::ProgressBar>,
    session: &Session,
) -> Result<Vec<Measured>, Failure> {
    let mut results = Vec::new();
    for test in tests {
        let mut speeds = Vec::new();
        match bar {
            Some(bar) => bar.set_message(test.name()),
            None => session.note(&format!("measuring {}", test.name())),
        }
        for repetition in 0..=repetitions {
            bar.iter().for_each(|bar| bar.tick());
            let speed = test.measure(engine, repetition as u64).await?;
            speeds.extend((repetition > 0).then_some(speed));
            bar.iter().for_each(|bar| bar.inc(1));
        }
        results.push(measured(test, speeds)?);
    }
    Ok(results)
}

fn tests(args: &Args) -> Vec<Test> {
    let prompts = args.prompt.as_deref().unwrap_or(&[512]).iter().filter(|n| **n > 0);
    let generated = args.generate.as_deref().unwrap_or(&[128]).iter().filter(|n| **n > 0);
    let generated = generated.map(|n| Test::Generate(*n));
    prompts.map(|n| Test::Prompt(*n)).chain(generated).collect()
}

impl Args {
    /// The comparison that is asked for, if one is.
    fn comparison(&self) -> Result<Option<Wanted<'_>>, Failure> {
        let strategies = self.engine.devices.strategy.as_deref();
        let several = strategies.is_some_and(|names| names.contains(',') || names == "all");
        if self.length.is_none() && !several {
            return match self.html {
                Some(_) => Err(Failure::usage(
                    "--html shows strategies side by side: add --length N,… or --strategy all",
                )),
                None => Ok(None),
            };
        }
        if self.prompt.is_some() || self.trace.trace.is_some() {
            let what = if self.prompt.is_some() { "-p" } else { "--trace" };
            let other = if self.prompt.is_some() { "--length" } else { "--html" };
            return Err(Failure::usage(format!(
                "{what} is not for strategies that are compared: use {other}"
            )));
        }
        let tokens = match self.generate.as_deref() {
            None => 4,
            Some([tokens]) if *tokens > 0 => *tokens,
            Some(_) => {
                return Err(Failure::usage(
                    "-n must be one number of at least 1 where strategies are compared",
                ));
            }
        };
        self.engine.check_but_strategy()?;
        Ok(Some(Wanted {
            model: &self.model.model,
            engine: &self.engine,
            strategies: strategies.unwrap_or("all"),
            lengths: self.length.clone().unwrap_or_else(|| compare::LENGTHS.to_vec()),
            tokens,
            repetitions: self.repetitions.unwrap_or(3),
            html: self.html.clone(),
        }))
    }
}

impl Test {
    fn name(self) -> String {
        match self {
            Test::Prompt(tokens) => format!("pp{tokens}"),
            Test::Generate(tokens) => format!("tg{tokens}"),
        }
    }

    fn tokens(self) -> usize {
        match self {
            Test::Prompt(tokens) | Test::Generate(tokens) => tokens,
        }
    }

    /// Tokens of context that it needs.
    fn context(self) -> usize {
        match self {
            Test::Prompt(tokens) => tokens.saturating_add(1),
            Test::Generate(tokens) => tokens.saturating_add(2),
        }
    }

    /// Tokens per second of one run.
    async fn measure(self, engine: &Engine, repetition: u64) -> Result<f64, Failure> {
        let bos = engine.tokenizer().bos().unwrap_or(0);
        match self {
            Test::Prompt(tokens) => {
                let ids = prompt_ids(engine, tokens, repetition);
                let stations = stations(engine, ids, 1).await?;
                Ok(rate(tokens, stations.prefill()))
            }
            Test::Generate(tokens) => {
                let stations = stations(engine, vec![bos], tokens + 1).await?;
                Ok(rate(tokens, stations.decode()))
            }
        }
    }
}

/// Begin token, if the model wants it, and ids spread over the vocabulary.
fn prompt_ids(engine: &Engine, count: usize, seed: u64) -> Vec<u32> {
    let tokenizer = engine.tokenizer();
    let vocab = tokenizer.vocab_size().max(1) as u64;
    let bos = tokenizer.bos().filter(|_| tokenizer.adds_bos());
    // Weyl sequence, its high bits mixed down: repeatable, and no two runs have the same prompt.
    let id = |i: u64| {
        let x = (seed << 32 | i).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((x ^ x >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 16) % vocab
    };
    let spread = (0..count as u64).map(|i| id(i) as u32);
    bos.into_iter().chain(spread).take(count).collect()
}

async fn stations(engine: &Engine, ids: Vec<u32>, tokens: usize) -> Result<Stations, Failure> {
    let request = Request::new(Prompt::Ids(ids)).greedy().ignore_eos().max_tokens(tokens);
    let mut stream = engine.generate(request).await?;
    while let Some(token) = stream.next().await {
        token?;
    }
    match stream.summary() {
        Some(summary) if summary.stations.generated_tokens == tokens => Ok(summary.stations),
        _ => Err(Failure::failed(format!("the engine did not generate {tokens} tokens"))),
    }
}

fn measured(test: Test, all: Vec<f64>) -> Result<Measured, Failure> {
    let spread = Spread::of(&all).ok_or_else(|| {
        Failure::failed(format!("{} took no time that could be measured", test.name()))
    })?;
    Ok(Measured {
        test: test.name(),
        tokens: test.tokens(),
        tokens_per_second: Speeds { median: spread.median, min: spread.min, max: spread.max, all },
    })
}

fn print_table(report: &Report) -> Result<(), Failure> {
    let rows = report.results.iter().map(|result| {
        let speed = &result.tokens_per_second;
        let [median, min, max] =
            [speed.median, speed.min, speed.max].map(|speed| format!("{speed:.2}"));
        [result.test.clone(), median, min, max]
    });
    let header = [
        ("test", Align::Left),
        ("tok/s (median)", Align::Right),
        ("min", Align::Right),
        ("max", Align::Right),
    ];
    print(&format!(
        "{}\n{}, {}, {} threads, {}, {} runs\n\n{}",
        visible(&report.model),
        report.architecture,
        indicatif::HumanBytes(report.model_bytes),
        report.threads,
        report.isa,
        report.repetitions,
        table(header, rows.collect())
    ))
}
