//! A scenario: the request, processors and strategy to simulate.

use std::path::Path;
use std::sync::Arc;

use lapwing_actors::policy::PolicyChoice;
use lapwing_actors::simulate::OwnDevice;
use lapwing_kernels::model::Model;
use lapwing_kernels::model::shape::ModelShape;
use lapwing_kernels::weights::WeightFile;
use lapwing_plan::soc::{Soc, WeightBits};
use lapwing_plan::strategy::{MomentRoutes, Strategies, Strategy};

use super::change::Change;
use super::error::SimulateError;
use super::given_shape::GivenShape;
use super::interference::Interference;
use super::machine::planned::Planned;
use super::processors::Processors;
use super::published::rows::{MODEL, Run};

mod devices;
mod run;
mod settings;
mod text;

use devices::ChosenDevices;
pub(super) use devices::Picked;

/// The strategy of a scenario.
#[derive(Clone)]
pub(super) enum Choice {
    Named(Arc<str>),
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
    /// Whether its kind is `pinned`.
    pub is_pinned: bool,
}

/// One request on a SoC or on the devices of a machine. The fields match the options of
/// `lapwing simulate`.
#[derive(Clone)]
pub struct Scenario {
    processors: Processors,
    /// Changes of the processors' numbers.
    changes: Vec<Change>,
    /// What strategies predict with, if it is not what drives the devices.
    pub(super) planned: Option<Planned>,
    /// Name of a known shape, or path of a GGUF file, of which only the header is read.
    pub model: String,
    /// Tokens of the prompt.
    pub prompt: usize,
    /// Decode steps after the first token.
    pub decode: usize,
    pub(super) choice: Choice,
    pub(super) strategies: Strategies,
    pub(super) policy: PolicyChoice,
    /// Devices of the caller's own.
    pub(super) own: Vec<OwnDevice>,
    /// The devices that compute, if they are chosen.
    chosen: Option<ChosenDevices>,
    /// Fast synchronisation between processors (HeteroLLM).
    pub fast_sync: bool,
    /// Whether operands of matmuls on the NPU may be swapped (order swap, HeteroLLM).
    pub order_swap: bool,
    /// Routes that `auto` chooses from for a chunk while devices are busy.
    pub moment: MomentRoutes,
    /// Maximum prompt tokens in a chunk, also for strategies that cut prompts themselves. `None` means
    /// the whole prompt, or the strategy's own chunk size.
    pub chunk: Option<usize>,
    /// Maximum chunks in flight, as [`EngineBuilder::permits`](lapwing_engine::EngineBuilder::permits). `None` means 2
    /// on a SoC, and the live engine's default on the devices of a machine.
    pub permits: Option<usize>,
    /// Other load on the GPU.
    pub interference: Interference,
    /// Rows of each decode step, 1 to 64, as when a draft is verified and all of its tokens are
    /// accepted.
    pub verify: usize,
    /// Whether graphs prepared while the request waits have the next standard size, so that
    /// preparation time grows in steps instead of in proportion.
    pub stepped_preparation: bool,
    /// Seed of the noise.
    pub seed: u64,
}

impl Scenario {
    /// Llama-3-8B on a preset: a prompt of 256 tokens and 32 decode steps, with the strategy
    /// `tensor-level`.
    ///
    /// # Errors
    /// [`SimulateError::UnknownPreset`].
    pub fn new(preset: &str) -> Result<Scenario, SimulateError> {
        Ok(Scenario::on(Processors::preset(preset)?))
    }

