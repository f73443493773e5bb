//! Cuts ready rows into chunks.

use std::sync::Arc;

use lapwing_kernels::device::{Batch, Payload};

use super::effect::{RouteChosen, SchedulerEffect, Stall};
use super::end::fail;
use super::graphs::Readiness;
use super::lanes::{Chosen, SentChunk};
use super::models::ChunkKind;
use super::rows::{Limit, PlannedBy, RowKinds};
use super::running::{Sequence, devices};
use super::selection::Selection;
use super::state::Scheduler;
use super::step_times::DecodeChunk;
use crate::chunk::{Chunk, Life};
use crate::error::RunError;
use crate::sequence::Permit;
use crate::traced::{TraceContext, Traced};
use lapwing_plan::Phase;
use lapwing_plan::Route;

/// The result of a search for a chunk to send.
pub(super) enum NextChunk {
    /// The chunk, and why it is as it is.
    Chunk(Box<Chunk>, Box<Why>),
    /// Sequences without a route have failed, so others may now be admitted.
    Failed,
    /// No chunk can be sent.
    Nothing,
}

/// Why a chunk is sent now, with these rows, on this route.
pub(super) struct Why {
    /// The longest stall of its rows.
    pub(super) stall: Option<Stall>,
    /// What limits its prompt rows.
    pub(super) limit: Option<Limit>,
    /// Which of several routes it takes.
    pub(super) route: Option<RouteChosen>,
}

impl Scheduler {
    /// The next chunk: a decode row of every sequence that has one, and prompt rows up to the
    /// strategy's chunk size. If the graphs for both together are not ready, the chunk holds only
    /// decode rows or only prompt rows. The missing graphs of the other kind are then requested, so
    /// neither kind waits for the other.
    pub(super) fn next_chunk(
        &mut self,
        permit: Permit,
        effects: &mut Vec<SchedulerEffect>,
    ) -> NextChunk {
        let mut permit = Some(permit);
        self.pace.has_held = false;
        let next = self.next_chunk_of_any(&mut permit, false, effects);
        // With nothing in flight, no message would come for which held rows could wait.
        let has_held = self.pace.has_held || self.running.iter().any(Sequence::gives_way);
        match next {
            NextChunk::Nothing if has_held && self.permits.in_use() == 1 => {
                self.next_chunk_of_any(&mut permit, true, effects)
            }
            NextChunk::Nothing => self.pass_ahead(&mut permit),
            next => next,
        }
    }

    fn next_chunk_of_any(
        &mut self,
        permit: &mut Option<Permit>,
        forced: bool,
        effects: &mut Vec<SchedulerEffect>,
    ) -> NextChunk {
        for kind in self.kinds_in_order() {
            match self.next_chunk_of(kind, permit, forced, effects) {
                NextChunk::Nothing => {}
                next => return next,
            }
        }
        NextChunk::Nothing
    }

    /// The next chunk of one kind. Takes the permit if it returns a chunk. If `forced`, prompt rows are not held back.
    fn next_chunk_of(
        &mut self,
        kind: ChunkKind,
        permit: &mut Option<Permit>,
        forced: bool,
        effects: &mut Vec<SchedulerEffect>,
    ) -> NextChunk {
        let Some(both) = self.select_paced(kind, PlannedBy::Strategy, forced) else {
            return NextChunk::Nothing;
        };
        let mixed = both.shape.phase == Phase::Mixed;
        let alone = if mixed {
            // On several devices a step passes the prompts of others, on a route of its own.
            if self.models[kind.model.0].lanes == 1
                && let Ok((route, Readiness::Ready)) = self.route_for(&both)
            {
                return self.cut(permit, &both, route);
            }
            let Selection { by, prompts, limit, .. } = both;
            let prompts = self.select(kind, by, RowKinds::PROMPTS, prompts);
            let prompts = prompts.map(|it| Selection { limit, ..it });
            [self.select(kind, by, RowKinds::DECODES, 0), prompts]
        } else {
            [Some(both), None]
        };
        let (mut ready, mut missing) = (None, Vec::new());
        for selection in alone.into_iter().flatten() {
            match self.route_for(&selection) {
                Ok((route, Readiness::Ready)) => {
                    ready.get_or_insert((selection, route));
                }
                Ok((chosen, Readiness::Missing)) => {
                    missing.push((selection.rows, Arc::clone(chosen.route())));
                }
                Ok((_, Readiness::Refused(device, error))) => {
                    let device =
                        self.models[kind.model.0].planner(kind.output).device(device).to_owned();
                    let error = RunError::Device { device, reason: error.to_string() };
                    return self.refuse(&selection, &error, effects);
                }
                Err(error) => return self.refuse(&selection, &error, effects),
            }
        }
        if self.serves_meanwhile(kind) {
            missing.iter().for_each(|(_, route)| self.graphs.want(route));
            if ready.is_none() && !missing.is_empty() {
                return self.next_chunk_meanwhile(kind, permit, forced, effects);
            }
            missing.clear();
        }
        let next = match ready {
            Some((selection, route)) => self.cut(permit, &selection, route),
            None => NextChunk::Nothing,
        };
        // Only after the chunk is cut: its graphs must not be evicted.
        for (rows, route) in missing {
            self.ask_for_graphs(&rows, &route, effects);
        }
        next
    }

