//! Bubbles: why a lane ran nothing.

use std::cell::RefCell;

use super::cause::IdleCause;
use super::links::Links;
use super::walk::{Link, Walk, cause_of};
use crate::event::StallCause;
use crate::timeline::Timeline;

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
    pub cause: IdleCause,
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
                cause: IdleCause::End,
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
            StallCause::BackPressure => IdleCause::BackPressure,
            StallCause::SlotPool => IdleCause::SlotPool,
            StallCause::PolicyBarrier => IdleCause::PolicyBarrier,
        };
        pieces.push(Gap { start: from, end: to, cause, ..gap });
        time = from;
    }
    if gap.start < time {
        pieces.push(Gap { end: time, ..gap });
    }
    pieces
}
