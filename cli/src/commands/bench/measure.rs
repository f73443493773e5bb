//! Tests of this engine: prompts and generations, each alone in the engine.

use std::fmt;
use std::time::Duration;

use lapwing_engine::Engine;
use lapwing_traces::metrics::rate;

use super::Measurement;
use super::drafts::{Pair, Pairs};
use super::report::{Figures, Measured};
use super::subject::Subject;
use crate::cli::failure::Failure;
use crate::cli::session::Session;

/// A test: a number of tokens after `depth` tokens of context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Test {
    pub(super) kind: Kind,
    pub(super) tokens: usize,
    pub(super) depth: usize,
}

/// The kind of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A prompt.
    Prompt,
    /// Generation.
    Generate,
}

impl Kind {
    /// Prefix of the test's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Prompt => "pp",
            Kind::Generate => "tg",
        }
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.kind.name(), self.tokens)?;
        if self.depth > 0 { write!(f, "@d{}", self.depth) } else { Ok(()) }
    }
}

/// Runs every test. With a drafter, generations are compared with and without drafts.
pub(super) async fn measure(
    measurement: &Measurement<'_>,
    subject: &mut Subject,
    bar: Option<&indicatif::ProgressBar>,
    session: &Session,
) -> Result<Vec<Measured>, Failure> {
    let drafter = subject.engine()?.draft().to_owned();
    let drafter = Some(&*drafter).filter(|name| *name != "none");
    let mut results = Vec::new();
    let unmeasured = usize::from(measurement.warm_up);
    for test in &measurement.tests {
        let (mut speeds, mut readings, mut pairs) = (Vec::new(), Vec::new(), Pairs::default());
        let reading = match &measurement.reader {
            Some(reader) => reader.of(*test).await?,
            None => None,
        };
        match bar {
            Some(bar) => bar.set_message(test.to_string()),
            None => session.note(&format!("measuring {test}")),
        }
        let is_new = test.needs_new_engines(subject.engine()?)?;
        if is_new {
            session.note(&format!("{test} prepares its graphs, so each run has a new engine"));
        }
        for run in 0..unmeasured + measurement.repetitions {
            bar.iter().for_each(|bar| bar.tick());
            let is_measured = run >= unmeasured;
            // A new engine warms up itself.
            if is_new && !is_measured {
                bar.iter().for_each(|bar| bar.inc(1));
                continue;
            }
            let reading = reading.as_ref().filter(|_| is_measured);
            let before = match reading {
                Some(reading) => Some(reading.speed().await?),
                None => None,
            };
            let speed = match drafter.filter(|_| test.kind == Kind::Generate) {
                Some(_) => {
                    let ids = test.prompt(subject, run as u64)?;
                    let pair = Pair::measure(subject, ids, test.tokens, run % 2 == 0).await?;
                    let speed = pair.with;
                    pairs.extend(is_measured.then_some(pair));
                    speed
                }
                None => test.speed(subject, run as u64).await?,
            };
            if let (Some(before), Some(reading)) = (before, reading) {
                readings.push(before.midpoint(reading.speed().await?));
            }
            speeds.extend(is_measured.then_some(speed));
            if !is_measured {
                test.warm(subject).await?;
            }
            bar.iter().for_each(|bar| bar.inc(1));
        }
        let draft = drafter.and_then(|drafter| pairs.report(drafter));
        let measured = Measured::new(test, speeds)?;
        results.push(Measured { reading: Figures::of(readings), draft, ..measured });
    }
    Ok(results)
}

impl Measured {
    /// Speeds of a test in tokens per second, in the order of measurement.
    pub(super) fn new(test: &Test, speeds: Vec<f64>) -> Result<Measured, Failure> {
        let figures = Figures::of(speeds)
            .ok_or_else(|| Failure::failed(format!("{test} took no measurable time")))?;
        Ok(Measured {
            test: test.to_string(),
            tokens: test.tokens,
            depth: test.depth,
            tokens_per_second: figures,
            reading: None,
            draft: None,
        })
    }
}

/// Most further runs of a test to warm up.
const WARM_UPS_MAX: u64 = 3;

/// Maximum attempts to measure a prompt after a context, whose time is a difference and may not be
/// positive.
const DIFFERENCE_TRIES: usize = 5;

impl Test {
    /// Tokens of context that the test needs.
    pub(super) fn context(self) -> usize {
        let more = match self.kind {
            Kind::Prompt => 1,
            Kind::Generate => 2,
        };
        self.depth.saturating_add(self.tokens).saturating_add(more)
    }

    /// Whether a run prepares graphs, which only a new engine does again.
    fn needs_new_engines(self, engine: &Engine) -> Result<bool, Failure> {
        let prompt = self.depth.saturating_add(self.tokens);
        Ok(self.kind == Kind::Prompt && engine.prepares_on_the_spot(prompt)?)
    }

    /// Runs it until its chunks lack no graphs of any route.
    async fn warm(self, subject: &mut Subject) -> Result<(), Failure> {
        for again in 0..WARM_UPS_MAX {
            if !subject.engine()?.graphs_made().await? {
                break;
            }
            self.speed(subject, u64::MAX - again).await?;
        }
        Ok(())
    }

    /// Speed of one run, in tokens per second.
    async fn speed(self, subject: &mut Subject, run: u64) -> Result<f64, Failure> {
        let Test { kind, tokens, depth } = self;
        match (kind, depth) {
            (Kind::Prompt, 0) => {
                let ids = prompt_ids(subject.engine()?, tokens, run);
                Ok(rate(tokens, subject.prefill(ids).await?))
            }
            (Kind::Prompt, _) => {
                let whole = prompt_ids(subject.engine()?, depth + tokens, run);
                let mut before = Duration::MAX;
                for _ in 0..DIFFERENCE_TRIES {
                    let after = subject.prefill(whole.clone()).await?;
                    // Other programs only make it longer.
                    before = before.min(subject.prefill(whole[..depth].to_vec()).await?);
                    if let Some(time) = after.checked_sub(before).filter(|time| !time.is_zero()) {
                        return Ok(rate(tokens, time));
                    }
                }
                Err(Failure::failed(format!(
                    "{self}: {} tokens took no longer than {depth}, {DIFFERENCE_TRIES} times in a row; \
                     measure more tokens, or free the machine from other work",
                    depth + tokens
                )))
            }
            (Kind::Generate, _) => {
                let ids = self.prompt(subject, run)?;
                Ok(rate(tokens, subject.times(ids, tokens + 1).await?.decode()))
            }
        }
    }

    /// The prompt of a generation.
    fn prompt(self, subject: &Subject, run: u64) -> Result<Vec<u32>, Failure> {
        let engine = subject.engine()?;
        Ok(match self.depth {
            0 => vec![engine.tokenizer().bos().unwrap_or(0)],
            depth => prompt_ids(engine, depth, run),
        })
    }
}

/// The begin token, if the model uses one, and ids spread over the vocabulary.
fn prompt_ids(engine: &Engine, count: usize, seed: u64) -> Vec<u32> {
    let tokenizer = engine.tokenizer();
    let vocab = tokenizer.vocab_size().max(1) as u64;
    let bos = tokenizer.bos().filter(|_| tokenizer.adds_bos());
    // Weyl sequence with its high bits mixed down: repeatable, with a different prompt in each run.
    let id = |i: u64| {
        let x = (seed << 32 | i).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((x ^ x >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 16) % vocab
    };
    let spread = (0..count as u64).map(|i| id(i) as u32);
    bos.into_iter().chain(spread).take(count).collect()
}
