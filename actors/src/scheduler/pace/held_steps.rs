//! Steps that are held back. Alone, a step follows the latest one at once. Beside prompts that use the same devices it is sent only when its
//! streams need it: one token gap after their latest tokens, less the time of the step and of what it may find begun there. Without a target,
//! the gap is a few times as long as the step takes alone. Until then the prompts have the devices; then the step passes them.
//!
//! The scheduler has no clock: it asks its driver for a message at the time at which the first held step is due.

use std::time::Duration;

use lapwing_plan::moment::Candidate;
use lapwing_plan::pace::STEPS_WAITED;

use super::super::lanes::Chosen;
use super::super::running::Sequence;
use super::super::selection::Selection;
use super::super::state::Scheduler;
use super::hold::StepTimes;

impl Scheduler {
    /// How long the streams of a step may wait for its end, which goes one of these ways.
    pub(in super::super) fn times_of_step(
        &self,
        step: &Selection,
        candidates: &[Candidate],
    ) -> StepTimes {
        let alone = candidates.iter().map(|it| it.alone.as_nanos() as f64).fold(f64::MAX, f64::min);
        let measured = self.models[step.kind.model.0].steps.estimate(step.shape.rows);
        let own = if alone > 0.0 { measured.unwrap_or(0.0).max(alone) } else { alone };
        let usual = (1.0 + STEPS_WAITED) * own;
        let streams = step.rows.iter().map(|(at, _)| &self.running[*at]);
        let times = streams.map(|stream| {
            let target = self.gap_of(stream);
            let gap = target.unwrap_or(Duration::from_nanos(usual as u64));
            let left = match target.is_some() || stream.is_streaming() {
                true => self.time_left(stream, gap).max(0.0),
                false => usual,
            };
            StepTimes { gap: gap.as_nanos() as f64, left, more: own - alone }
        });
        let first = times.min_by(|a, b| a.left.total_cmp(&b.left));
        first.unwrap_or(StepTimes { gap: usual, left: usual, more: own - alone })
    }

    /// Whether a step may be held back: all that wait for it are streams.
    pub(in super::super) fn may_hold(&self, step: &Selection) -> bool {
        let mut streams = step.rows.iter().map(|(at, _)| &self.running[*at]);
        streams.all(|stream: &Sequence| stream.is_streaming() && !stream.gives_way())
    }

    /// Whether a chunk is held back: a step until its streams need it, and prompt rows if a held step would find no permit then.
    pub(in super::super) fn is_held(&mut self, chunk: &Selection, chosen: &Chosen) -> bool {
        if chunk.prompts > 0 {
            return self.pace.held.is_any() && self.permits.in_use() >= self.config.permits;
        }
        let Some(hold) = chosen.hold() else { return false };
        self.pace.held.add(self.queue.now + hold);
        true
    }
}
