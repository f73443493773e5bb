//! State of the scheduler.

use std::sync::Arc;

use lapwing_kernels::device::ModelId;
use lapwing_plan::needs::Needs;
use lapwing_plan::strategy::ChunkShape;
use lapwing_plan::{PlanError, Route};
use lapwing_traces::event::StallCause;

use super::batches::Forming;
use super::claims::Reserve;
use super::graphs::Graphs;
use super::lanes::Lanes;
use super::models::{ChunkKind, Model, Output, SchedulerModel};
use super::moments::Moments;
use super::pace::targets::Pace;
use super::parts::{SchedulerConfig, SchedulerParts};
use super::queue::Queue;
use super::rows::PlannedBy;
use super::running::Sequence;
use super::waiting::Waiting;
use crate::chunk::Chunk;
use crate::error::RunError;
use crate::message::Shutdown;
use crate::sequence::Permits;
use crate::stats::EngineStats;

/// State of the scheduler.
pub struct Scheduler {
    pub(super) config: SchedulerConfig,
    /// By number.
    pub(super) models: Vec<Model>,
    pub(super) graphs: Graphs,
    pub(super) lanes: Lanes,
    pub(super) moments: Moments,
    pub(super) pace: Pace,
    /// Whether no prompt rows of requests are in flight beside their decode rows.
    pub(super) keeps_apart: bool,
    /// Bandwidth in GB/s beyond which chunks wait for those in flight.
    pub(super) bandwidth_limit: Option<f64>,
    pub(super) reserve: Reserve,
    pub(super) batches: Forming,
    pub(super) queue: Queue,
    pub(super) permits: Permits,
    pub(super) waiting: Waiting,
    /// Requests and the companions of those with a draft model, in order of rank, as of the last chunk.
    pub(super) running: Vec<Sequence>,
    pub(super) next_sequence: u64,
    pub(super) next_chunk: u64,
    pub(super) ending: Option<Shutdown>,
    pub(super) dead: Option<RunError>,
}

impl Scheduler {
    /// A scheduler with nothing to do.
    ///
    /// # Errors
    /// [`PlanError`] when the strategy finds no route for a whole chunk or a decode step.
    pub fn new(parts: SchedulerParts) -> Result<Scheduler, PlanError> {
        let SchedulerConfig { context, vocab, .. } = parts.config;
        let model = SchedulerModel { planner: parts.planner, kv: parts.kv, context, vocab };
        Ok(Scheduler {
            config: parts.config,
            models: vec![Model::new(model)?],
            graphs: Graphs::default(),
            lanes: Lanes::default(),
            moments: Moments::default(),
            pace: Pace::default(),
            keeps_apart: false,
            bandwidth_limit: None,
            reserve: Reserve::default(),
            batches: Forming::default(),
            queue: Queue::new(parts.policy),
            permits: Permits::new(parts.config.permits),
            waiting: Waiting::default(),
            running: Vec::new(),
            next_sequence: 0,
            next_chunk: 0,
            ending: None,
            dead: None,
        })
    }

    /// The route of a chunk of that shape of the first model.
    ///
    /// # Errors
    /// [`PlanError`] when the strategy finds none.
    pub fn route(&mut self, shape: ChunkShape) -> Result<Arc<Route>, PlanError> {
        Ok(Arc::clone(
            &self.models[0].candidates(Output::Logits, PlannedBy::Strategy, shape)?[0].route,
        ))
    }

    /// What a chunk needs of each device, on any route, for recordings; `None` with one device.
    pub fn needs(&mut self, chunk: &Chunk) -> Option<Arc<Needs>> {
        self.models.get_mut(chunk.route.model.0)?.needs(chunk)
    }

    /// Number of waiting and running requests.
    pub fn sequences(&self) -> usize {
        self.waiting.len() + self.running()
    }

    /// Waiting and running sequences.
    pub(super) fn sequences_of_all(&self) -> impl Iterator<Item = &Sequence> {
        self.waiting.iter().chain(&self.running)
    }

    /// Number of waiting requests.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Number of running requests.
    pub fn running(&self) -> usize {
        self.running.iter().filter(|sequence| !sequence.is_companion()).count()
    }

