//! Whole runs on a modelled system on a chip: the scheduler, workers and strategies of the live engine
//! in virtual time, on processors that compute no values and take the times of a [`Soc`].

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{Device, DeviceInfo, DeviceKind, ModelId, SlotPool};
use lapwing_kernels::kv::{KvPool, KvSize};
use lapwing_traces::{Recorder, Scope};

use super::error::SocRunError;
use super::shape_only_device::ShapeOnlyDevice;
use super::shape_queue::ShapeQueue;
use super::virtual_engine::{Caller, VirtualEngine, VirtualParts};
use crate::drive::simulated::{Environment, GpuInterference, Noise, SimulatedDevice};
use crate::scheduler::KvPages;
use lapwing_plan::Phase;
use lapwing_plan::planner::{Planner, PlannerParts};
use lapwing_plan::soc::{Soc, SyncMode};
use lapwing_plan::strategy::{ChunkShape, PromptRows, Strategy};
use lapwing_plan::{PlanError, Route, device_of};

mod devices;
mod options;
mod outcome;
mod shapes;

use devices::{Devices, Unit};
pub use options::{MakeDevice, SocModel, SocOptions, SocValues};
pub use outcome::{SocOutcome, SocPhase, SocUnit};
pub use shapes::{Fault, Shapes};

/// A run on a system, ready to start.
pub struct SocSimulation {
    engine: VirtualEngine,
    soc: Soc,
    options: SocOptions,
    /// The devices, in the order of their registration.
    units: Vec<Unit>,
    routes: [Arc<Route>; 2],
    ids: Vec<u32>,
}

impl SocSimulation {
    /// A run of a model on a system.
    ///
    /// # Errors
    /// [`SocRunError::Option`], [`SocRunError::NoProcessor`] or [`SocRunError::NameTwice`] for impossible options,
    /// [`SocRunError::Plan`] when the strategy finds no route on these devices, or on the CPU if the options add it.
    pub fn new(
        model: &SocModel,
        soc: &Soc,
        strategy: &Arc<dyn Strategy>,
        options: &SocOptions,
    ) -> Result<SocSimulation, SocRunError> {
        SocSimulation::build(model, soc, strategy, options, None)
    }

    /// A run that also computes true values. The prompt is that of `values`; the options' prompt length
    /// is ignored. Times equal those of a run without values, except for graphs that are prepared during
    /// a run: only the run without values always shares them between layers.
    ///
    /// # Errors
    /// As [`new`](SocSimulation::new), and [`SocRunError::Device`].
    pub fn with_values(
        model: &SocModel,
        soc: &Soc,
        strategy: &Arc<dyn Strategy>,
        options: &SocOptions,
        values: &SocValues<'_>,
    ) -> Result<SocSimulation, SocRunError> {
        let options = SocOptions { prompt: values.ids.len(), ..options.clone() };
        SocSimulation::build(model, soc, strategy, &options, Some(values))
    }

    fn build(
        model: &SocModel,
        soc: &Soc,
        strategy: &Arc<dyn Strategy>,
        options: &SocOptions,
        values: Option<&SocValues<'_>>,
    ) -> Result<SocSimulation, SocRunError> {
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
        let without = [
            ("a device's fault", options.fault.is_some()),
            ("stepped preparation", options.stepped_preparation),
            ("a draft", options.verify > 1),
        ];
        if let Some((what, _)) = without.iter().find(|(_, set)| *set && values.is_some()) {
            return Err(SocRunError::Values { what });
        }
        // Only positions that the run reaches need a plan and pages.
        let context = options.prompt + (options.decode + 1) * options.verify + 2;
        let setup = Setup { model, soc, strategy, options, values, context };
        let faulty = options.fault.iter().map(|fault| &fault.kind);
        let mut kinds = options.devices.iter().chain(faulty);
        if let Some(kind) = kinds.find(|kind| !Soc::KINDS.contains(kind)) {
            return Err(SocRunError::NoProcessor { kind: kind.name() });
        }
        // The numbers do not depend on the order of registration.
        let named = |kinds: &[DeviceKind]| -> Vec<DeviceKind> {
            Soc::KINDS.into_iter().filter(|kind| kinds.contains(kind)).collect()
        };
        match setup.build(&named(&options.devices)) {
            Err(SocRunError::Plan(
                PlanError::Needs { kind: DeviceKind::Cpu, .. } | PlanError::NeedsTwoKinds { .. },
            )) if options.may_add_cpu() => {
                setup.build(&named(&[&options.devices[..], &[DeviceKind::Cpu]].concat()))
            }
            built => built,
        }
    }

    /// Names of the devices that compute, in the order of their registration.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        self.units.iter().map(|unit| &*unit.name)
    }

    /// The routes of a whole prompt (or its first chunk) and of a step of decoding.
    pub fn routes(&self) -> &[Arc<Route>; 2] {
        &self.routes
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// [`SocRunError`] when the request fails, the caller cancels before the first token, or
    /// resources are left in the engine.
    pub fn run(mut self) -> Result<SocOutcome, SocRunError> {
        let SocOptions { record, decode, verify, cancel, .. } = self.options;
        if record {
            self.engine.recorder().set_scope(Scope::All);
        }
        let seen = self.engine.run(&Caller { ids: &self.ids, decode, verify, cancel })?;
        let recording = record.then(|| self.engine.recorder().recording());
        Ok(outcome::outcome(&self, &seen, recording))
    }

    /// The recorder. It is on if the options request a recording, and also records failed runs.
    pub fn recorder(&self) -> &Recorder {
        self.engine.recorder()
    }
}

