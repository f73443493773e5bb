//! What is simulated.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use lapwing_actors::plan::soc::{NumberKind, Soc};
use lapwing_actors::plan::strategy::{Strategy, known};
use lapwing_kernels::model::Model;
use lapwing_kernels::model::shape::ModelShape;
use lapwing_kernels::weights::WeightFile;
use lapwing_traces::Recording;

use super::processors::Processors;
use super::published::{MODEL, Product, Run};
use super::{SimulateError, Simulated, change, decisions, machine, world};

/// What [`Scenario::set`] can change, beside the numbers of the processors.
pub const SETTINGS: [&str; 10] = [
    "model",
    "prompt",
    "decode",
    "strategy",
    "fast-sync",
    "order-swap",
    "chunk",
    "interference",
    "verify",
    "seed",
];

/// What uses the GPU beside the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Interference {
    /// Nothing.
    #[default]
    None,
    /// A game that draws 60 frames a second.
    Game,
}

impl fmt::Display for Interference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Interference::None => "none",
            Interference::Game => "game",
        })
    }
}

/// Who runs what.
#[derive(Clone)]
pub(super) enum Choice {
    Named(&'static str),
    Own(Arc<dyn Strategy>),
}

/// One request on a SoC, or on the devices of a machine. Fields are as the options of `lapwing simulate`.
#[derive(Clone)]
pub struct Scenario {
    processors: Processors,
    /// Name of a shape, or path of a GGUF file, of which only the header is read.
    pub model: String,
    /// Tokens of the prompt.
    pub prompt: usize,
    /// Steps of generation after the first token.
    pub decode: usize,
    pub(super) choice: Choice,
    /// Fast synchronisation between processors (S2-34, S2-35).
    pub fast_sync: bool,
    /// Operands of products on the NPU may be swapped (S2-24).
    pub order_swap: bool,
    /// Rows of a chunk, for the strategies that cut prompts themselves.
    pub chunk: Option<usize>,
    /// What uses the GPU beside the model.
    pub interference: Interference,
    /// Tokens computed in each step of generation.
    pub verify: usize,
    /// Seed of the noise.
    pub seed: u64,
}

/// A number of the processors.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterValue {
    /// Section and name, such as `gpu.rate`.
    pub key: String,
    /// Its value.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// `pinned`, `derived` or `assumed`.
    pub status: String,
    /// Whether it is pinned.
    pub is_pinned: bool,
}

impl Scenario {
    /// Llama-3-8B on a preset: a prompt of 256 tokens and 32 steps of generation, by the solver's
    /// strategy.
    ///
    /// # Errors
    /// [`SimulateError::UnknownPreset`].
    pub fn new(preset: &str) -> Result<Scenario, SimulateError> {
        Ok(Scenario::on(Soc::preset(preset)?))
    }

    /// The same on any processors.
    pub fn on(processors: impl Into<Processors>) -> Scenario {
        Scenario {
            processors: processors.into(),
            model: MODEL.to_owned(),
            prompt: 256,
            decode: 32,
            choice: Choice::Named("tensor-level"),
            fast_sync: true,
            order_swap: true,
            chunk: None,
            interference: Interference::None,
            verify: 1,
            seed: 0,
        }
    }

    /// The processors.
    pub fn processors(&self) -> &Processors {
        &self.processors
    }

    /// The processors, if they are a SoC.
    ///
    /// # Errors
    /// [`SimulateError::NoSoc`] for a machine.
    pub fn soc(&self) -> Result<&Soc, SimulateError> {
        match &self.processors {
            Processors::Soc(soc) => Ok(soc),
            Processors::Machine(machine) => {
                Err(SimulateError::NoSoc { machine: machine.name.clone() })
            }
        }
    }

    /// Name of the preset.
    pub fn soc_name(&self) -> String {
        self.processors.name().to_owned()
    }

    /// Name of the strategy.
    pub fn strategy_name(&self) -> &str {
        match &self.choice {
            Choice::Named(name) => name,
            Choice::Own(own) => own.name(),
        }
    }

    /// As [`set`](Scenario::set) of `strategy`, with one of the caller's own: the same that
    /// [`EngineBuilder::own_strategy`](crate::EngineBuilder::own_strategy) takes.
    #[must_use]
    pub fn own_strategy(mut self, strategy: Arc<dyn Strategy>) -> Scenario {
        self.choice = Choice::Own(strategy);
        self
    }