    /// Number of KV pages that sequences lease, or that a lost device may still write.
    pub fn kv_pages_in_use(&self) -> usize {
        let pools = self.models.iter().map(|model| &model.kv.pool);
        let used: usize = pools.map(|pool| pool.capacity() - pool.free_pages()).sum();
        used.saturating_sub(self.unleased_pages())
    }

    /// What the engine has done and is doing, as of the latest message.
    pub fn stats(&self) -> EngineStats {
        let mut stalled: Vec<(StallCause, usize)> = Vec::new();
        let causes = self.sequences_of_all().filter_map(|sequence| sequence.stall);
        for (cause, _) in causes {
            match stalled.iter_mut().find(|(found, _)| *found == cause) {
                Some((_, count)) => *count += 1,
                None => stalled.push((cause, 1)),
            }
        }
        let with_states = self.models.iter().filter(|model| model.has_state);
        self.queue.report(EngineStats {
            waiting: self.waiting(),
            running: self.running(),
            requests: self.running.iter().filter_map(Sequence::as_request).collect(),
            stalled,
            chunks: self.chunks_in_flight(),
            kv_pages: self.models.iter().map(|model| model.kv.pool.capacity()).sum(),
            kv_pages_leased: self.kv_pages_in_use(),
            kv_pages_cached: self.cached_pages(),
            states: with_states.map(|model| model.kv.states.capacity()).sum(),
            states_cached: self.cached_states(),
            graphs: self.graphs.stats(),
            pace: self.pace.stats,
            ..EngineStats::default()
        })
    }

    /// Bytes of a KV page of the first model.
    pub fn kv_page_bytes(&self) -> usize {
        self.models[0].kv.layout.page_bytes()
    }

    /// Number of chunks in flight.
    pub fn chunks_in_flight(&self) -> usize {
        self.permits.in_use()
    }

    /// Adds a model; its number is the number of models before it. The planner must be made for that
    /// number, and every device must hold the model's weights.
    ///
    /// # Errors
    /// [`PlanError`] when the strategy finds no route for a whole chunk or a decode step, or makes
    /// routes for another model.
    pub fn add_model(&mut self, model: SchedulerModel) -> Result<ModelId, PlanError> {
        let (id, found) = (ModelId(self.models.len()), model.planner.model());
        if found != id {
            return Err(PlanError::OtherModel { found: found.0, expected: id.0 });
        }
        self.models.push(Model::new(model)?);
        Ok(id)
    }

    /// Kinds of chunk that running sequences need, in the order of their best-ranked one. On one device with a stream, those
    /// come first in which a decode row is ready of a sequence that has had no token since the latest chunk with prompt
    /// rows, then those with prompt rows. Of those alike the one comes first whose latest such chunk is longest ago, but a
    /// stream whose token is due before a step of another kind could end comes before other decode rows.
    pub(super) fn kinds_in_order(&self) -> Vec<ChunkKind> {
        let takes_turns = self.models[0].planner(Output::Logits).devices() == 1
            && self.running.iter().any(|sequence| sequence.is_streaming() && !sequence.gives_way());
        let turn = |sequence: &Sequence| {
            let kind = sequence.kind();
            let latest = self.models[kind.model.0].latest(kind.output);
            let is_urgent = || self.is_urgent(sequence);
            match sequence.is_decoding() {
                _ if !takes_turns => (0, 0),
                true if sequence.gives_way() => (3, latest.decodes),
                true => {
                    let turn = if is_urgent() { 0 } else { 1 + latest.decodes };
                    (if sequence.is_fed { 2 } else { 0 }, turn)
                }
                false if sequence.due() > 0 => (1, latest.prompts),
                false => (4, 0),
            }
        };
        let mut order: Vec<((u8, u64), ChunkKind)> = Vec::new();
        for sequence in &self.running {
            let (turn, kind) = (turn(sequence), sequence.kind());
            match order.iter_mut().find(|(_, known)| *known == kind) {
                Some((first, _)) => *first = turn.min(*first),
                None => order.push((turn, kind)),
            }
        }
        order.sort_by_key(|(turn, _)| *turn);
        order.into_iter().map(|(_, kind)| kind).collect()
    }
}
