//! Whole runs on a modelled system on a chip: the scheduler, workers and strategies of the live
//! engine in virtual time, on processors that compute nothing and take the time that a
//! [`Soc`] says.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{DeviceKind, SlotPool};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::kv::{KvLayout, KvPool};
use lapwing_kernels::model::shape::ModelShape;
use lapwing_kernels::model::{Model, ModelError};
use lapwing_traces::{Nanos, Recording, Scope};

use super::mailbox::ChannelSink;
use super::simulated::{
    Noise, Renderer, SimulatedDevice, Simulation, SimulationParts, Surroundings,
};
use crate::error::RunError;
use crate::message::{Generate, Phase, SchedulerMessage, Submit, Task};
use crate::plan::planner::{Planner, PlannerParts};
use crate::plan::soc::{Soc, SyncMode, WeightBits, Workload};
use crate::plan::strategy::{ChunkShape, Strategy};
use crate::plan::{DeviceId, PlanError, Route};
use crate::policy::Fcfs;
use crate::sample::{Sampler, SamplingParams};
use crate::scheduler::{KvPages, Scheduler, SchedulerConfig, SchedulerParts};
use crate::sequence::Door;

mod outcome;
mod shapes;
mod watch;

pub use outcome::{SocOutcome, SocPhase, SocUnit};
pub use shapes::{Fault, Shapes};

use watch::Watch;

/// A model to simulate.
#[derive(Clone, Debug)]
pub struct SocModel {
    /// Name, such as `llama-3-8b`.
    pub name: String,
    /// Ops, and how many bits a weight takes.
    pub workload: Workload,
    /// Shape of its KV pages.
    pub kv: KvLayout,
    /// Most tokens of a sequence.
    pub context: usize,
}

impl SocModel {
    /// A published shape, with weights of 4 bits.
    ///
    /// # Errors
    /// [`ModelError`] for a shape of an unknown architecture.
    pub fn of_shape(shape: &ModelShape) -> Result<SocModel, ModelError> {
        Ok(SocModel::of_model(shape.name, &shape.model()?, WeightBits::default()))
    }

    /// A model, of a weight file or of its header.
    pub fn of_model(name: &str, model: &Model, bits: WeightBits) -> SocModel {
        let workload = Workload { graph: Arc::new(model.graph.clone()), bits };
        let (kv, context) = (model.config.kv_layout(), model.config.context);
        SocModel { name: name.to_owned(), workload, kv, context }
    }

    fn graph(&self) -> &Arc<Graph> {
        &self.workload.graph
    }
}

/// What is simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct SocOptions {
    /// Rows of the prompt, at least 1.
    pub prompt: usize,
    /// Steps of decoding after the first token.
    pub decode: usize,
    /// Rows of each step: 1, or those that a speculative decoder verifies at once. They are taken
    /// as so many sequences of the prompt's length, each of which reads its own keys and values.
    pub verify: usize,
    /// How processors hand over.
    pub sync: SyncMode,
    /// How strategies think that they do. The published ablations of synchronisation keep the plans
    /// that were made for fast hand-overs: with slow ones a solver that knows of them would not cut.
    pub planned_sync: SyncMode,
    /// Graphs are prepared for the next of 1, 32, 64 … 1024 rows and not for the very number,
    /// where they are prepared when they are needed.
    pub stepped_preparation: bool,
    /// A renderer draws 60 frames a second on the GPU (device model, 3.8).
    pub renderer: bool,
    /// Seed of the noise, if the system has any.
    pub seed: u64,
    /// Most prompt rows in a chunk; `None` is the whole prompt.
    pub chunk_rows: Option<usize>,
    /// Chunks in flight.
    pub in_flight: usize,
    /// Processors that compute, in any order. The CPU only controls, unless a strategy cannot do
    /// without it.
    pub devices: Vec<DeviceKind>,
    /// Whether a recording is made.
    pub record: bool,
    /// A run of a device that fails.
    pub fault: Option<Fault>,
    /// When the caller leaves.
    pub cancel: Option<Nanos>,
}

impl Default for SocOptions {
    fn default() -> SocOptions {
        SocOptions {
            prompt: 256,
            decode: 32,
            verify: 1,
            sync: SyncMode::Fast,
            planned_sync: SyncMode::Fast,
            stepped_preparation: false,
            renderer: false,
            seed: 0,
            chunk_rows: None,
            in_flight: 2,
            devices: vec![DeviceKind::Gpu, DeviceKind::Npu],
            record: false,
            fault: None,
            cancel: None,
        }
    }
}

