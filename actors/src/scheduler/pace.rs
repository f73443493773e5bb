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

use std::time::Duration;

use lapwing_plan::Phase;
use lapwing_plan::pace::{TILE, efficient_rows, fitting_rows};
use lapwing_plan::strategy::ChunkShape;
use lapwing_traces::Nanos;

use super::chunk_times::{ChunkTimes, ModelTime, PredictedChunk};
use super::effect::{Note, Noted, SchedulerEffect};
use super::models::ChunkKind;
use super::running::Sequence;
use super::selection::Selection;
use super::state::Scheduler;
use crate::chunk::Chunk;
use crate::message::Progress;
use crate::sequence::SequenceId;
use crate::stats::PaceStats;
use crate::traced::{TraceContext, Traced};

/// What limits the prompt rows of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The stream that is due first. `None` if no stream has a target; the chunk is then kept short for all.
    pub stream: Option<SequenceId>,
    /// Time until that stream is due; 0 if it is late.
    pub slack: Duration,
}

impl Limit {
    /// Records it for a chunk.
    pub(super) fn note(self, chunk: &Chunk, context: TraceContext) -> SchedulerEffect {
        let first = chunk.sequences.first().map(|rows| rows.sequence);
        let sequence = self.stream.or(first).unwrap_or(SequenceId(0));
        let what = Noted::Limited(chunk.id, self);
        SchedulerEffect::Note(Traced::new(Note { sequence, what }, context))
    }
}

/// How many prompt rows a chunk may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// As many as the strategy chooses.
    Free,
    /// At most so many.
    Rows(usize, Limit),
    /// None yet: streams come first.
    Nothing,
}

/// The pace of streams.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Target of requests that name none.
    pub(super) token_gap: Option<Duration>,
    /// Whether streams without a target, and background work, shorten no chunk.
    keeps_whole: bool,
    pub(super) times: ChunkTimes,
    /// Whether prompt rows were held back since the flag was cleared.
    pub(super) has_held: bool,
    pub(super) stats: PaceStats,
}

