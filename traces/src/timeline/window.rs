//! Cuts a timeline at the borders of a window of time.

use std::cmp::Reverse;
use std::collections::HashSet;

use super::{After, Counter, Message, Sleep, Span, Timeline, Wait};
use crate::clock::Nanos;

/// A window of time, with both borders.
#[derive(Clone, Copy)]
struct Window {
    from: Nanos,
    to: Nanos,
}

impl Window {
    /// Whether something from `start` to `end` is seen: it has a part within the window, or is an instant in it.
    fn sees(self, start: Nanos, end: Nanos) -> bool {
        start <= self.to && end >= self.from && (start == end || start < self.to && end > self.from)
    }

    fn clip(self, time: Nanos) -> Nanos {
        time.clamp(self.from, self.to)
    }
}

/// The part of a timeline from one moment to another.
pub(super) fn cut(timeline: Timeline, from: Nanos, to: Nanos) -> Timeline {
    let window = Window { from, to: to.max(from) };
    let mut timeline = timeline;
    let slots: Vec<usize> = timeline.lanes.iter().map(|lane| lane.slots).collect();
    let moved = cut_spans(&mut timeline.spans, window);
    let find = |span: Option<usize>| span.and_then(|span| moved[span]);
    timeline.messages.retain_mut(|message| cut_message(message, window, find));
    timeline.waits.retain_mut(|wait| cut_wait(wait, window, find));
    let afters = timeline.afters.drain(..).filter_map(|after| {
        let (span, before) = (moved[after.span]?, moved[after.before]?);
        Some(After { span, before, ..after })
    });
    timeline.afters = afters.collect();
    timeline.sleeps.retain_mut(|Sleep { start, end, .. }| {
        let is_seen = window.sees(*start, *end);
        (*start, *end) = (window.clip(*start), window.clip(*end));
        is_seen
    });
    timeline.counters.iter_mut().for_each(|counter| cut_counter(counter, window));
    timeline.counters.retain(|counter| !counter.values.is_empty());
    let is_inside = |at: Nanos| window.sees(at, at);
    timeline.milestones.retain(|milestone| is_inside(milestone.at));
    timeline.freed.retain(|freed| is_inside(freed.at));
    timeline.experts.retain(|experts| is_inside(experts.at));
    let chunks: HashSet<u64> = timeline.spans.iter().filter_map(|span| span.tags.chunk).collect();
    timeline.outcomes.retain(|chunk, _| chunks.contains(chunk));
    timeline.limited.retain(|chunk, _| chunks.contains(chunk));
    timeline.routed.retain(|chunk, _| chunks.contains(chunk));
    timeline.needs.clear();
    // A target holds from the submission on, which may precede the window.
    let requests: HashSet<u64> =
        timeline.milestones.iter().map(|milestone| milestone.request).collect();
    timeline.gap_targets.retain(|request, _| requests.contains(request));
    timeline.window = Some((window.from, window.to));
    super::slots::assign(&mut timeline);
    // A lane that ran something before is idle in the window, rather than unused.
    for (lane, before) in timeline.lanes.iter_mut().zip(slots) {
        lane.slots = lane.slots.max(before.min(1));
    }
    timeline
}

/// Returns the new index of each span.
fn cut_spans(spans: &mut Vec<Span>, window: Window) -> Vec<Option<usize>> {
    let all = std::mem::take(spans);
    let mut kept: Vec<(usize, Span)> = all.into_iter().enumerate().collect();
    let count = kept.len();
    kept.retain_mut(|(_, span)| {
        if !span.finished {
            span.end = window.to.max(span.start);
        }
        let is_seen = window.sees(span.start, span.end);
        (span.start, span.end) = (window.clip(span.start), window.clip(span.end));
        // They were known before, and cannot be later than the start.
        span.queued = span.queued.map(|at| at.clamp(window.from, span.start));
        span.submitted = span.submitted.map(|at| at.clamp(window.from, span.start));
        is_seen
    });
    // The sort is stable: parents stay before their children.
    kept.sort_by_key(|(_, span)| (span.start, Reverse(span.end)));
    let mut moved = vec![None; count];
    for (new, (old, _)) in kept.iter().enumerate() {
        moved[*old] = Some(new);
    }
    spans.extend(
        kept.into_iter()
            .map(|(_, span)| Span { parent: span.parent.and_then(|parent| moved[parent]), ..span }),
    );
    moved
}

fn cut_message(
    message: &mut Message,
    window: Window,
    find: impl Fn(Option<usize>) -> Option<usize>,
) -> bool {
    let is_seen = window.sees(message.sent, message.received.unwrap_or(message.sent));
    message.sent = window.clip(message.sent);
    message.received = message.received.map(|at| window.clip(at));
    message.stall = message.stall.map(|(cause, since)| (cause, window.clip(since)));
    (message.from, message.to) = (find(message.from), find(message.to));
    is_seen
}

/// What is cut off a wait is also cut off its prediction and its sleep, which begin with it.
fn cut_wait(
    wait: &mut Wait,
    window: Window,
    find: impl Fn(Option<usize>) -> Option<usize>,
) -> bool {
    let is_seen = window.sees(wait.start, wait.end);
    let missing = window.from.0.saturating_sub(wait.start.0);
    wait.predicted = wait.predicted.saturating_sub(missing);
    wait.spun = wait.spun.saturating_sub(missing.saturating_sub(wait.slept));
    wait.slept = wait.slept.saturating_sub(missing);
    (wait.start, wait.end) = (window.clip(wait.start), window.clip(wait.end));
    wait.target = find(wait.target);
    is_seen
}

/// The latest value before the window is the one at its start.
fn cut_counter(counter: &mut Counter, window: Window) {
    let first = counter.values.partition_point(|(at, _)| *at <= window.from);
    let last = counter.values.partition_point(|(at, _)| *at <= window.to);
    let before = first.checked_sub(1).map(|latest| (window.from, counter.values[latest].1));
    counter.values =
        before.into_iter().chain(counter.values[first..last].iter().copied()).collect();
}