/// Why there is no outcome.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SocRunError {
    /// The strategy finds no route on these processors.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A request without rows, or with more than the model takes.
    #[error("{what} is {found}, but must be between {from} and {to}")]
    Option {
        /// Which option.
        what: &'static str,
        /// Its value.
        found: usize,
        /// Least value.
        from: usize,
        /// Greatest value.
        to: usize,
    },
    /// The request failed.
    #[error("the request failed at {at}: {error}", at = Duration::from_nanos(.at.0).as_secs_f64())]
    Failed {
        /// When.
        at: Nanos,
        /// Why.
        error: RunError,
    },
    /// The caller left before the first token.
    #[error("the caller left before the first token")]
    Cancelled,
    /// Nothing can happen any more, and the request has not ended: an error of the runtime.
    #[error("the engine stands still with {sequences} requests and {chunks} chunks inside")]
    Stuck {
        /// Requests inside.
        sequences: usize,
        /// Chunks in flight.
        chunks: usize,
    },
    /// The engine is empty, but not everything came back: an error of the runtime.
    #[error("{pages} KV pages, {tickets} tickets and {chunks} chunks did not come back")]
    Leak {
        /// KV pages.
        pages: usize,
        /// Tickets.
        tickets: usize,
        /// Chunks.
        chunks: usize,
    },
}

/// A run on a system, ready to go.
pub struct SocSimulation {
    simulation: Simulation,
    door: Door,
    pool: KvPool,
    soc: Soc,
    options: SocOptions,
    kinds: Vec<DeviceKind>,
    routes: [Arc<Route>; 2],
}

impl SocSimulation {
    /// A run of a model on a system.
    ///
    /// # Errors
    /// [`SocRunError::Option`] for impossible options, [`SocRunError::Plan`] when the strategy
    /// finds no route on these processors, the CPU included.
    pub fn new(
        model: &SocModel,
        soc: &Soc,
        strategy: &Arc<dyn Strategy>,
        options: &SocOptions,
    ) -> Result<SocSimulation, SocRunError> {
        let context = model.context.max(options.prompt + options.decode + 2);
        let checks = [
            ("the prompt's length", options.prompt, 1, 1 << 20),
            ("the number of decoding steps", options.decode, 0, 1 << 20),
            ("the number of rows of a step", options.verify, 1, 64),
            ("the number of chunks in flight", options.in_flight, 1, 64),
        ];
        for (what, found, from, to) in checks {
            if !(from..=to).contains(&found) {
                return Err(SocRunError::Option { what, found, from, to });
            }
        }
        let setup = Setup { model, soc, strategy, options, context };
        // Numbered alike, in whatever order they are named.
        let named = |kinds: &[DeviceKind]| -> Vec<DeviceKind> {
            let all = [DeviceKind::Gpu, DeviceKind::Npu, DeviceKind::Cpu];
            all.into_iter().filter(|kind| kinds.contains(kind)).collect()
        };
        match setup.build(&named(&options.devices)) {
            Err(SocRunError::Plan(PlanError::Needs { kind: DeviceKind::Cpu, .. }))
                if !options.devices.contains(&DeviceKind::Cpu) =>
            {
                setup.build(&named(&[&options.devices[..], &[DeviceKind::Cpu]].concat()))
            }
            built => built,
        }
    }

    /// Processors that compute.
    pub fn devices(&self) -> &[DeviceKind] {
        &self.kinds
    }

