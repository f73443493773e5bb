//! The critical path: the chain of running and waiting that determined the makespan.

use std::cmp::Reverse;

use super::cause::IdleCause;
use super::interval::Interval;
use super::links::Links;
use super::walk::{PieceKind, Step, Walk};
use crate::timeline::Timeline;

/// What happened during a segment of the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SegmentKind {
    /// This span (an index; the innermost at that time) was running.
    Running(usize),
    /// Nothing on the path was running, for this cause; then this span (an index) started. For
    /// [`IdleCause::End`], it was the last span of a window.
    Waiting(IdleCause, usize),
}

/// A segment of the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Index of the lane.
    pub lane: usize,
    /// Start, in ns.
    pub start: u64,
    /// End, in ns.
    pub end: u64,
    /// Running or waiting.
    pub kind: SegmentKind,
}

/// The critical path from the start of the timeline to its end, and the slack of every span.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CriticalPath {
    /// Segments by time, without gaps: their lengths add up to the makespan.
    pub segments: Vec<Segment>,
    /// Outer spans on the path, by time.
    pub spans: Vec<usize>,
    /// For each of `spans`: index of the message over which the path reaches it, if it does so over
    /// a message.
    pub messages: Vec<Option<usize>>,
    /// By span: how much later it could have ended without a longer makespan, in ns. An inner span
    /// has the slack of its outermost ancestor.
    pub slack: Vec<u64>,
}

impl CriticalPath {
    pub(super) fn new(timeline: &Timeline, links: &Links) -> CriticalPath {
        let (floor, close) = timeline.extent();
        let last = timeline.outer().max_by_key(|i| (timeline.spans[*i].end, Reverse(*i)));
        let Some(last) = last else { return CriticalPath::default() };
        let inner = children(timeline);
        let mut segments = Vec::new();
        let end = timeline.spans[last].end.0;
        if end < close.0 {
            let (lane, kind) =
                (timeline.spans[last].lane, SegmentKind::Waiting(IdleCause::End, last));
            segments.push(Segment { lane, start: end, end: close.0, kind });
        }
        let ran = Interval { start: timeline.spans[last].start.0, end };
        push_running(timeline, &inner, last, ran, &mut segments);
        let mut steps = vec![(last, None)];
        let walk = Walk { timeline, links, floor: floor.0 };
        let on_step = |step: Step| {
            if let (Some(span), Some(later)) = (step.span, steps.last_mut()) {
                later.1 = step.message;
                steps.push((span, None));
            }
        };
        walk.back(last, on_step, |piece| match piece.kind {
            PieceKind::Ran(span) => {
                let ran = Interval { start: piece.start, end: piece.end };
                push_running(timeline, &inner, span, ran, &mut segments);
            }
            PieceKind::Waited(span, cause) => segments.push(Segment {
                lane: timeline.spans[span].lane,
                start: piece.start,
                end: piece.end,
                kind: SegmentKind::Waiting(cause, span),
            }),
        });
        segments.reverse();
        steps.reverse();
        let (spans, messages) = steps.into_iter().unzip();
        CriticalPath { segments, spans, messages, slack: slack(timeline, links, end) }
    }
}

/// Children of every span, by start.
pub(crate) fn children(timeline: &Timeline) -> Vec<Vec<usize>> {
    let mut children = vec![Vec::new(); timeline.spans.len()];
    for (index, span) in timeline.spans.iter().enumerate() {
        if let Some(parent) = span.parent {
            children[parent].push(index);
        }
    }
    children
}

/// Appends the segments in which `span` ran within the interval `ran`, latest first. Each segment is
/// attributed to the innermost span.
pub(super) fn push_running(
    timeline: &Timeline,
    inner: &[Vec<usize>],
    span: usize,
    ran: Interval,
    segments: &mut Vec<Segment>,
) {
    let lane = timeline.spans[span].lane;
    let mut push = |start: u64, end: u64, span: usize| {
        let kind = SegmentKind::Running(span);
        match segments.last_mut() {
            Some(later) if later.kind == kind && later.start == end => later.start = start,
            _ if start < end => segments.push(Segment { lane, start, end, kind }),
            _ => {}
        }
    };
    // Iterative rather than recursive, because spans of foreign programs may nest deeply.
    let mut time = ran.end;
    let mut open = vec![(span, inner[span].len())];
    while let Some((span, left)) = open.last_mut() {
        let (this, floor) = (*span, timeline.spans[*span].start.0.max(ran.start));
        let Some(next) = left.checked_sub(1) else {
            push(floor, time, this);
            time = time.min(floor);
            open.pop();
            continue;
        };
        *left = next;
        let child = inner[this][next];
        let (from, to) = (timeline.spans[child].start.0, timeline.spans[child].end.0.min(time));
        if from >= time || to <= ran.start {
            continue;
        }
        push(to, time, this);
        time = to;
        open.push((child, inner[child].len()));
    }
}

/// Slack of every span (total float in the critical path method): over each dependency, the time
/// between a span's end and the moment its successor could act on it is kept.
fn slack(timeline: &Timeline, links: &Links, end: u64) -> Vec<u64> {
    let spans = &timeline.spans;
    let mut slack: Vec<u64> = spans.iter().map(|span| end - span.end.0).collect();
    for &span in links.order.iter().rev() {
        let (ready, _) = links.binding(timeline, span);
        let room = |settled: u64| ready.saturating_sub(settled).saturating_add(slack[span]);
        let before = links.before[span].map(|before| (before, room(spans[before].end.0)));
        let senders = links.inputs[span].iter().filter_map(|i| Some((i.from?, room(i.ready))));
        let causes: Vec<(usize, u64)> = before.into_iter().chain(senders).collect();
        for (cause, room) in causes {
            slack[cause] = slack[cause].min(room);
        }
    }
    (0..spans.len()).map(|span| slack[links.outermost[span]]).collect()
}
