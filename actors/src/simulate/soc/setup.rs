//! Puts a simulation on a system together.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{Device, DeviceInfo, DeviceKind, ModelId, SlotPool};
use lapwing_kernels::kv::KvSize;

use super::devices::Devices;
use super::{Shapes, SocModel, SocOptions, SocSimulation, SocValues};
use crate::drive::simulated::{Environment, GpuInterference, Noise, SimulatedDevice};
use crate::simulate::Tokens;
use crate::simulate::error::SocRunError;
use crate::simulate::shape_only_device::ShapeOnlyDevice;
use crate::simulate::shape_queue::ShapeQueue;
use crate::simulate::traffic::{DRAFT_MODEL, DraftModel, OtherModel, Traffic, pages};
use crate::simulate::virtual_engine::{Rules, VirtualEngine, VirtualModel, VirtualParts};
use lapwing_plan::planner::{Planner, PlannerParts};
use lapwing_plan::soc::{Soc, SyncMode};
use lapwing_plan::strategy::{ChunkShape, OneDevice, PromptRows, Strategy};
use lapwing_plan::time::TimeModel;
use lapwing_plan::{DeviceId, Phase, Route, device_of};

/// What a simulation serves.
#[derive(Clone, Copy)]
pub(super) enum Load<'a> {
    /// The request of the options.
    One,
    /// The same with true values.
    Values(&'a SocValues<'a>),
    /// Many requests.
    Traffic(&'a Traffic),
}

impl<'a> Load<'a> {
    pub(super) fn values(self) -> Option<&'a SocValues<'a>> {
        match self {
            Load::Values(values) => Some(values),
            Load::One | Load::Traffic(_) => None,
        }
    }

    fn traffic(self) -> Option<&'a Traffic> {
        match self {
            Load::Traffic(traffic) => Some(traffic),
            Load::One | Load::Values(_) => None,
        }
    }
}

/// Arguments for building a simulation.
pub(super) struct Setup<'a> {
    pub(super) model: &'a SocModel,
    pub(super) soc: &'a Soc,
    pub(super) strategy: &'a Arc<dyn Strategy>,
    pub(super) options: &'a SocOptions,
    pub(super) load: Load<'a>,
}