    /// Requests the missing graphs of a route for the selected rows.
    fn ask_for_graphs(
        &mut self,
        rows: &[(usize, usize)],
        route: &Route,
        effects: &mut Vec<SchedulerEffect>,
    ) {
        rows.iter().for_each(|(at, _)| self.running[*at].lacks_graphs = true);
        let context = TraceContext::of_all(rows.iter().map(|(at, _)| self.running[*at].context));
        for request in self.graphs.ask(route) {
            effects.push(SchedulerEffect::Prepare(Traced::new(request, context)));
        }
    }

    /// Fails the selected sequences: no chunk can be made of their rows.
    pub(super) fn refuse(
        &mut self,
        selection: &Selection,
        error: &RunError,
        effects: &mut Vec<SchedulerEffect>,
    ) -> NextChunk {
        for (at, _) in selection.rows.iter().rev() {
            if self.running[*at].is_companion() {
                self.end_companion(*at, &error.to_string(), effects);
                continue;
            }
            fail(&mut self.queue, self.running.remove(*at), error, effects);
        }
        self.graphs.clear_transient_refusals();
        NextChunk::Failed
    }

    /// The route of a chunk, and whether its graphs are ready.
    pub(super) fn route_for(
        &mut self,
        selection: &Selection,
    ) -> Result<(Chosen, Readiness), RunError> {
        let Selection { kind, shape, by, .. } = selection;
        let candidates = self.models[kind.model.0].candidates(kind.output, *by, *shape);
        let candidates = candidates.map_err(|source| RunError::Plan { source })?;
        Ok(self.chosen(candidates, selection))
    }

    /// Cuts a chunk from the selected rows.
    pub(super) fn cut(
        &mut self,
        permit: &mut Option<Permit>,
        selection: &Selection,
        chosen: Chosen,
    ) -> NextChunk {
        let Some(chosen) = self.within_bandwidth(selection, chosen) else {
            return NextChunk::Nothing;
        };
        let Some(permit) = permit.take() else { return NextChunk::Nothing };
        let route = Arc::clone(chosen.route());
        let id = self.next_chunk;
        let mut batch = Batch { model: route.model, ..Batch::default() };
        let mut sequences = Vec::new();
        let mut stall: Option<Stall> = None;
        let is_wanted = |(at, rows): &(usize, usize)| self.running[*at].passes_rows_on(*rows);
        let is_wanted = selection.rows.iter().any(is_wanted);
        batch.passes_on = self.models[route.model.0].passes_on(&route, is_wanted);
        for (at, rows) in &selection.rows {
            let sequence = &mut self.running[*at];
            sequence.reserve_states(*rows, &self.models[route.model.0]);
            let own = sequence.stall.take();
            stall = stall.into_iter().chain(own).min_by_key(|(_, since)| *since);
            sequences.push(sequence.send_rows(*rows, id, &route, &mut batch));
            self.queue.on_rows(sequence, *rows);
        }
        self.next_chunk += 1;
        let phase = selection.shape.phase;
        if phase != Phase::Prefill {
            self.batches.on_step();
            // The chunk's own permit is in use.
            let timed = phase == Phase::Decode && self.permits.in_use() == 1;
            let (rows, since) = (batch.rows(), self.queue.now);
            let devices = devices(&route);
            let step = DecodeChunk { id, rows, since, timed, devices };
            self.models[route.model.0].decoding.push(step);
        }
        self.graphs.on_dispatch(id, &route);
        self.on_paced(id, selection);
        let turn = self.turn_of(selection, chosen.haste);
        let (life, lanes) = (Arc::<Life>::default(), chosen.lanes());
        life.spare(chosen.spare());
        let runs = self.lanes.runs_of(&chosen);
        let sent = SentChunk { id, life: &life, runs: &runs };
        let chosen = self.lanes.on_sent(sent, chosen, self.queue.now);
        let trace = self.chunk_span(id, batch.rows(), selection, &route);
        let chunk = Chunk {
            id,
            phase,
            turn,
            route,
            cursor: 0,
            payload: Arc::new(Payload { batch, ..Payload::default() }),
            sequences,
            permit,
            trace,
            lanes,
            runs,
            life,
        };
        let why = Why { stall, limit: selection.limit, route: chosen };
        NextChunk::Chunk(Box::new(chunk), Box::new(why))
    }
}
