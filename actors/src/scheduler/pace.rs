//! Prompts beside streams: how many prompt rows a chunk may hold, so that every stream has its next token in time.
//!
//! A stream is a request that has generated a token. Its next token is due one token gap after the last one. A chunk with
//! prompt rows holds the most of them whose predicted time fits the least slack of all streams, which is the time until a
//! token is due (QoServe, ASPLOS 2026; Sarathi-Serve, OSDI 2024, has a fixed number of rows). Predictions are those of the cost
//! model, corrected by what chunks took. Beside streams without a target, and for background work, a chunk has the fewest rows
//! that keep most of the prefill rate.
//!
//! Streams come first, but only as far as they are due: after a token of each stream, the next chunk holds prompt rows,
//! however little slack there is. So neither starves.

use std::sync::Arc;
use std::time::Duration;

use lapwing_plan::Phase;
use lapwing_plan::moment::Candidate;
use lapwing_plan::pace::{
    EFFICIENT_MIN, STEPS_WAITED, TILE, efficient_rows, fitting_rows, rows_between_steps,
    wait_of_step,
};
use lapwing_plan::strategy::ChunkShape;
use lapwing_traces::Nanos;

mod slack;
pub(super) mod targets;

use slack::Slack;

use super::chunk_times::{Corrections, ModelTime, PredictedChunk};
use super::rows::{Limit, Room};
use super::running::Sequence;
use super::selection::Selection;
use super::state::Scheduler;
use crate::message::Progress;

/// Rows of a chunk.
#[derive(Clone, Copy, Debug)]
struct Rows {
    decodes: usize,
    prompts: usize,
}

impl Scheduler {
    /// Sets the target of requests that name none: the longest time that a stream is to wait for a token after the last one,
    /// while the prompts of others are computed. Without it, chunks beside streams have the fewest rows that keep most of the
    /// prefill rate.
    pub fn set_token_gap(&mut self, token_gap: Option<Duration>) {
        self.pace.token_gap = token_gap;
    }

    /// Lets streams without a target, and background work, shorten no chunk, as in servers that know no such rule.
    pub fn keep_chunks_whole(&mut self) {
        self.pace.keeps_whole = true;
    }

    /// How many prompt rows a chunk may hold that would hold `all` without streams. If `forced`, it holds some in any case.
    pub(super) fn room(&mut self, all: &Selection, forced: bool) -> Room {
        if all.prompts == 0 {
            return Room::Free;
        }
        let lanes = self.models[all.kind.model.0].lanes;
        let least = self.slack_beside(all);
        let mut untimed = self.is_background_chunk(all)
            || self.streams().any(|(_, stream)| self.gap_of(stream).is_none());
        untimed &= !self.pace.keeps_whole;
        if least.is_none() && !untimed {
            return Room::Free;
        }
        // More chunks in flight would each add their time to the gap. This chunk's permit is taken.
        let devices = self.models[all.kind.model.0].planner(all.kind.output).devices();
        let waits = self.permits.in_use() > devices || devices == 1 && self.waits_for_steps(all);
        if !forced && waits {
            return Room::Nothing;
        }
        match lanes {
            1 => self.room_within(all, least, untimed),
            _ => self.room_between_steps(all, least),
        }
    }

    /// On several devices, steps pass prompts at the borders of stages: the prompt rows by which a step waits for no longer than its
    /// streams have time, or than it takes itself, twice.
    fn room_between_steps(&mut self, all: &Selection, least: Option<Slack>) -> Room {
        let own = self.models[all.kind.model.0].steps.estimate(1);
        let Some(own) = own.or_else(|| self.step_alone(all)) else { return Room::Free };
        let (limit, slack) = match least {
            Some(Slack { stream, nanos }) => (Some(stream), nanos.max(own)),
            None => (None, STEPS_WAITED * own),
        };
        let least = EFFICIENT_MIN.min(all.prompts);
        let rows = rows_between_steps(all.prompts, slack, |rows| self.wait_beside(all, rows));
        let rows = if limit.is_some() { rows } else { rows.max(least) };
        let slack = Duration::from_nanos(if limit.is_some() { slack as u64 } else { 0 });
        match rows < all.prompts {
            true => Room::Rows(rows, Limit { stream: limit, slack }),
            false => Room::Free,
        }
    }