impl Setup<'_> {
    pub(super) fn build(&self, kinds: &[DeviceKind]) -> Result<SocSimulation, SocRunError> {
        let Setup { model, soc, strategy, options, load } = *self;
        let (traffic, values) = (load.traffic(), load.values());
        let mut devices = Devices::new(soc, kinds, &model.workload, options)?;
        let context = self.context();
        let size = self.kv_size();
        for info in &mut devices.infos {
            info.room = info.room.take().map(|room| room.with_cache(&model.kv, size));
        }
        let mut planner = Planner::new(PlannerParts {
            model: ModelId::default(),
            graph: Arc::clone(model.graph()),
            devices: devices.infos.clone(),
            cost: Arc::new(devices.cost.clone()),
            strategy: Arc::clone(strategy),
            chunk_rows: self.chunk_rows(),
        });
        let routes = self.routes(&mut planner)?;
        let tokens = traffic.map(Traffic::tokens).unwrap_or_default();
        let draft = traffic.filter(|traffic| traffic.drafts());
        let draft = draft.and_then(|traffic| Some((traffic, traffic.draft.as_ref()?)));
        let draft = draft.map(|(traffic, draft)| self.draft(traffic, draft, kinds, &tokens));
        let mut others: Vec<VirtualModel> = draft.transpose()?.into_iter().collect();
        for (number, other) in traffic.into_iter().flat_map(Traffic::others) {
            others.push(self.other(number, other, kinds)?);
        }
        let order = devices.order(&options.devices);
        let units = order.iter().map(|number| devices.units[*number].clone()).collect();
        let env = self.environment(&devices.infos);
        let pool_pages = values.map_or(size.pages, |values| values.pages);
        let kv = pages(&model.kv, KvSize { pages: pool_pages, ..size });
        let on = self.simulated(model, &devices.infos, devices.times, &tokens)?;
        let engine = VirtualEngine::new(VirtualParts {
            model: VirtualModel::new(planner, kv, context, on),
            others,
            slots: values.map_or_else(SlotPool::default, |values| values.slots.clone()),
            policy: options.policy.make()?,
            sequences_max: traffic.map_or(1, |traffic| traffic.sequences_max),
            permits: options.in_flight,
            rules: traffic.map_or_else(Rules::default, |traffic| traffic.rules.clone()),
            copy_rate: soc.copy_rate(),
            env: Some(env),
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

    /// Only positions that the run reaches need a plan and pages.
    fn context(&self) -> usize {
        let SocOptions { prompt, decode, verify, .. } = self.options;
        self.load.traffic().map_or(prompt + (decode + 1) * verify + 2, Traffic::context)
    }

    fn kv_size(&self) -> KvSize {
        let kv = &self.model.kv;
        let pages = || u32::try_from(kv.pages_for(self.context())).unwrap_or(u32::MAX);
        // One sequence has one place for its states.
        let one = || KvSize { pages: pages(), states: 1 };
        self.load.traffic().map_or_else(one, |traffic| traffic.kv(ModelId::default(), kv))
    }

    /// The routes of a whole prompt (or its first chunk) and of a step of decoding.
    fn routes(&self, planner: &mut Planner) -> Result<[Arc<Route>; 2], SocRunError> {
        let SocOptions { prompt, verify, .. } = *self.options;
        let rows = planner.chunk_rows(PromptRows::new(prompt));
        let selected = usize::from(rows == prompt);
        let phase = Phase::Prefill;
        let prefill = ChunkShape { phase, rows, selected, context: 0, prompt };
        let (phase, rows) = (Phase::Decode, verify);
        let decode = ChunkShape { phase, rows, selected: rows, context: prompt, prompt: 0 };
        Ok([planner.route(prefill)?, planner.route(decode)?])
    }

    fn chunk_rows(&self) -> usize {
        self.options.chunk_rows.unwrap_or(self.options.prompt).max(1)
    }

    /// The draft model on its device.
    fn draft(
        &self,
        traffic: &Traffic,
        draft: &DraftModel,
        kinds: &[DeviceKind],
        tokens: &Tokens,
    ) -> Result<VirtualModel, SocRunError> {
        let devices = Devices::new(self.soc, kinds, &draft.model.workload, self.options)?;
        let without = |info: &DeviceInfo| DeviceInfo { room: None, ..info.clone() };
        let infos: Vec<DeviceInfo> = devices.infos.iter().map(without).collect();
        let device = DeviceId(draft.place(&infos)?);
        let on = self.simulated(&draft.model, &infos, devices.times, tokens)?;
        let planner = Planner::new(PlannerParts {
            model: DRAFT_MODEL,
            graph: Arc::clone(draft.model.graph()),
            devices: infos,
            cost: Arc::new(devices.cost),
            strategy: Arc::new(OneDevice { device }),
            chunk_rows: self.chunk_rows(),
        });
        let kv = pages(&draft.model.kv, traffic.kv(ModelId::default(), &draft.model.kv));
        Ok(VirtualModel::new(planner, kv, traffic.draft_context(), on))
    }

    /// Another model, on its device or by the strategy.
    fn other(
        &self,
        number: ModelId,
        other: &OtherModel,
        kinds: &[DeviceKind],
    ) -> Result<VirtualModel, SocRunError> {
        let OtherModel { model, .. } = other;
        let devices = Devices::new(self.soc, kinds, &model.workload, self.options)?;
        let infos = devices.infos;
        let strategy: Arc<dyn Strategy> = match other.place(&infos)? {
            None => Arc::clone(self.strategy),
            Some(device) => Arc::new(OneDevice { device: DeviceId(device) }),
        };
        let on = self.simulated(model, &infos, devices.times, &Tokens::default())?;
        let planner = Planner::new(PlannerParts {
            model: number,
            graph: Arc::clone(model.graph()),
            devices: infos,
            cost: Arc::new(devices.cost),
            strategy,
            chunk_rows: self.chunk_rows(),
        });
        let none = KvSize { pages: 0, states: 0 };
        let size = self.load.traffic().map_or(none, |traffic| traffic.kv(number, &model.kv));
        let kv = pages(&model.kv, size);
        Ok(VirtualModel::new(planner, kv, self.context(), on))
    }

    fn simulated(
        &self,
        model: &SocModel,
        infos: &[DeviceInfo],
        times: Vec<Arc<dyn TimeModel>>,
        tokens: &Tokens,
    ) -> Result<Vec<SimulatedDevice>, SocRunError> {
        let simulated = infos.iter().zip(times).map(|(info, time)| {
            Ok(SimulatedDevice { device: self.device(model, info, tokens)?, time })
        });
        simulated.collect()
    }

    fn device(
        &self,
        model: &SocModel,
        info: &DeviceInfo,
        tokens: &Tokens,
    ) -> Result<Box<dyn Device>, SocRunError> {
        if let Some(values) = self.load.values() {
            let made = (values.device)(info);
            return made.map_err(|error| SocRunError::Device { reason: error.to_string() });
        }
        let graph = model.graph();
        if self.options.own.iter().any(|device| device.name() == info.name) {
            let has_graphs = self.load.traffic().is_some_and(|traffic| traffic.rules.has_graphs);
            let device = ShapeOnlyDevice::new(info, graph).yielding(tokens).prepared(has_graphs);
            return Ok(Box::new(ShapeQueue::new(info.clone(), device)));
        }
        let fault = self.options.fault.filter(|fault| fault.kind == info.kind);
        let shapes = Shapes::new(info, graph, fault).yielding(tokens);
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
        let shapes_only = self.load.values().is_none();
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
