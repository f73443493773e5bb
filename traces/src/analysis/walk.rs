//! Walks back along the dependencies of a span. Both idle causes and the critical path are built on
//! it.

use super::cause::IdleCause;
use super::interval::Interval;
use super::links::{Binding, Links};
use crate::event::{Activity, StallCause};
use crate::timeline::{Span, Timeline, Wait};

/// A piece of the chain. The walk finds pieces from the end to the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) kind: PieceKind,
}

/// An interval before a span during which the span was delayed.
#[derive(Clone, Copy)]
struct Delay {
    /// The delayed span.
    span: usize,
    /// The span that sent its message, if any.
    sender: Option<usize>,
    interval: Interval,
    /// Cause, except where a wait was late.
    cause: IdleCause,
}

/// What happened during a piece of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceKind {
    /// This outer span ran.
    Ran(usize),
    /// This outer span waited.
    Waited(usize, IdleCause),
}

/// A walk back along the dependencies of a span.
pub(super) struct Walk<'a> {
    pub(super) timeline: &'a Timeline,
    pub(super) links: &'a Links,
    /// The walk stops at this time, in ns.
    pub(super) floor: u64,
}

/// A step of the walk: the span it reached (none: outside the recording), and the message it
/// followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) span: Option<usize>,
    pub(super) message: Option<usize>,
    /// If the message was stalled: the cause, and the start and end of the stall in ns.
    pub(super) stall: Option<(StallCause, u64, u64)>,
}

