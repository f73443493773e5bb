//! Strategies compared: the same prompts by each of them, on the same devices, measured and
//! recorded.
//!
//! ```no_run
//! use lapwing::Engine;
//! use lapwing::compare::Compare;
//! use lapwing::devices::DeviceSpec;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let mut engine = Engine::builder().model("model.gguf");
//! for device in DeviceSpec::list("phone")? {
//!     engine = engine.device(device);
//! }
//! let compared = Compare::new(engine).lengths([135, 300, 525]).run(|_| {}).await?;
//! for length in &compared.lengths {
//!     let fastest = &length.runs[length.fastest];
//!     println!("{} tokens: {} in {:.1} ms", length.tokens, fastest.strategy, fastest.ttft_ms.median);
//! }
//! std::fs::write("strategies.html", compared.page()?)?;
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lapwing_plan::strategy::{Strategy, registry};
use lapwing_traces::{Analysis, Report, Spread, Timeline};

use crate::engine::EngineBuilder;
use crate::error::Error;

mod figures;
mod measure;
mod page;

pub use figures::Figures;

/// A comparison to be made.
#[derive(Clone)]
#[must_use]
pub struct Compare {
    builder: EngineBuilder,
    entrants: Vec<Entrant>,
    lengths: Vec<usize>,
    tokens: usize,
    repetitions: usize,
}

/// A strategy that takes part.
#[derive(Clone)]
enum Entrant {
    Named(String),
    Own(Arc<dyn Strategy>),
}

impl Entrant {
    fn name(&self) -> &str {
        match self {
            Entrant::Named(name) => name,
            Entrant::Own(own) => own.name(),
        }
    }

    fn builder(&self, builder: &EngineBuilder) -> EngineBuilder {
        match self {
            Entrant::Named(name) => builder.clone().strategy(name),
            Entrant::Own(own) => builder.clone().shared_strategy(Arc::clone(own)),
        }
    }
}

impl fmt::Debug for Compare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.entrants.iter().map(Entrant::name).collect();
        f.debug_struct("Compare")
            .field("strategies", &names)
            .field("lengths", &self.lengths)
            .finish_non_exhaustive()
    }
}

impl Compare {
    /// A comparison on engines of these settings; their strategy, context and recorder are set
    /// here. By default of every strategy that comes with Lapwing, at 135, 300 and 525 tokens, with
    /// 4 generated tokens and 3 measured repetitions.
    pub fn new(engine: EngineBuilder) -> Compare {
        Compare {
            builder: engine,
            entrants: Vec::new(),
            lengths: vec![135, 300, 525],
            tokens: 4,
            repetitions: 3,
        }
    }

    /// Adds a strategy by its name.
    pub fn strategy(mut self, name: impl Into<String>) -> Compare {
        self.entrants.push(Entrant::Named(name.into()));
        self
    }

    /// Adds one of the caller's own strategies.
    pub fn own_strategy(mut self, strategy: impl Strategy + 'static) -> Compare {
        self.entrants.push(Entrant::Own(Arc::new(strategy)));
        self
    }

    /// Adds every strategy that comes with Lapwing.
    pub fn all_strategies(mut self) -> Compare {
        let names = registry().iter().map(|known| Entrant::Named(known.name.to_owned()));
        self.entrants.extend(names);
        self
    }

    /// Lengths of the prompts, in tokens.
    pub fn lengths(mut self, lengths: impl IntoIterator<Item = usize>) -> Compare {
        self.lengths = lengths.into_iter().collect();
        self
    }

    /// Tokens generated after each prompt, at least 1.
    pub fn tokens(mut self, tokens: usize) -> Compare {
        self.tokens = tokens.max(1);
        self
    }

    /// Measured runs of each strategy at each length; one more before them is not measured, so
    /// that graphs are prepared and caches are warm.
    pub fn repetitions(mut self, repetitions: usize) -> Compare {
        self.repetitions = repetitions.max(1);
        self
    }

    /// Runs it. A strategy that these devices do not allow is left out, with the reason. One engine
    /// lives at a time; the repetitions are made in two rounds, the second in reverse order, so
    /// that what drifts with time (temperature, other programs) meets all alike. `progress` hears
    /// of every run.
    ///
    /// # Errors
    /// When no engine can be built at all, a length does not fit the model, or a run fails.
    pub async fn run(self, progress: impl FnMut(&Progress) + Send) -> Result<Comparison, Error> {
        measure::run(self, progress).await
    }
}

/// What is about to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Runs that are over, and all of them as far as it is known.
    pub done: usize,
    /// All runs.
    pub all: usize,
    /// Strategy.
    pub strategy: String,
    /// Tokens of the prompt; 0 while the engine is built.
    pub tokens: usize,
}

/// Strategies compared.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The model's file name.
    pub model: String,
    /// The devices, as text.
    pub devices: Vec<String>,
    /// Instruction set.
    pub isa: String,
    /// Tokens generated after each prompt.
    pub tokens: usize,
    /// Measured runs of each strategy at each length.
    pub repetitions: usize,
    /// Where predicted times come from.
    pub cost_source: String,
    /// By length, in the order asked for.
    pub lengths: Vec<LengthComparison>,
}

/// Strategies compared at one length.
#[derive(Clone, Debug)]
pub struct LengthComparison {
    /// Tokens of the prompt.
    pub tokens: usize,
    /// What each strategy did, in the order asked for. Not empty.
    pub runs: Vec<StrategyRun>,
    /// Strategies that these devices do not allow, and why.
    pub absent: Vec<(String, String)>,
    /// Index of the run with the shortest median time to the first token.
    pub fastest: usize,
    /// Strategy that the decider (`auto`) would take, by prediction.
    pub chosen_by_auto: Option<String>,
    /// Whether all strategies generated the same tokens; they must.
    pub same_tokens: bool,
}

/// A strategy's runs at one length.
#[derive(Clone, Debug)]
pub struct StrategyRun {
    /// Name of the strategy.
    pub strategy: String,
    /// Why it made the route of the prompt's first chunk.
    pub reason: String,
    /// Chunks of the prompt.
    pub chunks: usize,
    /// Time from submission to the first token, in ms.
    pub ttft_ms: Spread,
    /// Predicted time of the prompt, if the times of all devices in it are known: of an engine that
    /// has had its length before, as the measured runs have.
    pub predicted: Option<Duration>,
    /// The same of an engine that has no graphs yet.
    pub predicted_cold: Option<Duration>,
    /// The generated tokens, of the first repetition.
    pub ids: Vec<u32>,
    /// By how much devices ended work after their model's time, on average over the repetitions;
    /// it is part of the measured times.
    pub late: Duration,
    /// The repetition with the median time to the first token: what happened when.
    pub timeline: Timeline,
    /// Its analysis.
    pub analysis: Analysis,
    /// Its numbers.
    pub report: Report,
}
