//! Compares strategies: measures and records the same prompts with each of them, on the same
//! devices.
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

use lapwing_kernels::device::DeviceInfo;
use lapwing_plan::strategy::Strategy;
use lapwing_traces::{Analysis, Clock, OsClock, Report, Spread, Timeline};

use lapwing_engine::EngineBuilder;
use lapwing_engine::error::Error;

mod estimate;
mod figures;
mod measure;
mod page;
mod request;

pub use figures::{Figures, IdleFigure};

/// A comparison to be run.
#[derive(Clone)]
#[must_use]
pub struct Compare {
    builder: EngineBuilder,
    candidates: Vec<Candidate>,
    lengths: Vec<usize>,
    tokens: usize,
    repetitions: usize,
    clock: Arc<dyn Clock>,
}

/// A strategy that is compared.
#[derive(Clone)]
enum Candidate {
    Named(String),
    Own(Arc<dyn Strategy>),
}

impl Candidate {
    fn name(&self) -> &str {
        match self {
            Candidate::Named(name) => name,
            Candidate::Own(own) => own.name(),
        }
    }

    fn builder(&self, builder: &EngineBuilder) -> EngineBuilder {
        match self {
            Candidate::Named(name) => builder.clone().strategy(name),
            Candidate::Own(own) => builder.clone().shared_strategy(Arc::clone(own)),
        }
    }
}

impl fmt::Debug for Compare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.candidates.iter().map(Candidate::name).collect();
        f.debug_struct("Compare")
            .field("strategies", &names)
            .field("lengths", &self.lengths)
            .finish_non_exhaustive()
    }
}

impl Compare {
    /// A comparison on engines with these settings, except for strategy, context, recorder and
    /// prefix cache, which are set by the comparison. By default it compares all strategies that these settings know by name
    /// at 135, 300 and 525 tokens, with 4 generated tokens and 3 measured repetitions.
    pub fn new(engine: EngineBuilder) -> Compare {
        Compare {
            builder: engine.prefix_cache(false),
            candidates: Vec::new(),
            lengths: vec![135, 300, 525],
            tokens: 4,
            repetitions: 3,
            clock: Arc::new(OsClock::start()),
        }
    }

    /// Adds a strategy by name, with or without parameters, one of those that the engine's settings know
    /// ([`EngineBuilder::strategies`](lapwing_engine::EngineBuilder::strategies)).
    pub fn strategy(mut self, name: impl Into<String>) -> Compare {
        self.candidates.push(Candidate::Named(name.into()));
        self
    }

    /// Adds a strategy of the caller's own.
    pub fn own_strategy(mut self, strategy: impl Strategy + 'static) -> Compare {
        self.candidates.push(Candidate::Own(Arc::new(strategy)));
        self
    }

    /// Adds all strategies that the engine's settings know by name.
    pub fn all_strategies(mut self) -> Compare {
        let known = self.builder.known_strategies().entries().iter();
        self.candidates.extend(known.map(|entry| Candidate::Named(entry.name().to_owned())));
        self
    }

    /// Sets the lengths of the prompts, in tokens.
    pub fn lengths(mut self, lengths: impl IntoIterator<Item = usize>) -> Compare {
        self.lengths = lengths.into_iter().collect();
        self
    }

    /// Sets the number of tokens generated after each prompt, at least 1.
    pub fn tokens(mut self, tokens: usize) -> Compare {
        self.tokens = tokens.max(1);
        self
    }

    /// Sets the number of measured runs of each strategy at each length. One more run before them is
    /// not measured; it prepares graphs and warms caches. A strategy that prepares graphs on the spot
    /// is measured in a new engine each time, so that its times include the preparation.
    pub fn repetitions(mut self, repetitions: usize) -> Compare {
        self.repetitions = repetitions.max(1);
        self
    }

    /// Sets the clock of the recordings; by default it is the machine's monotonic clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Compare {
        self.clock = clock;
        self
    }

    /// Runs the comparison. A strategy that is impossible on these devices is left out, with the
    /// reason. One engine exists at a time. The repetitions are split into two rounds, the second in
    /// reverse order, so that drift (temperature, other programs) affects all strategies alike.
    /// `progress` is called before each run.
    ///
    /// # Errors
    /// When no engine can be built, a length does not fit the model, or a run fails.
    pub async fn run(self, progress: impl FnMut(&Progress) + Send) -> Result<Comparison, Error> {
        measure::run(self, progress).await
    }
}

/// A run that is about to start.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Number of finished runs.
    pub done: usize,
    /// Number of all runs, as far as known.
    pub all: usize,
    /// Strategy.
    pub strategy: String,
    /// Tokens of the prompt; 0 while the engine is being built.
    pub tokens: usize,
    /// Estimated time until the end of the comparison; `None` before the first engine is built, and if no
    /// times can be predicted.
    pub left: Option<Duration>,
}

/// The results of a comparison.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Comparison {
    /// The model's file name.
    pub model: String,
    /// The devices, as text.
    pub devices: Vec<String>,
    /// What planners know of each device.
    pub infos: Vec<DeviceInfo>,
    /// Instruction set.
    pub isa: String,
    /// Tokens generated after each prompt.
    pub tokens: usize,
    /// Measured runs of each strategy at each length.
    pub repetitions: usize,
    /// Source of predicted times.
    pub cost_source: String,
    /// Whether all devices round alike. An OpenCL device beside others does not: it sums in another order,
    /// so that the token of two with nearly the same probability can differ.
    pub rounds_alike: bool,
    /// Results by length, in the order requested.
    pub lengths: Vec<LengthComparison>,
}

/// The results at one length.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LengthComparison {
    /// Tokens of the prompt.
    pub tokens: usize,
    /// Results of each strategy, in the order requested. Not empty.
    pub runs: Vec<StrategyRun>,
    /// Strategies that are impossible on these devices, and why.
    pub absent: Vec<(String, String)>,
    /// Index of the run with the lowest median time to first token.
    pub fastest: usize,
    /// Strategy that `auto` would choose, by prediction.
    pub chosen_by_auto: Option<String>,
    /// Whether all strategies generated the same tokens, as they must where the devices
    /// [round alike](Comparison::rounds_alike).
    pub same_tokens: bool,
}

/// A strategy's runs at one length.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StrategyRun {
    /// Name of the strategy.
    pub strategy: String,
    /// Why it chose the route of the prompt's first chunk.
    pub reason: String,
    /// Number of chunks of the prompt.
    pub chunks: usize,
    /// Time from submission to the first token, in ms.
    pub ttft_ms: Spread,
    /// Whether it prepares graphs on the spot, which is part of the measured times.
    pub prepares_on_the_spot: bool,
    /// Predicted time of the prompt as in the measured runs: in a warm engine, with the preparation of
    /// graphs on the spot; `None` if a device's times are unknown.
    pub predicted: Option<Duration>,
    /// Predicted time in an engine that has no graphs yet.
    pub predicted_cold: Option<Duration>,
    /// The tokens generated in the first repetition.
    pub ids: Vec<u32>,
    /// Time by which devices exceeded their model, averaged over the repetitions; it is part of the
    /// measured times.
    pub late: Duration,
    /// Recording of the repetition with the median time to first token.
    pub timeline: Timeline,
    /// Analysis of the recording.
    pub analysis: Analysis,
    /// Its numbers.
    pub report: Report,
}