/// The slack of the stream that is due first.
#[derive(Clone, Copy, Debug)]
struct Slack {
    stream: SequenceId,
    nanos: f64,
}

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

    /// The target of a request.
    pub(super) fn gap_of(&self, sequence: &Sequence) -> Option<Duration> {
        sequence.entry.urgency().token_gap.or(self.pace.token_gap)
    }

    /// How many prompt rows a chunk may hold that would hold `all` without streams. If `forced`, it holds some in any case.
    pub(super) fn room(&mut self, kind: ChunkKind, all: &Selection, forced: bool) -> Room {
        if all.prompts == 0 {
            return Room::Free;
        }
        let devices = self.models[kind.model.0].planner(kind.output).devices();
        let is_background = self.is_background_chunk(all);
        let (mut least, mut untimed, mut held) = (None::<Slack>, is_background, false);
        let now = self.queue.now;
        let streams = self.running.iter().filter(|sequence| sequence.is_streaming());
        for stream in streams.filter(|stream| !stream.gives_way(now)) {
            let is_in_chunk = all.rows.iter().any(|(at, _)| self.running[*at].id == stream.id);
            // On one device, the next step of a stream of the same kind takes the prompt rows along, and a stream of another
            // kind has a step in between.
            let waits = stream.kind() == kind || !stream.is_fed;
            held |= devices == 1 && !is_in_chunk && waits;
            match self.gap_of(stream) {
                None => untimed = true,
                Some(gap) => {
                    let nanos = self.slack(stream, gap, is_in_chunk);
                    if least.is_none_or(|least| nanos < least.nanos) {
                        least = Some(Slack { stream: stream.id, nanos });
                    }
                }
            }
        }
        untimed &= !self.pace.keeps_whole;
        if least.is_none() && !untimed {
            return Room::Free;
        }
        // More chunks in flight would each add their time to the gap. This chunk's permit is taken.
        if !forced && (held || self.permits.in_use() > devices) {
            return Room::Nothing;
        }
        self.room_within(kind, all, least, untimed)
    }

    /// The prompt rows that fit the least slack and keep the chunk short.
    fn room_within(
        &mut self,
        kind: ChunkKind,
        all: &Selection,
        least: Option<Slack>,
        untimed: bool,
    ) -> Room {
        let short = untimed.then(|| {
            let limit = Limit { stream: None, slack: Duration::ZERO };
            (self.efficient_rows(kind, all), limit)
        });
        let timed = least.map(|Slack { stream, nanos }| {
            let slack = Duration::from_nanos(nanos.max(0.0) as u64);
            (self.fitting_rows(kind, all, nanos), Limit { stream: Some(stream), slack })
        });
        match short.into_iter().chain(timed).min_by_key(|(rows, _)| *rows) {
            Some((rows, limit)) if rows < all.prompts => Room::Rows(rows, limit),
            _ => Room::Free,
        }
    }

    /// Time until a stream's next token is due, in ns, less the time of its own step if it is not in the chunk.
    fn slack(&self, stream: &Sequence, gap: Duration, is_in_chunk: bool) -> f64 {
        let due = stream.latest_token + gap;
        let left = due.0 as f64 - self.queue.now.0 as f64;
        let step = match is_in_chunk {
            true => None,
            false => self.models[stream.model.0].steps.estimate(1),
        };
        left - step.unwrap_or(0.0)
    }

    /// The most prompt rows whose predicted time fits a slack in ns.
    fn fitting_rows(&mut self, kind: ChunkKind, all: &Selection, slack: f64) -> usize {
        let decodes = all.decodes();
        fitting_rows(all.prompts, slack, |prompts| {
            let time = self.predicted(kind, &all.shape, Rows { decodes, prompts })?;
            Some(self.models[kind.model.0].corrections.at_most(decodes + prompts, time))
        })
    }

    /// The fewest prompt rows that keep most of the prefill rate of the strategy's chunks.
    fn efficient_rows(&mut self, kind: ChunkKind, all: &Selection) -> usize {
        let whole = self.models[kind.model.0].planner(kind.output).chunk_rows_max();
        efficient_rows(whole, |prompts| {
            let time = self.predicted(kind, &all.shape, Rows { decodes: 0, prompts })?;
            Some(self.models[kind.model.0].corrections.on_average(prompts, time))
        })
    }

    /// Time of a chunk, as the cost model has it. Shapes are rounded, so that few are predicted.
    fn predicted(&mut self, kind: ChunkKind, shape: &ChunkShape, rows: Rows) -> Option<ModelTime> {
        let Rows { decodes, prompts } = rows;
        let whole =
            decodes.next_power_of_two() * usize::from(decodes > 0) + prompts.next_multiple_of(TILE);
        let shape = ChunkShape {
            phase: if decodes > 0 { Phase::Mixed } else { Phase::Prefill },
            rows: whole,
            selected: (decodes + 1).next_power_of_two(),
            context: shape.context,
            prompt: shape.prompt.next_power_of_two(),
        };
        let model = &mut self.models[kind.model.0];
        let share = (decodes + prompts) as f64 / whole as f64;
        let alone = model.time(kind.output, ChunkShape { context: 0, ..shape })?;
        let context = model.time(kind.output, shape)? - alone;
        Some(ModelTime { alone: alone * share, context: context.max(0.0) * share })
    }

    /// Records that a chunk is sent: streams wait for their next tokens from now on, and its predicted time is to be compared
    /// with the real one.
    pub(super) fn on_paced(&mut self, id: u64, sent: &Selection) {
        if sent.prompts == 0 {
            return;
        }
        self.running.iter_mut().for_each(|sequence| sequence.is_fed = false);
        match sent.limit {
            Some(Limit { stream: Some(_), .. }) => self.pace.stats.chunks_limited += 1,
            Some(_) => self.pace.stats.chunks_short += 1,
            None => {}
        }
        // On several devices, chunks overlap: only a chunk alone has the predicted time.
        let kind = sent.kind;
        let devices = self.models[kind.model.0].planner(kind.output).devices();
        if devices > 1 && (self.permits.in_use() > 1 || sent.limit.is_none()) {
            return;
        }
        let rows = Rows { decodes: sent.decodes(), prompts: sent.prompts };
        let Some(time) = self.predicted(kind, &sent.shape, rows) else { return };
        let (model, rows, since) = (kind.model, rows.decodes + rows.prompts, self.queue.now);
        self.pace.times.on_sent(PredictedChunk { id, model, rows, time, since });
    }

    /// Records that a running sequence has a token now: whether it comes later than its target.
    pub(super) fn on_token(&mut self, at: usize, now: Nanos) {
        let sequence = &self.running[at];
        let is_stream = !sequence.is_companion() && sequence.has_generated();
        let gap = self.gap_of(sequence).filter(|_| is_stream);
        let is_late = gap.is_some_and(|gap| now > sequence.latest_token + gap);
        self.pace.stats.tokens_late += u64::from(is_late);
    }

    /// Records that a chunk has ended. Its time counts if all of it was computed.
    pub(super) fn on_chunk_timed(&mut self, progress: &Progress, now: Nanos) {
        let is_whole = progress.sequences.iter().all(|rows| rows.outcome.is_computed());
        let timed = self.pace.times.on_ended(progress.chunk, now);
        if let Some((chunk, time)) = timed.filter(|_| is_whole) {
            self.models[chunk.model.0].corrections.record(chunk.rows, chunk.time, time);
        }
    }
}
