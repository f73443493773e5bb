//! When the next tokens of streams are due.

use std::time::Duration;

use lapwing_kernels::device::ModelId;

use super::super::running::Sequence;
use super::super::selection::Selection;
use super::super::state::Scheduler;
use crate::sequence::SequenceId;

/// The slack of the stream that is due first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slack {
    pub(super) stream: SequenceId,
    /// Time until its token is due, in ns; negative if it is late.
    pub(super) nanos: f64,
}

impl Scheduler {
    /// The target of a request.
    pub(in super::super) fn gap_of(&self, sequence: &Sequence) -> Option<Duration> {
        sequence.entry.urgency().token_gap.or(self.pace.token_gap)
    }

    /// Streams that give way to none, by their place among the running sequences.
    pub(super) fn streams(&self) -> impl Iterator<Item = (usize, &Sequence)> {
        let running = self.running.iter().enumerate();
        running.filter(|(_, sequence)| sequence.is_streaming() && !sequence.gives_way())
    }

    /// The slack of the stream that is due first, beside a chunk. `None` if none has a target.
    pub(super) fn slack_beside(&self, chunk: &Selection) -> Option<Slack> {
        let slacks = self.streams().filter_map(|(at, stream)| {
            let nanos = self.slack(stream, self.gap_of(stream)?, chunk.holds(at));
            Some(Slack { stream: stream.id, nanos })
        });
        slacks.min_by(|a, b| a.nanos.total_cmp(&b.nanos))
    }

    /// Time until a stream's next token is due, in ns, less the time of its own step if it is not in the chunk.
    fn slack(&self, stream: &Sequence, gap: Duration, is_in_chunk: bool) -> f64 {
        let step = match is_in_chunk {
            true => None,
            false => self.models[stream.model.0].steps.estimate(1),
        };
        self.time_left(stream, gap) - step.unwrap_or(0.0)
    }

    /// Time until a stream's next token is due, in ns.
    pub(in super::super) fn time_left(&self, stream: &Sequence, gap: Duration) -> f64 {
        let due = stream.latest_token + gap;
        due.0 as f64 - self.queue.now.0 as f64
    }

    /// The least time, in ns, until a token is due of the streams of a model. `None` if none has a target.
    pub(in super::super) fn least_slack(&self, model: ModelId) -> Option<f64> {
        let streams = self.streams().filter(|(_, stream)| stream.model == model);
        let left = streams
            .filter_map(|(_, stream)| self.gap_of(stream).map(|gap| self.time_left(stream, gap)));
        left.min_by(f64::total_cmp)
    }

    /// Whether a stream's next token is due so soon that its step comes before one of another kind.
    pub(in super::super) fn is_urgent(&self, sequence: &Sequence) -> bool {
        let gap =
            self.gap_of(sequence).filter(|_| sequence.is_streaming() && !sequence.gives_way());
        let Some(gap) = gap else { return false };
        let steps = self.models.iter().filter_map(|model| model.steps.estimate(1));
        let longest = steps.fold(0.0, f64::max);
        self.slack(sequence, gap, false) < longest
    }
}
