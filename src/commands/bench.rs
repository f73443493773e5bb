//! `lapwing bench`: tokens per second, in llama-bench's manner.

use lapwing::{Engine, Prompt, Request, Shutdown, Stations};
use lapwing_traces::Spread;
use lapwing_traces::metrics::rate;
use serde::Serialize;

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

ppN: N token ids, different in each run and alone in the engine, from their admission to the first
token that follows them. tgN: generation after the begin token alone; N + 1 tokens are generated and
the N gaps between them timed; end tokens are not chosen. Every test runs once more beforehand,
unmeasured. N = 0 leaves a test out. With --trace all runs are recorded, which takes up to 1 % of
their speed.

With --json:
  {\"results\":[{\"test\":\"pp512\",\"tokens\":512,\"tokens_per_second\":{\"median\":X,\"min\":X,\"max\":X,
   \"all\":[…]}},{\"test\":\"tg128\",…}],\"model\":\"PATH\",\"model_bytes\":N,\"architecture\":\"…\",
   \"threads\":N,\"isa\":\"…\",\"chunk\":N,\"repetitions\":N}";

/// Options of `bench`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Prompt lengths, in tokens
    #[arg(short, long, value_name = "N,…", value_delimiter = ',', default_value = "512")]
    prompt: Vec<usize>,

    /// Generated lengths, in tokens
    #[arg(short = 'n', long, value_name = "N,…", value_delimiter = ',', default_value = "128")]
    generate: Vec<usize>,

    /// Measured runs of each test
    #[arg(short, long, value_name = "R", default_value_t = 5, value_parser = at_least_one)]
    repetitions: usize,

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
        bar.set_length((tests.len() * (args.repetitions + 1)) as u64);
    }
    let results = {
        let measuring = measure(tests, args.repetitions, &engine, bar.as_ref(), session);
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
        chunk: args.engine.chunk.unwrap_or(512),
        repetitions: args.repetitions,
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
    let prompts = args.prompt.iter().filter(|n| **n > 0).map(|n| Test::Prompt(*n));
    let generated = args.generate.iter().filter(|n| **n > 0).map(|n| Test::Generate(*n));
    prompts.chain(generated).collect()
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
