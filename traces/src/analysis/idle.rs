//! Finds the idle time of each lane and its causes.

use std::cell::RefCell;

use super::cause::IdleCause;
use super::links::Links;
use super::walk::{PieceKind, Step, Walk, cause_of};
use crate::event::{Activity, StallCause};
use crate::timeline::Timeline;
use std::collections::HashMap;

/// An interval in which a lane was idle for one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Index of the lane.
    pub lane: usize,
    /// Start, in ns.
    pub start: u64,
    /// End, in ns.
    pub end: u64,
    /// Cause.
    pub cause: IdleCause,
    /// Index of the next span on the lane, if any.
    pub next: Option<usize>,
    /// Index of the span that delayed the next one, if a span did.
    pub blocker: Option<usize>,
}

/// All gaps of all lanes between the start and the end of the timeline. A lane that never runs
/// anything has no gaps: it does not count as idle. In a window, one that runs nothing there but did before is idle.
///
/// The cause of a gap is found by walking the dependency graph back from the span that ended it.
/// While a span ran that the next work needed, directly or through others, the gap is a dependency
/// on that span's lane, or reading while it waited for a disk. Otherwise the reason why nothing on the chain ran is the cause.
pub(super) fn gaps(timeline: &Timeline, links: &Links) -> Vec<Gap> {
    let (start, end) = timeline.extent();
    let known = Known { timeline, links, reads: reads(timeline, links) };
    let mut gaps = Vec::new();
    let used = |lane: usize| timeline.lanes[lane].slots > 0;
    for (lane, spans) in
        timeline.outer_by_lane().into_iter().enumerate().filter(|(lane, _)| used(*lane))
    {
        let mut busy_until = start.0;
        for span in spans {
            let begin = timeline.spans[span].start.0;
            if begin > busy_until {
                let mut explained = explain(&known, span, busy_until);
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

/// What explains gaps.
struct Known<'a> {
    timeline: &'a Timeline,
    links: &'a Links,
    /// By outer span: its inner spans that wait for a disk, by start.
    reads: HashMap<usize, Vec<usize>>,
}

fn reads(timeline: &Timeline, links: &Links) -> HashMap<usize, Vec<usize>> {
    let mut reads: HashMap<usize, Vec<usize>> = HashMap::new();
    for (index, span) in timeline.spans.iter().enumerate() {
        if span.activity == Activity::Read && span.parent.is_some() {
            reads.entry(links.outermost[index]).or_default().push(index);
        }
    }
    reads
}

/// Explains the gap from `floor` to the start of `next`; the latest piece first.
fn explain(known: &Known<'_>, next: usize, floor: u64) -> Vec<Gap> {
    let Known { timeline, links, .. } = *known;
    let lane = timeline.spans[next].lane;
    let walk = Walk { timeline, links, floor };
    // Stalls met on the walk: time within a stall has the stall's cause. A missing graph is
    // explained by the walk itself, which passes its preparation.
    let lasting = |step: Step| step.stall.filter(|(cause, ..)| *cause != StallCause::GraphMissing);
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
        |step| stalls.borrow_mut().extend(lasting(step)),
        |piece| {
            let (cause, blocker) = match piece.kind {
                PieceKind::Ran(span) => (cause_of(&timeline.spans[span]), Some(span)),
                PieceKind::Waited(span, cause) => (cause, (span != next).then_some(span)),
            };
            let gap =
                Gap { lane, start: piece.start, end: piece.end, cause, next: Some(next), blocker };
            let of_disk = match piece.kind {
                PieceKind::Ran(span) => known.reads.get(&span).map_or(&[][..], Vec::as_slice),
                PieceKind::Waited(..) => &[],
            };
            for part in split_by_reads(timeline, gap, of_disk) {
                split_by_stalls(part, &stalls.borrow()).into_iter().for_each(&mut push);
            }
        },
    );
    gaps
}

/// Splits a gap where reads of its blocker begin and end; the latest piece first. Discarded work stays so.
fn split_by_reads(timeline: &Timeline, gap: Gap, reads: &[usize]) -> Vec<Gap> {
    let mut pieces = Vec::new();
    let mut time = gap.end;
    for read in reads.iter().rev().filter(|_| gap.cause != IdleCause::Cancelled) {
        let (start, end) = (timeline.spans[*read].start.0, timeline.spans[*read].end.0);
        let (from, to) = (start.max(gap.start), end.min(time));
        if from >= to {
            continue;
        }
        if to < time {
            pieces.push(Gap { start: to, end: time, ..gap });
        }
        pieces.push(Gap { start: from, end: to, cause: IdleCause::Read, ..gap });
        time = from;
    }
    if gap.start < time {
        pieces.push(Gap { end: time, ..gap });
    }
    pieces
}

/// Splits a gap where stalls begin and end; the latest piece first.
fn split_by_stalls(gap: Gap, stalls: &[(StallCause, u64, u64)]) -> Vec<Gap> {
    let mut pieces = Vec::new();
    let mut time = gap.end;
    // The walk meets the latest stall first.
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
            StallCause::GraphMissing => IdleCause::Prepare,
        };
        pieces.push(Gap { start: from, end: to, cause, ..gap });
        time = from;
    }
    if gap.start < time {
        pieces.push(Gap { end: time, ..gap });
    }
    pieces
}