    /// Changes a setting, or a number of the processors. A number may also be given as a multiple of its
    /// present value (`2x`) or as a change (`+10%`).
    ///
    /// # Errors
    /// When there is nothing of that name, or it cannot have that value.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SimulateError> {
        let bad = |expected: &str| SimulateError::BadValue {
            key: key.to_owned(),
            value: value.to_owned(),
            expected: expected.to_owned(),
        };
        let count = || match value.parse::<usize>() {
            Ok(count) if (1..=COUNT_MAX).contains(&count) => Ok(count),
            _ => Err(bad(&format!("it must be a whole number from 1 to {COUNT_MAX}"))),
        };
        let switch = || match value {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => Err(bad("it must be on or off")),
        };
        match key {
            "model" => value.clone_into(&mut self.model),
            "prompt" => self.prompt = count()?,
            "decode" => {
                let expected = format!("it must be a whole number up to {COUNT_MAX}");
                let steps = value.parse().ok().filter(|steps| *steps <= COUNT_MAX);
                self.decode = steps.ok_or_else(|| bad(&expected))?;
            }
            "strategy" => {
                let found = known().iter().find(|known| known.name == value);
                let names: Vec<&str> = known().iter().map(|known| known.name).collect();
                let expected = format!("it must be one of {}", names.join(", "));
                self.choice = Choice::Named(found.ok_or_else(|| bad(&expected))?.name);
            }
            "fast-sync" => self.fast_sync = switch()?,
            "order-swap" => self.order_swap = switch()?,
            "chunk" => self.chunk = Some(count()?),
            "interference" => {
                self.interference = match value {
                    "none" => Interference::None,
                    "game" => Interference::Game,
                    _ => return Err(bad("it must be none or game")),
                }
            }
            "verify" => self.verify = count()?,
            "seed" => self.seed = value.parse().map_err(|_| bad("it must be a whole number"))?,
            _ => {
                let present = self.processors.value(key)?;
                self.set_parameter(key, change::number(key, value, present)?)?;
            }
        }
        Ok(())
    }

    /// Changes a number of the processors.
    ///
    /// # Errors
    /// When there is none of that name, or it cannot have that value.
    pub fn set_parameter(&mut self, key: &str, value: f64) -> Result<(), SimulateError> {
        self.processors.set(key, value)
    }

    /// Numbers of the processors.
    pub fn parameters(&self) -> Vec<ParameterValue> {
        let value = |(key, number): (String, &super::Number)| ParameterValue {
            key,
            value: number.value,
            unit: number.unit.clone(),
            status: number.kind.to_string(),
            is_pinned: number.kind == NumberKind::Pinned,
        };
        self.processors.numbers().into_iter().map(value).collect()
    }

    /// This scenario with what a published run says.
    pub(super) fn with_run(&self, run: &Run) -> Result<Scenario, SimulateError> {
        let mut scenario = self.clone();
        scenario.model.clone_from(&run.model);
        scenario.prompt = run.prompt;
        scenario.decode = run.decode;
        scenario.set("strategy", &run.strategy)?;
        scenario.fast_sync = run.fast_sync;
        scenario.order_swap = run.order_swap;
        scenario.set("interference", run.interference.as_deref().unwrap_or("none"))?;
        Ok(scenario)
    }

    /// What a run depends on.
    pub(super) fn key(&self) -> String {
        let own = match &self.choice {
            Choice::Named(_) => String::new(),
            Choice::Own(own) => format!("{:p}", Arc::as_ptr(own)),
        };
        let mut key = format!("{self}{own}");
        for (_, number) in self.processors.numbers() {
            key.push_str(&format!(" {:x}", number.value.to_bits()));
        }
        key
    }

    /// Time of one product measured alone, in µs.
    pub(super) fn product_alone_us(&self, product: &Product) -> Result<f64, SimulateError> {
        decisions::alone_us(self.soc()?, product)
    }

    /// Time to prepare the graphs of one layer for so many rows, in ms.
    pub(super) fn preparation_ms(&self, rows: usize) -> Result<f64, SimulateError> {
        let graph = Arc::new(self.load_model()?.0.graph);
        Ok(decisions::preparation_ms(self.soc()?, &graph, rows))
    }

    /// Whether there is such a model.
    ///
    /// # Errors
    /// [`SimulateError::Model`].
    pub fn check_model(&self) -> Result<(), SimulateError> {
        self.load_model().map(|_| ())
    }

    /// Hyper-parameters and ops, and whether the weights have the sizes of a file.
    pub(super) fn load_model(&self) -> Result<(Model, bool), SimulateError> {
        let wrong = |reason: String| SimulateError::Model { reason };
        if let Some(shape) = ModelShape::by_name(&self.model) {
            return Ok((shape.model().map_err(|error| wrong(error.to_string()))?, false));
        }
        let path = Path::new(&self.model);
        if !path.is_file() {
            let names: Vec<&str> = ModelShape::all().iter().map(|shape| shape.name).collect();
            return Err(wrong(format!(
                "there is no model '{}'; shapes are known of {}; a .gguf file does, too",
                self.model,
                names.join(", ")
            )));
        }
        let header = WeightFile::header(path).map_err(|error| wrong(error.to_string()))?;
        Ok((Model::from_header(&header).map_err(|error| wrong(error.to_string()))?, true))
    }

    /// Runs it.
    ///
    /// # Errors
    /// [`SimulateError::Model`], and [`SimulateError::Run`] when the strategy does not fit.
    pub fn run(&self) -> Result<Simulated, SimulateError> {
        self.simulate(false).map(|(run, _)| run)
    }

    /// Runs it and records what happened when, as a live run is recorded.
    ///
    /// # Errors
    /// As [`run`](Scenario::run).
    pub fn record(&self) -> Result<(Simulated, Recording), SimulateError> {
        let (run, recording) = self.simulate(true)?;
        let missing = || SimulateError::Run { reason: "it was not recorded".to_owned() };
        Ok((run, recording.ok_or_else(missing)?))
    }

    fn simulate(&self, record: bool) -> Result<(Simulated, Option<Recording>), SimulateError> {
        match &self.processors {
            Processors::Soc(soc) => world::run(self, soc, record),
            Processors::Machine(machine) => machine::run::run(self, machine, record),
        }
    }
}

