//! Chunks whose graphs are not ready, and when graphs are prepared.
//!
//! If a model has a strategy for the meantime ([`Planner::with_meanwhile`]), no chunk waits for graphs that another device
//! can spare it: the chunk takes a route without prepared graphs, and the missing graphs are remembered. They are
//! prepared one at a time while the engine has no request, because making them takes cores on which requests compute. A
//! request that arrives meanwhile competes with at most the graph that is being made. An engine that is never idle
//! prepares graphs, too, in a small share of its time.
//!
//! [`Planner::with_meanwhile`]: lapwing_plan::planner::Planner::with_meanwhile

use std::sync::Arc;

use lapwing_kernels::device::GraphKey;
use lapwing_plan::{DeviceId, Phase, Route};
use lapwing_traces::Nanos;

use super::chunks::NextChunk;
use super::effect::SchedulerEffect;
use super::models::ChunkKind;
use super::moments::{May, Moments};
use super::rows::{PlannedBy, RowKinds};
use super::state::Scheduler;
use crate::sequence::Permit;
use crate::traced::{TraceContext, Traced};

impl Scheduler {
    /// Whether other devices compute chunks whose graphs are missing.
    pub(super) fn serves_meanwhile(&self, kind: ChunkKind) -> bool {
        self.models[kind.model.0].planner(kind.output).meanwhile().is_some()
    }

    /// The next chunk of one kind, for devices that need no prepared graphs. Takes the permit if it returns a chunk.
    pub(super) fn next_chunk_meanwhile(
        &mut self,
        kind: ChunkKind,
        permit: &mut Option<Permit>,
        forced: bool,
        effects: &mut Vec<SchedulerEffect>,
    ) -> NextChunk {
        let selection = self.select_paced(kind, PlannedBy::Meanwhile, forced);
        let Some(mut selection) = selection else { return NextChunk::Nothing };
        if selection.shape.phase == Phase::Mixed && self.models[kind.model.0].lanes > 1 {
            let steps = self.select(kind, PlannedBy::Meanwhile, RowKinds::DECODES, 0);
            let Some(steps) = steps else { return NextChunk::Nothing };
            selection = steps;
        }
        match self.route_for(&selection) {
            Ok((chosen, _)) => {
                tracing::debug!(rows = selection.shape.rows, "{}", chosen.route().reason);
                self.graphs.on_meanwhile();
                self.cut(permit, &selection, chosen)
            }
            Err(error) => self.refuse(&selection, &error, effects),
        }
    }

    /// Requests the next graph that chunks have lacked, if it may be prepared now.
    pub(super) fn prepare_ahead(&mut self, now: Nanos, effects: &mut Vec<SchedulerEffect>) {
        let is_idle =
            self.waiting.is_empty() && self.running.is_empty() && self.permits.in_use() == 0;
        let Moments { idle_since, busy_since, .. } = &mut self.moments;
        let (of_now, other) =
            if is_idle { (idle_since, busy_since) } else { (busy_since, idle_since) };
        of_now.get_or_insert(now);
        *other = None;
        if self.ending.is_some() || self.dead.is_some() {
            return;
        }
        let Some(device) = self.graphs.next_wanted() else { return };
        match self.moments.may_prepare(now) {
            May::Now => {
                let Some(request) = self.graphs.ask_for_wanted() else { return };
                self.moments.latest = Some((now, None));
                let request = Traced::new(request, TraceContext::default());
                effects.push(SchedulerEffect::Prepare(request));
            }
            May::At(at) if !self.moments.is_resting => {
                self.moments.is_resting = true;
                effects.push(SchedulerEffect::Rest(device, at));
            }
            May::At(_) | May::No => {}
        }
    }

    /// Tells it that these graphs of a device are ready: its preparer has made them, or found them ready.
    pub fn graphs_are_ready(&mut self, device: DeviceId, keys: impl IntoIterator<Item = GraphKey>) {
        self.graphs.are_ready(device, keys);
    }

    /// Tells it that all graphs are ready, whatever routes chunks take: they were prepared long before, and none is evicted.
    pub fn all_graphs_are_ready(&mut self) {
        self.graphs.has_all = true;
    }

    /// Makes it prepare the graphs of a route as soon as the engine is idle.
    pub fn want_graphs(&mut self, route: &Arc<Route>) {
        self.graphs.want(route);
    }
}