    /// The routes of a whole prompt (or its first chunk) and of a step of decoding.
    pub fn routes(&self) -> &[Arc<Route>; 2] {
        &self.routes
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// [`SocRunError`] when the request fails, the caller leaves before the first token, or
    /// something is left in the engine.
    pub fn run(mut self) -> Result<SocOutcome, SocRunError> {
        if self.options.record {
            self.simulation.recorder().set_scope(Scope::All);
        }
        let mut watch = Watch::new(self.options.cancel);
        for _ in 0..self.options.verify {
            let (sink, events) = ChannelSink::new(self.options.decode + 4);
            watch.add(events);
            let ids = vec![0; self.options.prompt];
            let generate = Generate {
                sampler: Sampler::new(SamplingParams::greedy(), &[]),
                stop_ids: [].into(),
                tokens_max: self.options.decode + 1,
            };
            let Some(ticket) = self.door.try_take() else { continue };
            let task = Task::Generate(Box::new(generate));
            let trace = tracing::Span::none();
            let submit = Submit { ids, task, sink, ticket, traced: false, trace };
            self.simulation.send_at(Nanos(0), SchedulerMessage::Submit(Box::new(submit)));
        }
        if let Some(at) = self.options.cancel {
            self.simulation.send_at(at, SchedulerMessage::Wake);
        }
        watch.run(&mut self.simulation);
        self.check()?;
        watch.result()?;
        let recording = self.options.record.then(|| self.recording());
        Ok(outcome::outcome(&self, &watch, recording))
    }

    fn recording(&self) -> Recording {
        self.simulation.recorder().recording()
    }

    /// Whether everything came back.
    fn check(&self) -> Result<(), SocRunError> {
        let scheduler = self.simulation.scheduler();
        let (sequences, chunks) = (scheduler.sequences(), scheduler.chunks_in_flight());
        if sequences > 0 {
            return Err(SocRunError::Stuck { sequences, chunks });
        }
        let pages = self.pool.capacity() - self.pool.free_pages();
        let tickets = self.door.in_use();
        if pages + tickets + chunks > 0 {
            return Err(SocRunError::Leak { pages, tickets, chunks });
        }
        Ok(())
    }
}

/// What a simulation is built from.
struct Setup<'a> {
    model: &'a SocModel,
    soc: &'a Soc,
    strategy: &'a Arc<dyn Strategy>,
    options: &'a SocOptions,
    context: usize,
}

impl Setup<'_> {
    fn build(&self, kinds: &[DeviceKind]) -> Result<SocSimulation, SocRunError> {
        let Setup { model, soc, strategy, options, context } = *self;
        let graph = model.graph();
        let infos = Soc::devices(kinds);
        let cost = soc.cost(kinds, &model.workload, options.planned_sync);
        let times = match options.sync == options.planned_sync {
            true => cost.devices.clone(),
            false => soc.times(kinds, &model.workload, options.sync),
        };
        let mut planner = Planner::new(PlannerParts {
            graph: Arc::clone(graph),
            devices: infos.clone(),
            cost: Arc::new(cost),
            strategy: Arc::clone(strategy),
            chunk_rows: options.chunk_rows.unwrap_or(options.prompt).max(1),
        });
        let rows = planner.chunk_rows(options.prompt);
        let selected = usize::from(rows == options.prompt);
        let prefill = ChunkShape { phase: Phase::Prefill, rows, selected, context: 0 };
        let rows = options.verify;
        let decode =
            ChunkShape { phase: Phase::Decode, rows, selected: rows, context: options.prompt };
        let routes = [planner.route(prefill)?, planner.route(decode)?];
        let vocab = graph.value(graph.output()).width;
        let pages = model.kv.pages_for(context) * options.verify;
        let pool = KvPool::new(u32::try_from(pages).unwrap_or(u32::MAX));
        let config = SchedulerConfig {
            context,
            sequences_max: options.verify,
            permits: options.in_flight,
            vocab,
        };
        let scheduler = Scheduler::new(SchedulerParts {
            config,
            planner,
            kv: KvPages { pool: pool.clone(), layout: model.kv },
            policy: Box::new(Fcfs),
        })?;
        let fault = |kind| options.fault.filter(|fault| fault.kind == kind);
        let devices = infos.iter().zip(times).map(|(info, time)| SimulatedDevice {
            device: Box::new(
                Shapes::new(info, graph, fault(info.kind)).stepped(options.stepped_preparation),
            ),
            time,
        });
        let parts = SimulationParts {
            scheduler,
            devices: devices.collect(),
            graph: Arc::clone(graph),
            slots: SlotPool::default(),
            copy_rate: soc.copy_rate(),
        };
        let simulation = Simulation::with_surroundings(parts, self.surroundings(kinds));
        Ok(SocSimulation {
            simulation,
            door: Door::new(options.verify),
            pool,
            soc: soc.clone(),
            options: options.clone(),
            kinds: kinds.to_vec(),
            routes,
        })
    }

    fn surroundings(&self, kinds: &[DeviceKind]) -> Surroundings {
        let Setup { soc, options, .. } = *self;
        let gpu = kinds.iter().position(|kind| *kind == DeviceKind::Gpu).map(DeviceId);
        let renderer = gpu.filter(|_| options.renderer).map(|device| Renderer {
            device,
            period: Duration::from_secs_f64(soc.at("renderer.period") / 1e3),
            time: Duration::from_secs_f64(soc.at("renderer.time") / 1e3),
        });
        let spread = soc.at("noise.spread");
        let noise = (spread > 0.0).then_some(Noise { seed: options.seed, spread });
        let cap = soc.at("memory.cap");
        let memory = cap.is_finite().then_some(cap);
        Surroundings { memory, renderer, noise, shapes_only: true }
    }
}
