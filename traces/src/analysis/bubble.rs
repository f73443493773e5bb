//! Bubbles: why a lane ran nothing.

use std::cell::RefCell;

use super::links::Links;
use super::walk::{Link, Walk, cause_of};
use crate::event::StallCause;
use crate::timeline::Timeline;

/// Why a lane ran nothing. Each has a name in reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// Its next work needs the result of this lane (an index), which was running or busy.
    Dependency(usize),
    /// A graph or kernel that its next work needs was being built.
    Prepare,
    /// Data that its next work needs was being converted or copied.
    Convert,
    /// Its next work was ready elsewhere, but no permit was free.
    BackPressure,
    /// Its next work was ready elsewhere, but no memory slot or KV page was free.
    SlotPool,
    /// Its next work was ready elsewhere, but the policy waited for all of a group.
    PolicyBarrier,
    /// Its next work was on its way: sent, but not yet taken out of the mailbox.
    HandOff,
    /// What it waited for was done, but it slept on.
    Overshoot,
    /// What it waited for was done, but its poll had not seen it.
    Spin,
    /// Its next work was there and the lane was free, but it had not begun.
    Restart,
    /// There was nothing to do: no request had come.
    MailboxEmpty,
    /// Before the lane's first work, which nothing in the recording precedes.
    Start,
    /// After its last work.
    End,
    /// Nothing in the recording says why.
    Unknown,
}

impl Cause {
    /// Every cause; [`Dependency`](Cause::Dependency) with lane 0.
    pub const ALL: [Cause; 14] = [
        Cause::Dependency(0),
        Cause::Prepare,
        Cause::Convert,
        Cause::BackPressure,
        Cause::SlotPool,
        Cause::PolicyBarrier,
        Cause::HandOff,
        Cause::Overshoot,
        Cause::Spin,
        Cause::Restart,
        Cause::MailboxEmpty,
        Cause::Start,
        Cause::End,
        Cause::Unknown,
    ];

    /// Name in reports and exports, without the lane.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Dependency(_) => "dependency",
            Cause::Prepare => "graph build",
            Cause::Convert => "conversion",
            Cause::BackPressure => "back-pressure",
            Cause::SlotPool => "slot pool empty",
            Cause::PolicyBarrier => "policy barrier",
            Cause::HandOff => "hand-off",
            Cause::Overshoot => "sleep overshoot",
            Cause::Spin => "spin",
            Cause::Restart => "restart",
            Cause::MailboxEmpty => "mailbox empty",
            Cause::Start => "start",
            Cause::End => "end",
            Cause::Unknown => "unattributed",
        }
    }
}

/// A stretch of time in which a lane ran nothing, for one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Index of the lane.
    pub lane: usize,
    /// From, in ns.
    pub start: u64,
    /// To, in ns.
    pub end: u64,
    /// Why.
    pub cause: Cause,
    /// Index of the span that ran next on the lane, if any.
    pub next: Option<usize>,
    /// Index of the span that held it up, if one did.
    pub blocker: Option<usize>,
}

/// Every gap of every lane between the start and the end of the timeline (T2). A lane that never
/// runs anything is not idle: it has none.
///
/// A gap is explained by the wait graph, walked back from the span that ended it: while something
/// ran that the span needed, directly or through others, the gap depends on that lane; while
/// nothing on the way ran, the reason for that counts.
pub(super) fn gaps(timeline: &Timeline, links: &Links) -> Vec<Gap> {
    let (start, end) = timeline.extent();
    let mut gaps = Vec::new();
    for (lane, spans) in
        timeline.turns().into_iter().enumerate().filter(|(_, spans)| !spans.is_empty())
    {
        let mut busy_until = start.0;
        for span in spans {
            let begin = timeline.spans[span].start.0;
            if begin > busy_until {
                let mut explained = explain(timeline, links, span, busy_until);
                gaps.extend(explained.drain(..).rev());
            }
            busy_until = busy_until.max(timeline.spans[span].end.0);
        }
        if busy_until < end.0 {
            let gap = Gap {
                lane,
                start: busy_until,
                end: end.0,
                cause: Cause::End,
                next: None,
                blocker: None,
            };
            gaps.push(gap);
        }
    }
    gaps
}

/// Explains the gap from `floor` to the start of `next`; latest stretch first.
fn explain(timeline: &Timeline, links: &Links, next: usize, floor: u64) -> Vec<Gap> {
    let lane = timeline.spans[next].lane;
    let walk = Walk { timeline, links, floor };
    // Holds met on the way: what lies in the time of one is its fault.
    let stalls = RefCell::new(Vec::new());
    let mut gaps: Vec<Gap> = Vec::new();
    let mut push = |gap: Gap| match gaps.last_mut() {
        Some(later) if (later.cause, later.blocker) == (gap.cause, gap.blocker) => {
            later.start = gap.start;
        }
        _ => gaps.push(gap),
    };
    walk.back(
        next,
        |step| stalls.borrow_mut().extend(step.stall),
        |stretch| {
            let (cause, blocker) = match stretch.link {
                Link::Ran(span) => (cause_of(&timeline.spans[span]), Some(span)),
                Link::Waited(span, cause) => (cause, (span != next).then_some(span)),
            };
            let gap = Gap {
                lane,
                start: stretch.start,
                end: stretch.end,
                cause,
                next: Some(next),
                blocker,
            };
            for piece in split_by_stalls(gap, &stalls.borrow()) {
                push(piece);
            }
        },
    );
    gaps
}

/// Splits a gap by the stalls in force in it; latest piece first.
fn split_by_stalls(gap: Gap, stalls: &[(StallCause, u64, u64)]) -> Vec<Gap> {
    let mut pieces = Vec::new();
    let mut time = gap.end;
    // The walk meets the latest hold first.
    for (cause, since, until) in stalls {
        let (from, to) = ((*since).max(gap.start), (*until).min(time));
        if from >= to {
            continue;
        }
        if to < time {
            pieces.push(Gap { start: to, end: time, ..gap });
        }
        let cause = match cause {
            StallCause::BackPressure => Cause::BackPressure,
            StallCause::SlotPool => Cause::SlotPool,
            StallCause::PolicyBarrier => Cause::PolicyBarrier,
        };
        pieces.push(Gap { start: from, end: to, cause, ..gap });
        time = from;
    }
    if gap.start < time {
        pieces.push(Gap { end: time, ..gap });
    }
    pieces
}
