//! Speculative decoding in virtual time: the engine's scheduler, workers and drafts on two models whose passes
//! take stated times, and whose tokens agree as often as stated.

use std::sync::Arc;

use lapwing_kernels::device::{Blocking, DeviceInfo, DeviceKind, ModelId, PerModel, SlotPool};
use lapwing_kernels::kv::{KvDtype, KvHeads, KvLayout, KvPool};
use lapwing_plan::DeviceId;
use lapwing_plan::cost::Modelled;
use lapwing_plan::planner::{Planner, PlannerParts};
use lapwing_plan::strategy::{LayersOn, Strategy};
use lapwing_plan::time::{TimeModel, TimePerModel};
use lapwing_traces::Nanos;

use super::error::SocRunError;
use super::pass_device::{self, PassDevice, graph};
use crate::draft::{DRAFT_MAX, DraftStats, Drafts, Schedule};
use crate::drive::simulated::{Environment, SimulatedDevice, Simulation, SimulationParts};
use crate::policy::Fcfs;
use crate::scheduler::{KvPages, Scheduler, SchedulerConfig, SchedulerModel, SchedulerParts};

mod acceptance;
mod pass;
mod requests;

pub use acceptance::Acceptance;
use pass::LayeredPass;
pub use pass::Pass;

/// Texts that are generated with speculative decoding.
#[derive(Clone, Debug, PartialEq)]
pub struct Speculation {
    /// A pass of the target.
    pub target: Pass,
    /// A pass of the draft model.
    pub draft: Pass,
    /// Where drafted tokens are right.
    pub acceptance: Acceptance,
    /// When the draft model drafts.
    pub schedule: Schedule,
    /// Devices over which the target's layers are divided, at most [`DEVICES_MAX`]; each takes an equal share of a pass.
    pub target_devices: usize,
    /// Whether the draft model has a device of its own; otherwise it runs on the target's first one.
    pub own_device: bool,
    /// Drafted tokens of a step, at most [`DRAFT_MAX`]; `None`: as many as pay, as in the live engine.
    pub length: Option<usize>,
    /// Texts that are generated at the same time, at most [`REQUESTS_MAX`]. They differ in where drafted tokens are right.
    pub requests: usize,
    /// Tokens of each prompt, which the draft model reads before its first draft.
    pub prompt: usize,
    /// Tokens to generate of each text.
    pub tokens: usize,
}

/// The result of a [`Speculation`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SpeculationOutcome {
    /// Nanoseconds from the first token of all texts to the last.
    pub time: Nanos,
    /// The same without drafts.
    pub time_without: Nanos,
    /// What the drafts of all texts did.
    pub drafts: DraftStats,
    /// Rows that the draft model computed after the prompt, for each generated token.
    pub draft_rows: f64,
}

impl SpeculationOutcome {
    /// The speed as a multiple of that without drafts.
    pub fn speed_up(&self) -> f64 {
        self.time_without.0 as f64 / self.time.0.max(1) as f64
    }
}

/// Most devices of a target.
pub const DEVICES_MAX: usize = 8;

/// Most texts at the same time.
pub const REQUESTS_MAX: usize = 64;

impl Speculation {
    /// Runs it.
    ///
    /// # Errors
    /// [`SocRunError::Option`] and [`SocRunError::Number`] for impossible numbers, and
    /// [`SocRunError::Failed`].
    pub fn run(&self) -> Result<SpeculationOutcome, SocRunError> {
        self.check()?;
        let (time_without, ..) = self.play(None)?;
        let drafts = || {
            let drafts = Drafts::of_model(ModelId(1), self.schedule);
            match self.length {
                None => drafts,
                Some(length) => drafts.always(length),
            }
        };
        let (time, stats, rows) = self.play(Some(&drafts))?;
        let rows = rows.saturating_sub(self.requests * (self.prompt + 1));
        let draft_rows = rows as f64 / (self.requests * (self.tokens - 1)) as f64;
        Ok(SpeculationOutcome { time, time_without, drafts: stats, draft_rows })
    }

    fn check(&self) -> Result<(), SocRunError> {
        let length = self.length.unwrap_or(1);
        let numbers = [
            ("the length of a draft", length, 1, DRAFT_MAX),
            ("the number of tokens", self.tokens, 2, 1 << 16),
            ("the length of the prompt", self.prompt, 1, 1 << 16),
            ("the number of the target's devices", self.target_devices, 1, DEVICES_MAX),
            ("the number of requests", self.requests, 1, REQUESTS_MAX),
        ];
        for (what, found, from, to) in numbers {
            if !(from..=to).contains(&found) {
                return Err(SocRunError::Option { what, found, from, to });
            }
        }
        self.target.check("the target's pass")?;
        self.draft.check("the draft model's pass")?;
        self.acceptance.check()
    }

