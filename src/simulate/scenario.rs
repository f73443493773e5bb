//! What is simulated.

use std::path::Path;
use std::sync::Arc;

use lapwing_actors::policy::PolicyChoice;
use lapwing_kernels::model::Model;
use lapwing_kernels::model::shape::ModelShape;
use lapwing_kernels::weights::WeightFile;
use lapwing_plan::soc::Soc;
use lapwing_plan::strategy::Strategy;

use super::change::Change;
use super::error::SimulateError;
use super::interference::Interference;
use super::processors::Processors;
use super::published::rows::{MODEL, Run};

mod run;
mod settings;
mod text;

/// Who runs what.
#[derive(Clone)]
pub(super) enum Choice {
    Named(&'static str),
    Own(Arc<dyn Strategy>),
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

/// One request on a SoC, or on the devices of a machine. Fields are as the options of `lapwing simulate`.
#[derive(Clone)]
pub struct Scenario {
    processors: Processors,
    /// Changes of their numbers.
    changes: Vec<Change>,
    /// Name of a shape, or path of a GGUF file, of which only the header is read.
    pub model: String,
    /// Tokens of the prompt.
    pub prompt: usize,
    /// Steps of generation after the first token.
    pub decode: usize,
    pub(super) choice: Choice,
    pub(super) policy: PolicyChoice,
    /// Fast synchronisation between processors (S2-34, S2-35).
    pub fast_sync: bool,
    /// Operands of products on the NPU may be swapped (S2-24).
    pub order_swap: bool,
    /// Most prompt tokens computed in one go; also the size of chunks for the strategies that cut
    /// prompts themselves. None is the whole prompt, and the strategy's own size.
    pub chunk: Option<usize>,
    /// What uses the GPU beside the model.
    pub interference: Interference,
    /// Rows of each step of generation, 1 to 64: as when a draft is verified, of which all is
    /// accepted.
    pub verify: usize,
    /// Graphs that are prepared while the request waits are made for the next standard row count,
    /// so that their preparation takes time in steps and not in proportion.
    pub stepped_preparation: bool,
    /// Seed of the noise.
    pub seed: u64,
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
            changes: Vec::new(),
            model: MODEL.to_owned(),
            prompt: 256,
            decode: 32,
            choice: Choice::Named("tensor-level"),
            policy: PolicyChoice::default(),
            fast_sync: true,
            order_swap: true,
            chunk: None,
            interference: Interference::None,
            verify: 1,
            stepped_preparation: false,
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

    /// Another queue policy, by name or of the caller's own: the same that
    /// [`EngineBuilder::policy`](crate::EngineBuilder::policy) takes. By default `fcfs`.
    #[must_use]
    pub fn policy(mut self, policy: impl Into<PolicyChoice>) -> Scenario {
        self.policy = policy.into();
        self
    }

    /// Name of the queue policy.
    pub fn policy_name(&self) -> &str {
        self.policy.name()
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
        scenario.chunk = run.chunk.or(self.chunk);
        scenario.set("interference", run.interference.as_deref().unwrap_or("none"))?;
        Ok(scenario)
    }

    /// What a run depends on. A strategy or policy of one's own counts by its address: as long as it is
    /// kept, no other has it.
    pub(super) fn key(&self) -> String {
        let own = match &self.choice {
            Choice::Named(_) => String::new(),
            Choice::Own(own) => format!("{:p}", Arc::as_ptr(own)),
        };
        let mut key = format!("{self}{own} {:?}", self.policy);
        for (_, number) in self.processors.numbers() {
            key.push_str(&format!(" {:x}", number.value.to_bits()));
        }
        key
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
}
