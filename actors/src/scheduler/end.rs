//! The end of a sequence.

use lapwing_traces::Nanos;
use lapwing_traces::event::Milestone;

use super::effect::SchedulerEffect;
use super::queue::Queue;
use super::running::Sequence;
use crate::error::RunError;
use crate::message::{FinishReason, Finished, StreamEvent};
use crate::policy::End;

/// Ends a sequence. Its pages and its admission permit are free before its caller receives the event; pages that a
/// pass ahead holds are free as soon as that is dropped.
pub(super) fn finish(
    queue: &mut Queue,
    mut sequence: Sequence,
    reason: FinishReason,
    now: Nanos,
    effects: &mut Vec<SchedulerEffect>,
) {
    sequence.times.finished = now;
    if sequence.in_flight > 0 {
        sequence.lose(effects);
    }
    queue.on_end(&sequence, End::Completed);
    sequence.note_end(Milestone::Finished, Some(&reason), effects);
    let (times, drafts) = (sequence.times, sequence.draft_stats());
    let event = StreamEvent::Finished(Box::new(Finished { reason, times, drafts }));
    effects.push(SchedulerEffect::Emit(sequence.into_emission(event)));
}

pub(super) fn fail(
    queue: &mut Queue,
    sequence: Sequence,
    error: &RunError,
    effects: &mut Vec<SchedulerEffect>,
) {
    queue.on_end(&sequence, End::Failed);
    refuse(sequence, error, effects);
}

/// Fails a sequence of which the queue policy knows nothing.
pub(super) fn refuse(sequence: Sequence, error: &RunError, effects: &mut Vec<SchedulerEffect>) {
    sequence.lose(effects);
    sequence.note_end(Milestone::Failed, Some(error), effects);
    let event = StreamEvent::Failed(error.clone());
    effects.push(SchedulerEffect::Emit(sequence.into_emission(event)));
}
