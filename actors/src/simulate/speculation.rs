//! Speculative decoding in virtual time: the engine's scheduler, workers and drafts on two models whose passes
//! take stated times, and whose tokens agree as often as stated.

use std::sync::Arc;

use lapwing_kernels::device::{DeviceInfo, DeviceKind, ModelId, SlotPool};
use lapwing_kernels::kv::{KvDtype, KvHeads, KvLayout, KvPool};
use lapwing_plan::DeviceId;
use lapwing_plan::cost::Modelled;
use lapwing_plan::planner::{Planner, PlannerParts};
use lapwing_plan::strategy::{LayersOn, Strategy};
use lapwing_plan::time::TimeModel;
use lapwing_traces::Nanos;

use super::arrival::{Arrival, Drafting, Served};
use super::error::SocRunError;
use super::pass_graph::graph;
use super::shape_only_device::ShapeOnlyDevice;
use super::shape_queue::ShapeQueue;
use super::tokens::{TEXTS_MAX, Tokens};
use super::virtual_engine::{Rules, VirtualEngine, VirtualModel, VirtualParts};
use crate::draft::{DRAFT_MAX, DraftForm, DraftStats, Schedule};
use crate::drive::simulated::{Environment, SimulatedDevice};
use crate::policy::Fcfs;
use crate::scheduler::{KvPages, SchedulerModel};

mod acceptance;
mod pass;

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
    /// How drafts depart from their usual form.
    pub form: DraftForm,
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
pub const REQUESTS_MAX: usize = TEXTS_MAX;

/// What a run with or without drafts had.
struct Played {
    /// Time of all tokens but the first.
    time: Nanos,
    drafts: DraftStats,
    /// Rows of the draft model.
    rows: usize,
    /// Ids of each text.
    ids: Vec<Vec<u32>>,
}

impl Speculation {
    /// One text of 2000 tokens with synchronous drafts, of as many tokens as pay, that are right with a probability of 0.8. Each
    /// model has a device of its own.
    pub fn new(target: Pass, draft: Pass) -> Speculation {
        Speculation {
            target,
            draft,
            acceptance: Acceptance::Independent { rate: 0.8, seed: 0 },
            schedule: Schedule::Synchronous,
            target_devices: 1,
            form: DraftForm::default(),
            own_device: true,
            length: None,
            requests: 1,
            prompt: 4,
            tokens: 2000,
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// [`SocRunError::Option`] and [`SocRunError::Number`] for impossible numbers, and
    /// [`SocRunError::Failed`].
    pub fn run(&self) -> Result<SpeculationOutcome, SocRunError> {
        self.check()?;
        let without = self.play(None)?;
        let Played { time, drafts, rows, ids } = self.play(Some(self.drafting()))?;
        debug_assert_eq!(ids, without.ids, "drafts change no token");
        let time_without = without.time;
        let rows = rows.saturating_sub(self.requests * (self.prompt + 1));
        let draft_rows = rows as f64 / (self.requests * (self.tokens - 1)) as f64;
        Ok(SpeculationOutcome { time, time_without, drafts, draft_rows })
    }

    fn drafting(&self) -> Drafting {
        let Speculation { schedule, length, form, .. } = *self;
        Drafting::Model { schedule, length, form }
    }

    /// Checks its numbers.
    ///
    /// # Errors
    /// [`SocRunError::Option`] and [`SocRunError::Number`] for impossible ones.
    pub fn check(&self) -> Result<(), SocRunError> {
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

    fn play(&self, drafting: Option<Drafting>) -> Result<Played, SocRunError> {
        let tokens = Tokens::of_texts(&self.acceptance, self.text());
        let infos = self.devices();
        let env = Environment { memory: Some(1.0), shapes_only: true, ..Environment::default() };
        let mut engine = VirtualEngine::new(VirtualParts {
            model: self.model(0, &infos, &tokens),
            others: vec![self.model(1, &infos, &tokens)],
            slots: SlotPool::default(),
            policy: Box::new(Fcfs),
            sequences_max: self.requests,
            permits: infos.len() + 3,
            rules: Rules::default(),
            copy_rate: f64::INFINITY,
            env: Some(env),
            order: (0..infos.len()).collect(),
        })?;
        let arrival = |number| {
            let ids = vec![Tokens::of_request(number); self.prompt];
            Arrival { drafting, ..Arrival::new(Nanos(0), ids, self.tokens) }
        };
        let arrivals: Vec<Arrival> = (0..self.requests).map(arrival).collect();
        let served = engine.serve(&arrivals, None)?;
        let (mut first, mut last, mut stats) = (None, Nanos(0), DraftStats::default());
        let mut all = Vec::new();
        for Served { tokens, ids, drafts, failed, .. } in served {
            if let Some(failed) = failed {
                return Err(SocRunError::Failed { at: failed.at, error: failed.error });
            }
            first = first.into_iter().chain(tokens.first().copied()).min();
            last = tokens.last().copied().unwrap_or_default().max(last);
            stats.add(&drafts.unwrap_or_default());
            all.push(ids);
        }
        let time = Nanos(last.0 - first.unwrap_or(last).0);
        Ok(Played { time, drafts: stats, rows: tokens.drafted(), ids: all })
    }

    /// Positions of a text, those of a draft behind its end included.
    fn text(&self) -> usize {
        self.prompt + self.tokens + 1 + self.form.tokens_max() + 1
    }

    /// The target or the draft model.
    fn model(&self, number: usize, infos: &[DeviceInfo], tokens: &Tokens) -> VirtualModel {
        let of_target = number == 0;
        let (pass, layers) =
            if of_target { (self.target, self.target_devices) } else { (self.draft, 1) };
        let graph = Arc::new(graph(layers));
        let time: Arc<dyn TimeModel> = Arc::new(LayeredPass { pass, layers });
        let device = |info: &DeviceInfo| {
            let device = ShapeOnlyDevice::new(info, &graph).yielding(tokens);
            let device = Box::new(ShapeQueue::new(info.clone(), device));
            SimulatedDevice { device, time: Arc::clone(&time) }
        };
        let devices = infos.iter().map(device).collect();
        let target_context = self.prompt + self.tokens + 1;
        let planner = Planner::new(PlannerParts {
            model: ModelId(number),
            graph: Arc::clone(&graph),
            devices: infos.to_vec(),
            cost: Arc::new(Modelled {
                devices: vec![Arc::clone(&time); infos.len()],
                sync: std::time::Duration::ZERO,
                copy_rate: f64::INFINITY,
            }),
            strategy: self.strategy(number),
            chunk_rows: target_context,
        });
        let layout = layout();
        let pages = layout.pages_for(self.text()) * self.requests;
        let kv = KvPages {
            pool: KvPool::new(u32::try_from(pages).unwrap_or(u32::MAX)),
            states: KvPool::new(0),
            layout,
        };
        let context = if of_target { target_context } else { self.text() };
        let vocab = Tokens::vocabulary(self.requests);
        VirtualModel { graph, scheduled: SchedulerModel { planner, kv, context, vocab }, devices }
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
mod laws;
#[cfg(test)]
mod tests;