    /// The same request on any processors.
    pub fn on(processors: impl Into<Processors>) -> Scenario {
        Scenario {
            processors: processors.into(),
            changes: Vec::new(),
            planned: None,
            model: MODEL.to_owned(),
            prompt: 256,
            decode: 32,
            choice: Choice::Named("tensor-level".into()),
            strategies: Strategies::builtin(),
            policy: PolicyChoice::default(),
            own: Vec::new(),
            chosen: None,
            fast_sync: true,
            order_swap: true,
            moment: MomentRoutes::default(),
            chunk: None,
            permits: None,
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

    /// Sets the strategies that are known by name, as
    /// [`EngineBuilder::strategies`](lapwing_engine::EngineBuilder::strategies) does: the setting `strategy` and
    /// sweeps over it find them.
    #[must_use]
    pub fn strategies(mut self, strategies: Strategies) -> Scenario {
        self.strategies = strategies;
        self
    }

    /// Sets a strategy of the caller's own, the same object that
    /// [`EngineBuilder::own_strategy`](lapwing_engine::EngineBuilder::own_strategy) takes.
    #[must_use]
    pub fn own_strategy(self, strategy: impl Strategy + 'static) -> Scenario {
        self.shared_strategy(Arc::new(strategy))
    }

    /// As [`own_strategy`](Scenario::own_strategy), with a shared strategy.
    #[must_use]
    pub fn shared_strategy(mut self, strategy: Arc<dyn Strategy>) -> Scenario {
        self.choice = Choice::Own(strategy);
        self
    }

    /// Sets the queue policy, by name or of the caller's own, as
    /// [`EngineBuilder::policy`](lapwing_engine::EngineBuilder::policy) does. The default is `fcfs`.
    #[must_use]
    pub fn policy(mut self, policy: impl Into<PolicyChoice>) -> Scenario {
        self.policy = policy.into();
        self
    }

    /// Name of the queue policy.
    pub fn policy_name(&self) -> &str {
        self.policy.name()
    }

    /// This scenario with the settings of a published run.
    pub(super) fn with_run(&self, run: &Run) -> Result<Scenario, SimulateError> {
        let mut scenario = self.clone();
        scenario.model.clone_from(&run.model);
        scenario.prompt = run.prompt;
        scenario.decode = run.decode;
        scenario.set("strategy", &run.strategy)?;
        scenario.fast_sync = run.fast_sync;
        scenario.order_swap = run.order_swap;
        scenario.chunk = run.chunk.or(self.chunk);
        if let Some(devices) = &run.device {
            scenario.set("device", devices)?;
        }
        scenario.set("interference", run.interference.as_deref().unwrap_or("none"))?;
        Ok(scenario)
    }

    /// Text that identifies a run. A caller's own strategy, policy or device counts by its address, which is
    /// unique while it is alive.
    pub(super) fn key(&self) -> String {
        let own = match &self.choice {
            Choice::Named(_) => self.strategies.identity(),
            Choice::Own(own) => format!("{:p}", Arc::as_ptr(own)),
        };
        let mut key = format!("{self}{own}{} {:?}", self.own_identity(), self.policy);
        for (_, number) in self.processors.numbers() {
            key.push_str(&format!(" {:x}", number.value.to_bits()));
        }
        key
    }

    /// Checks that the model is known.
    ///
    /// # Errors
    /// [`SimulateError::Model`].
    pub fn check_model(&self) -> Result<(), SimulateError> {
        self.load_model().map(|_| ())
    }

    /// The model's hyper-parameters and ops, and the bits of its weights.
    pub(super) fn load_model(&self) -> Result<(Model, WeightBits), SimulateError> {
        let wrong = |reason: String| SimulateError::Model { reason };
        if GivenShape::is_meant(&self.model) {
            let given = GivenShape::parse(&self.model)?;
            // The devices of a machine read weights as they are stored.
            let model = match (&self.processors, given.nearest_format()) {
                (Processors::Machine(_), Some(dtype)) => given.shape.model_in(dtype),
                _ => given.shape.model(),
            };
            let model = model.map_err(|error| wrong(error.to_string()))?;
            return Ok((model, given.bits.map_or_else(WeightBits::default, WeightBits::Fixed)));
        }
        if let Some(shape) = ModelShape::by_name(&self.model) {
            let model = shape.model().map_err(|error| wrong(error.to_string()))?;
            return Ok((model, WeightBits::default()));
        }
        let path = Path::new(&self.model);
        if !path.is_file() {
            let names: Vec<&str> = ModelShape::all().iter().map(|shape| shape.name).collect();
            return Err(wrong(format!(
                "unknown model '{}' (shapes: {}; or give a .gguf file, or dimensions: \
                 layers=16,dim=2048,ffn=8192,heads=32,vocab=128256)",
                self.model,
                names.join(", ")
            )));
        }
        let header = WeightFile::header(path).map_err(|error| wrong(error.to_string()))?;
        let model = Model::from_header(&header).map_err(|error| wrong(error.to_string()))?;
        Ok((model, WeightBits::Stored))
    }
}