impl Walk<'_> {
    /// Explains the time from the floor to the start of `span`, backwards and without gaps.
    /// `on_step` is called before the pieces of the step are emitted.
    pub(super) fn back(
        &self,
        span: usize,
        mut on_step: impl FnMut(Step),
        mut emit: impl FnMut(Piece),
    ) {
        let mut emit = |start: u64, end: u64, kind: PieceKind| {
            let start = start.max(self.floor);
            if start < end {
                emit(Piece { start, end, kind });
            }
        };
        let mut span = span;
        let mut time = self.timeline.spans[span].start.0;
        while time > self.floor {
            let (ready, binding) = self.links.binding(self.timeline, span);
            let ready = ready.min(time);
            let idle = Interval { start: ready, end: time };
            self.idle_before(span, idle, binding, &mut emit);
            let (from, left) = match binding {
                Binding::Slot(before) => {
                    on_step(Step { span: Some(before), message: None, stall: None });
                    (before, ready)
                }
                Binding::Input(input) => {
                    let stall = input.message.and_then(|m| self.timeline.messages[m].stall);
                    let stall = stall.map(|(cause, since)| (cause, since.0, input.sent));
                    on_step(Step { span: input.from, message: input.message, stall });
                    let left = input.sent.min(ready);
                    let end = input.from.map_or(left, |from| self.timeline.spans[from].end.0);
                    let transit = Interval { start: left.min(end), end: ready };
                    let delay = Delay {
                        span,
                        sender: input.from,
                        interval: transit,
                        cause: IdleCause::HandOff,
                    };
                    self.late(delay, &mut emit);
                    let Some(from) = input.from else {
                        emit(self.floor, left, PieceKind::Waited(span, IdleCause::MailboxEmpty));
                        return;
                    };
                    (from, left.min(end))
                }
                Binding::Nothing => {
                    emit(self.floor, ready, PieceKind::Waited(span, IdleCause::Start));
                    return;
                }
            };
            let start = self.timeline.spans[from].start.0;
            emit(start, left, PieceKind::Ran(from));
            (span, time) = (from, start.min(left));
        }
    }

    /// Explains the time between the moment a span could have started and its start.
    fn idle_before(
        &self,
        span: usize,
        idle: Interval,
        binding: Binding,
        emit: &mut impl FnMut(u64, u64, PieceKind),
    ) {
        let Interval { start: ready, end: start } = idle;
        if ready == start {
            return;
        }
        let this = &self.timeline.spans[span];
        let has_input = !self.links.inputs[span].is_empty();
        let goes_on = match binding {
            Binding::Slot(before) => {
                let chunk = self.timeline.spans[before].tags.chunk;
                chunk.is_some() && chunk == this.tags.chunk
            }
            _ => false,
        };
        if has_input || goes_on {
            let cause = IdleCause::Restart;
            self.late(Delay { span, sender: None, interval: idle, cause }, emit);
            return;
        }
        // Without a message, only the times at which the span was queued and submitted are known.
        let submitted = this.submitted.map_or(start, |at| at.0.clamp(ready, start));
        let queued = this.queued.map_or(submitted, |at| at.0.clamp(ready, submitted));
        emit(submitted, start, PieceKind::Waited(span, IdleCause::Restart));
        emit(queued, submitted, PieceKind::Waited(span, IdleCause::BackPressure));
        self.asleep(span, Interval { start: ready, end: queued }, emit);
    }

    /// Splits an unexplained interval into sleep on an empty mailbox and unattributed time.
    fn asleep(&self, span: usize, interval: Interval, emit: &mut impl FnMut(u64, u64, PieceKind)) {
        let sleeps = &self.links.sleeps[self.timeline.spans[span].lane];
        let mut time = interval.end;
        let first = sleeps.partition_point(|sleep| sleep.end <= interval.start);
        let last = sleeps.partition_point(|sleep| sleep.end <= interval.end);
        // Sleeps of a lane do not overlap, so of those that end after the interval, only the first can
        // reach into the interval.
        for sleep in sleeps[first..sleeps.len().min(last + 1)].iter().rev() {
            let (start, end) = (sleep.start.max(interval.start), sleep.end.min(time));
            if start < end {
                emit(end, time, PieceKind::Waited(span, IdleCause::Unknown));
                emit(start, end, PieceKind::Waited(span, IdleCause::MailboxEmpty));
                time = start;
            }
        }
        emit(interval.start, time, PieceKind::Waited(span, IdleCause::Unknown));
    }

    /// Splits an interval at waits that continued after their target had ended: waits of the span's
    /// lane, and waits of any lane for the sender.
    fn late(&self, delay: Delay, emit: &mut impl FnMut(u64, u64, PieceKind)) {
        let Delay { span, sender, interval, cause } = delay;
        let Interval { start, end: mut time } = interval;
        for wait in self.waits_in(span, sender, interval) {
            let Some(target) = wait.target.map(|target| self.links.outermost[target]) else {
                continue;
            };
            let done = self.timeline.spans[target].end.0.max(wait.start.0);
            let (from, to) = (done.max(start), wait.end.0.min(time));
            if from >= to {
                continue;
            }
            let awake = wait.start.0.saturating_add(wait.slept).clamp(from, to);
            emit(to, time, PieceKind::Waited(span, cause));
            emit(awake, to, PieceKind::Waited(span, IdleCause::Spin));
            emit(from, awake, PieceKind::Waited(span, IdleCause::Overshoot));
            time = from;
        }
        emit(start, time, PieceKind::Waited(span, cause));
    }

    /// Waits that may overlap the interval, the latest first.
    fn waits_in(&self, span: usize, from: Option<usize>, interval: Interval) -> Vec<&Wait> {
        let waits = &self.timeline.waits;
        let of_lane = &self.links.waits[self.timeline.spans[span].lane];
        let first = of_lane.partition_point(|wait| waits[*wait].end.0 <= interval.start);
        let last = of_lane.partition_point(|wait| waits[*wait].end.0 <= interval.end);
        let for_sender = from.and_then(|from| self.links.waits_for.get(&from));
        let mut found = of_lane[first..of_lane.len().min(last + 1)].to_vec();
        found.extend(for_sender.into_iter().flatten());
        found.sort_unstable();
        found.dedup();
        found.into_iter().rev().map(|wait| &waits[wait]).collect()
    }
}

/// Cause of a lane's idle time while this span, which the lane's next work needs, runs.
pub(super) fn cause_of(span: &Span) -> IdleCause {
    if span.discarded {
        return IdleCause::Cancelled;
    }
    match span.activity {
        Activity::Prepare => IdleCause::Prepare,
        Activity::Convert | Activity::Copy => IdleCause::Convert,
        Activity::Read => IdleCause::Read,
        Activity::Sync => IdleCause::HandOff,
        Activity::Compute | Activity::Schedule | Activity::Sample | Activity::Other => {
            IdleCause::Dependency(span.lane)
        }
    }
}