/// Largest count of tokens.
const COUNT_MAX: usize = 1 << 20;

impl fmt::Display for Scenario {
    /// All that a run depends on but the numbers of the SoC, in a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = |on: bool| if on { "on" } else { "off" };
        write!(
            f,
            "{} on {}, {}: {} tokens and {} steps of generation, fast sync {}, order swap {}",
            self.model,
            self.processors.name(),
            self.strategy_name(),
            self.prompt,
            self.decode,
            on(self.fast_sync),
            on(self.order_swap)
        )?;
        if let Some(chunk) = self.chunk {
            write!(f, ", chunks of {chunk}")?;
        }
        if self.interference != Interference::None {
            write!(f, ", beside a {}", self.interference)?;
        }
        if self.verify != 1 {
            write!(f, ", {} tokens a step", self.verify)?;
        }
        if self.seed != 0 {
            write!(f, ", seed {}", self.seed)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scenario({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_makes_no_sense_is_refused_by_name() {
        let mut scenario = Scenario::new("sd8gen3").expect("a preset");
        let wrong = [
            ("prompt", "0"),
            ("decode", "-1"),
            ("strategy", "fastest"),
            ("fast-sync", "yes"),
            ("interference", "film"),
            ("seed", "x"),
            ("gpu.rate", "0"),
            ("gpu.rate", "fast"),
            ("gpu.colour", "3"),
            ("", "1"),
        ];
        for (key, value) in wrong {
            let error = scenario.set(key, value).expect_err(key).to_string();
            assert!(error.contains(key), "{error}");
        }
        assert!(Scenario::new("sd9").is_err());
        scenario.set("model", "llama-9").expect("checked later");
        assert!(scenario.check_model().expect_err("unknown").to_string().contains("llama-3-8b"));
    }

    #[test]
    fn scenarios_that_differ_are_not_taken_for_the_same() {
        let base = Scenario::new("sd8gen3").expect("a preset");
        let changes = [
            ("model", "llama-2-7b"),
            ("prompt", "255"),
            ("decode", "31"),
            ("strategy", "pipe"),
            ("fast-sync", "off"),
            ("order-swap", "off"),
            ("chunk", "64"),
            ("interference", "game"),
            ("verify", "4"),
            ("seed", "7"),
            ("gpu.rate", "1.0001x"),
        ];
        assert!(SETTINGS.iter().all(|setting| changes.iter().any(|(key, _)| key == setting)));
        for (key, value) in changes {
            let mut other = base.clone();
            other.set(key, value).expect(key);
            assert_ne!(other.key(), base.key(), "{key}");
        }
    }
}