/// Arguments for building a simulation.
struct Setup<'a> {
    model: &'a SocModel,
    soc: &'a Soc,
    strategy: &'a Arc<dyn Strategy>,
    options: &'a SocOptions,
    values: Option<&'a SocValues<'a>>,
    context: usize,
}

impl Setup<'_> {
    fn build(&self, kinds: &[DeviceKind]) -> Result<SocSimulation, SocRunError> {
        let Setup { model, soc, strategy, options, values, context } = *self;
        let graph = model.graph();
        let mut devices = Devices::new(soc, kinds, &model.workload, options)?;
        let pages = u32::try_from(model.kv.pages_for(context)).unwrap_or(u32::MAX);
        // One sequence has one place for its states.
        let size = KvSize { pages, states: 1 };
        for info in &mut devices.infos {
            info.room = info.room.take().map(|room| room.with_cache(&model.kv, size));
        }
        let mut planner = Planner::new(PlannerParts {
            model: ModelId::default(),
            graph: Arc::clone(graph),
            devices: devices.infos.clone(),
            cost: Arc::new(devices.cost.clone()),
            strategy: Arc::clone(strategy),
            chunk_rows: options.chunk_rows.unwrap_or(options.prompt).max(1),
        });
        let rows = planner.chunk_rows(PromptRows::new(options.prompt));
        let selected = usize::from(rows == options.prompt);
        let (phase, prompt) = (Phase::Prefill, options.prompt);
        let prefill = ChunkShape { phase, rows, selected, context: 0, prompt };
        let rows = options.verify;
        let decode =
            ChunkShape { phase: Phase::Decode, rows, selected: rows, context: prompt, prompt: 0 };
        let routes = [planner.route(prefill)?, planner.route(decode)?];
        let pool = KvPool::new(values.map_or(pages, |values| values.pages));
        let order = devices.order(&options.devices);
        let units = order.iter().map(|number| devices.units[*number].clone()).collect();
        let env = self.environment(&devices.infos);
        let simulated = devices
            .infos
            .iter()
            .zip(devices.times)
            .map(|(info, time)| Ok(SimulatedDevice { device: self.device(info)?, time }));
        let engine = VirtualEngine::new(VirtualParts {
            graph: Arc::clone(graph),
            planner,
            devices: simulated.collect::<Result<_, SocRunError>>()?,
            kv: KvPages { pool, states: KvPool::new(1), layout: model.kv.clone() },
            slots: values.map_or_else(SlotPool::default, |values| values.slots.clone()),
            policy: options.policy.make()?,
            context,
            permits: options.in_flight,
            copy_rate: soc.copy_rate(),
            env,
            order,
        })?;
        let facts = [
            ("model", &*model.name),
            ("soc", &soc.name),
            ("strategy", strategy.name()),
            ("policy", options.policy.name()),
        ];
        facts.iter().for_each(|(key, value)| engine.recorder().set_meta(key, value));
        Ok(SocSimulation {
            engine,
            soc: soc.clone(),
            options: options.clone(),
            units,
            routes,
            ids: values.map_or_else(|| vec![0; options.prompt], |values| values.ids.to_vec()),
        })
    }

    fn device(&self, info: &DeviceInfo) -> Result<Box<dyn Device>, SocRunError> {
        if let Some(values) = self.values {
            let made = (values.device)(info);
            return made.map_err(|error| SocRunError::Device { reason: error.to_string() });
        }
        let graph = self.model.graph();
        if self.options.own.iter().any(|device| device.name() == info.name) {
            let device = ShapeOnlyDevice::new(info, graph);
            return Ok(Box::new(ShapeQueue::new(info.clone(), device)));
        }
        let fault = self.options.fault.filter(|fault| fault.kind == info.kind);
        let shapes = Shapes::new(info, graph, fault);
        let shapes = shapes.stepped(self.options.stepped_preparation);
        Ok(Box::new(ShapeQueue::new(info.clone(), shapes)))
    }

    fn environment(&self, devices: &[DeviceInfo]) -> Environment {
        let Setup { soc, options, .. } = *self;
        let gpu = device_of(devices, DeviceKind::Gpu);
        let gpu_interference = gpu.filter(|_| options.renderer).map(|device| GpuInterference {
            device,
            period: soc.millis("renderer.period"),
            time: soc.millis("renderer.time"),
        });
        let spread = soc.at("noise.spread");
        let noise = (spread > 0.0).then_some(Noise { seed: options.seed, spread });
        let cap = soc.at("memory.cap");
        let memory = cap.is_finite().then_some(cap);
        let shapes_only = self.values.is_none();
        let spin = match options.sync {
            SyncMode::Fast => soc.micros("sync.fast"),
            SyncMode::Slow => Duration::ZERO,
        };
        // The processors' models already include the synchronisation.
        let hand_over = Duration::ZERO;
        Environment {
            memory,
            gpu_interference,
            noise,
            hand_over,
            spin,
            prepared: true,
            shapes_only,
        }
    }
}