    /// Time of all tokens but the first, counts of drafts, and rows of the draft model.
    fn play(
        &self,
        drafts: Option<&dyn Fn() -> Drafts>,
    ) -> Result<(Nanos, DraftStats, usize), SocRunError> {
        let context = self.prompt + self.tokens + 1;
        let text = context + DRAFT_MAX + 1;
        let acceptance = self.acceptance.decided(text * self.requests);
        let layers = [self.target_devices, 1];
        let graphs = layers.map(|layers| Arc::new(graph(layers)));
        let infos = self.devices();
        let model = |graph| PassDevice::new(graph, Some((&acceptance, text)));
        let models: Vec<PassDevice> = graphs.iter().map(model).collect();
        let rows = models[1].rows();
        let times = || {
            [(self.target, layers[0]), (self.draft, layers[1])]
                .map(|(pass, layers)| Arc::new(LayeredPass { pass, layers }) as Arc<dyn TimeModel>)
        };
        let time: Arc<dyn TimeModel> = {
            let [target, draft] = times();
            Arc::new(TimePerModel::new(target, [draft]))
        };
        let device = |info: &DeviceInfo| {
            let of_model = |model: usize| Blocking::new(info.clone(), models[model].clone());
            let device = Box::new(PerModel::new(of_model(0), [of_model(1)]));
            SimulatedDevice { device, time: Arc::clone(&time) }
        };
        let (layout, planner) = (layout(), |model: usize| {
            Planner::new(PlannerParts {
                model: ModelId(model),
                graph: Arc::clone(&graphs[model]),
                devices: infos.clone(),
                cost: Arc::new(Modelled {
                    devices: vec![Arc::clone(&time); infos.len()],
                    sync: std::time::Duration::ZERO,
                    copy_rate: f64::INFINITY,
                }),
                strategy: self.strategy(model),
                chunk_rows: context,
            })
        });
        let kv = || {
            let pages = layout.pages_for(text) * self.requests;
            KvPages {
                pool: KvPool::new(u32::try_from(pages).unwrap_or(u32::MAX)),
                states: KvPool::new(0),
                layout: layout.clone(),
            }
        };
        let mut scheduler = Scheduler::new(SchedulerParts {
            config: SchedulerConfig {
                context,
                sequences_max: self.requests,
                permits: infos.len() + 3,
                vocab: pass_device::VOCAB,
            },
            planner: planner(0),
            kv: kv(),
            policy: Box::new(Fcfs),
        })?;
        let context = context + DRAFT_MAX + 1;
        let vocab = pass_device::VOCAB;
        scheduler.add_model(SchedulerModel { planner: planner(1), kv: kv(), context, vocab })?;
        let parts = SimulationParts {
            scheduler,
            devices: infos.iter().map(device).collect(),
            graphs: graphs.to_vec(),
            slots: SlotPool::default(),
            copy_rate: f64::INFINITY,
        };
        let env = Environment { memory: Some(1.0), shapes_only: true, ..Environment::default() };
        let order: Vec<usize> = (0..infos.len()).collect();
        let mut simulation = Simulation::registered(parts, env, &order);
        let (time, stats) = self.generate(&mut simulation, drafts)?;
        Ok((time, stats, rows.load(std::sync::atomic::Ordering::Relaxed)))
    }

    fn devices(&self) -> Vec<DeviceInfo> {
        let target = (1..=self.target_devices).map(|number| format!("target {number}"));
        let draft = self.own_device.then(|| "draft".to_owned());
        target.chain(draft).map(|name| DeviceInfo::new(name, DeviceKind::Cpu)).collect()
    }

    /// The layers of the target on its devices, and the draft model on its own or on the target's first.
    fn strategy(&self, model: usize) -> Arc<dyn Strategy> {
        let devices = match (model, self.own_device) {
            (0, _) => (0..self.target_devices).map(DeviceId).collect(),
            (_, true) => vec![DeviceId(self.target_devices)],
            (_, false) => vec![DeviceId(0)],
        };
        Arc::new(LayersOn { devices })
    }
}

fn layout() -> KvLayout {
    KvLayout::uniform(1, KvHeads::new(1, 2), 64, KvDtype::F16)
}

#[cfg(test)]
mod tests;