    /// Predicted time of a step of one row on the best of its routes.
    fn step_alone(&mut self, beside: &Selection) -> Option<f64> {
        let steps = self.step_candidates(beside)?;
        let times = steps.iter().map(|step| step.alone.as_nanos() as f64);
        times.min_by(f64::total_cmp)
    }

    /// How long a step waits at most for stages of a chunk with so many prompt rows that have begun, on the best of its routes.
    fn wait_beside(&mut self, all: &Selection, prompts: usize) -> Option<f64> {
        let prompt = all.shape.prompt.next_power_of_two();
        let (phase, context) = (Phase::Prefill, all.shape.context);
        let shape = ChunkShape { phase, rows: prompts, selected: 1, context, prompt };
        let steps = self.step_candidates(all)?;
        let model = &mut self.models[all.kind.model.0];
        let chunk = model.candidates(all.kind.output, all.by, shape).ok()?;
        wait_of_step(&steps, &chunk[0])
    }

    /// The routes that a step of one row may take.
    fn step_candidates(&mut self, beside: &Selection) -> Option<Arc<[Candidate]>> {
        let (phase, context) = (Phase::Decode, beside.shape.context);
        let shape = ChunkShape { phase, rows: 1, selected: 1, context, prompt: 0 };
        let model = &mut self.models[beside.kind.model.0];
        model.candidates(beside.kind.output, beside.by, shape).ok()
    }

    /// Whether prompt rows wait, on one device: until each stream has had a token since the latest prompt rows, and until the
    /// step of one of the same kind takes them along, if there is one.
    fn waits_for_steps(&self, all: &Selection) -> bool {
        let has_pages = |stream: &Sequence| stream.has_pages(&self.models[stream.model.0].kv);
        // A stream without pages has no step before another request ends.
        let streams = || self.streams().filter(|(_, stream)| has_pages(stream));
        let takes_along = streams().any(|(at, _)| all.holds(at));
        streams().any(|(at, stream)| {
            let of_kind = stream.kind() == all.kind && !takes_along;
            !all.holds(at) && (of_kind || !stream.is_fed)
        })
    }

    /// The prompt rows that fit the least slack and keep the chunk short.
    fn room_within(&mut self, all: &Selection, least: Option<Slack>, untimed: bool) -> Room {
        let short = untimed.then(|| {
            let limit = Limit { stream: None, slack: Duration::ZERO };
            (self.efficient_rows(all), limit)
        });
        let timed = least.map(|Slack { stream, nanos }| {
            let slack = Duration::from_nanos(nanos.max(0.0) as u64);
            (self.fitting_rows(all, nanos), Limit { stream: Some(stream), slack })
        });
        match short.into_iter().chain(timed).min_by_key(|(rows, _)| *rows) {
            Some((rows, limit)) if rows < all.prompts => Room::Rows(rows, limit),
            _ => Room::Free,
        }
    }

    /// The most prompt rows whose predicted time fits a slack in ns.
    fn fitting_rows(&mut self, all: &Selection, slack: f64) -> usize {
        let decodes = all.decodes();
        fitting_rows(all.prompts, slack, |prompts| {
            let time = self.predicted(all, Rows { decodes, prompts })?;
            Some(self.corrections(all).at_most(decodes + prompts, time))
        })
    }

    /// The fewest prompt rows that keep most of the prefill rate of the strategy's chunks.
    fn efficient_rows(&mut self, all: &Selection) -> usize {
        let whole = self.models[all.kind.model.0].planner(all.kind.output).chunk_rows_max();
        efficient_rows(whole, |prompts| {
            let time = self.predicted(all, Rows { decodes: 0, prompts })?;
            Some(self.corrections(all).of_any_size(time))
        })
    }

