//! A server of many requests in virtual time: the engine's scheduler, policies and prefix cache in front of one
//! device whose passes take stated times and yield token 0.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{DeviceInfo, DeviceKind, ModelId, SlotPool};
use lapwing_kernels::kv::{KvDtype, KvHeads, KvLayout, KvPool};
use lapwing_plan::DeviceId;
use lapwing_plan::cost::Modelled;
use lapwing_plan::planner::{Planner, PlannerParts};
use lapwing_plan::strategy::OneDevice;
use lapwing_plan::time::TimeModel;
use lapwing_traces::Nanos;

use super::arrival::{Arrival, Served};
use super::error::SocRunError;
use super::pass_graph::graph;
use super::shape_only_device::ShapeOnlyDevice;
use super::shape_queue::ShapeQueue;
use super::virtual_engine::{Rules, VirtualEngine, VirtualModel, VirtualParts};
use crate::drive::simulated::SimulatedDevice;
use crate::policy::QueuePolicy;
use crate::scheduler::{Batches, KvPages, Reserve, SchedulerModel};
use crate::stats::EngineStats;

/// A server of one device.
pub struct Serving {
    /// Time of a pass; its jobs have one node.
    pub time: Arc<dyn TimeModel>,
    /// Tokens that the KV cache holds.
    pub kv_tokens: usize,
    /// Tokens of a KV page.
    pub page_rows: usize,
    /// Maximum prompt rows of a pass.
    pub chunk_rows: usize,
    /// Maximum requests computed at the same time.
    pub sequences_max: usize,
    /// Whether requests share the pages of their common prefixes.
    pub prefix_cache: bool,
    /// Target of the time between two tokens of a stream; `None` has passes as large as they may be, as published servers do.
    pub token_gap: Option<Duration>,
    /// How much room a request finds when it is admitted.
    pub reserve: Reserve,
    /// How batches of prompts are formed.
    pub batches: Batches,
    /// Orders requests.
    pub policy: Box<dyn QueuePolicy>,
}

/// One past the largest token id of a prompt.
pub const VOCAB: usize = 1 << 31;

impl Serving {
    /// Serves requests until all have ended, or until a virtual time; the result has one entry for each request,
    /// and what the server did in all.
    ///
    /// # Errors
    /// [`SocRunError`] if no pass can be planned, or requests are left although nothing happens any more.
    pub fn run(
        self,
        arrivals: &[Arrival],
        until: Option<Nanos>,
    ) -> Result<(Vec<Served>, EngineStats), SocRunError> {
        let context = arrivals.iter().map(|a| a.ids.len() + a.tokens + 1).max().unwrap_or(1);
        let mut engine = self.engine(context)?;
        let served = engine.serve(arrivals, until)?;
        Ok((served, engine.stats()))
    }

    /// Its engine, for requests of at most so many tokens.
    pub(super) fn engine(self, context: usize) -> Result<VirtualEngine, SocRunError> {
        let graph = Arc::new(graph(0));
        let info = DeviceInfo::new("server", DeviceKind::Gpu);
        let planner = Planner::new(PlannerParts {
            model: ModelId(0),
            graph: Arc::clone(&graph),
            devices: vec![info.clone()],
            cost: Arc::new(Modelled {
                devices: vec![Arc::clone(&self.time)],
                sync: Duration::ZERO,
                copy_rate: f64::INFINITY,
            }),
            strategy: Arc::new(OneDevice { device: DeviceId(0) }),
            chunk_rows: self.chunk_rows,
        });
        let page_rows = self.page_rows.max(1);
        let layout = KvLayout::uniform(1, KvHeads::new(1, 2), page_rows, KvDtype::F16);
        let pages = u32::try_from(self.kv_tokens / page_rows).unwrap_or(u32::MAX);
        let kv = KvPages { pool: KvPool::new(pages), states: KvPool::new(0), layout };
        let device = ShapeOnlyDevice::new(&info, &graph);
        let device = Box::new(ShapeQueue::new(info, device));
        let model = VirtualModel {
            graph,
            scheduled: SchedulerModel { planner, kv, context, vocab: VOCAB },
            devices: vec![SimulatedDevice { device, time: self.time }],
        };
        VirtualEngine::new(VirtualParts {
            model,
            others: Vec::new(),
            slots: SlotPool::default(),
            policy: self.policy,
            sequences_max: self.sequences_max,
            // A server with one permit forms each batch when the one before has ended.
            permits: 1,
            rules: Rules {
                token_gap: self.token_gap,
                keeps_whole: self.token_gap.is_none(),
                reserve: self.reserve,
                batches: self.batches,
                prefix_rows: self.prefix_cache.then_some(page_rows),
                ..Rules::default()
            },
            copy_rate: f64::INFINITY,
            env: None,
            order: vec![0],
        })
    }
}

#[cfg(test)]
mod tests;