    fn corrections(&self, chunk: &Selection) -> &Corrections {
        &self.models[chunk.kind.model.0].corrections[chunk.by as usize]
    }

    /// Time of a chunk like that one with other rows, as the cost model has it. Shapes are rounded, so that few are predicted.
    fn predicted(&mut self, chunk: &Selection, rows: Rows) -> Option<ModelTime> {
        let Rows { decodes, prompts } = rows;
        let tiles = match prompts < TILE {
            true => prompts.next_power_of_two(),
            false => prompts.next_multiple_of(TILE),
        };
        let whole = decodes.next_power_of_two() * usize::from(decodes > 0) + tiles;
        let shape = ChunkShape {
            phase: if decodes > 0 { Phase::Mixed } else { Phase::Prefill },
            rows: whole,
            selected: (decodes + 1).next_power_of_two(),
            context: chunk.shape.context,
            prompt: chunk.shape.prompt.next_power_of_two(),
        };
        let (output, by) = (chunk.kind.output, chunk.by);
        let model = &mut self.models[chunk.kind.model.0];
        let share = (decodes + prompts) as f64 / whole as f64;
        let alone = model.time(output, by, ChunkShape { context: 0, ..shape })?;
        let context = model.time(output, by, shape)? - alone;
        Some(ModelTime { alone: alone * share, context: context.max(0.0) * share })
    }

    /// Records that a chunk is sent: streams wait for their next tokens from now on, and its predicted time is to be compared
    /// with the real one.
    pub(super) fn on_paced(&mut self, id: u64, sent: &Selection) {
        let latest = self.models[sent.kind.model.0].latest_mut(sent.kind.output);
        if sent.decodes() > 0 {
            latest.decodes = id;
        }
        if sent.prompts == 0 {
            return;
        }
        latest.prompts = id;
        self.running.iter_mut().for_each(|sequence| sequence.is_fed = false);
        match sent.limit {
            Some(Limit { stream: Some(_), .. }) => self.pace.stats.chunks_limited += 1,
            Some(_) => self.pace.stats.chunks_short += 1,
            None => {}
        }
        let Selection { kind, by, .. } = *sent;
        // On several devices, chunks overlap: only a chunk alone has the predicted time.
        let devices = self.models[kind.model.0].planner(kind.output).devices();
        if devices > 1 && (self.permits.in_use() > 1 || sent.limit.is_none()) {
            return;
        }
        let rows = Rows { decodes: sent.decodes(), prompts: sent.prompts };
        let Some(time) = self.predicted(sent, rows) else { return };
        let (model, rows, since) = (kind.model, rows.decodes + rows.prompts, self.queue.now);
        let is_limited = sent.limit.is_some();
        self.pace.times.on_sent(PredictedChunk { id, model, by, rows, time, since, is_limited });
    }

    /// Records that a running sequence has a token now: whether it comes later than its target.
    pub(super) fn on_token(&mut self, at: usize, now: Nanos) {
        let sequence = &self.running[at];
        let is_request = !sequence.is_companion();
        let gap = self.gap_of(sequence).filter(|_| is_request && sequence.has_generated());
        let is_late = gap.is_some_and(|gap| now > sequence.latest_token + gap);
        self.pace.stats.tokens_late += u64::from(is_late);
        if is_request {
            self.end_turn(at);
        }
    }

    /// Records that a chunk has ended. Its time counts if all of it was computed.
    pub(super) fn on_chunk_timed(&mut self, progress: &Progress, now: Nanos) {
        let is_whole = progress.sequences.iter().all(|rows| rows.outcome.is_computed());
        let timed = self.pace.times.on_ended(progress.chunk, now);
        if let Some((chunk, time)) = timed.filter(|_| is_whole) {
            let corrections = &mut self.models[chunk.model.0].corrections[chunk.by as usize];
            if chunk.is_limited {
                let predicted = corrections.on_average(chunk.rows, chunk.time);
                self.pace.stats.record_error(predicted, time);
            }
            corrections.record(chunk.rows, chunk.time, time);
        }
    }
}
