//! Dependencies between outer spans: slots, messages, waits and recorded orders.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::interval::{Interval, union};
use crate::event::Order;
use crate::timeline::{Span, Timeline};

/// Something that a span needed before it could start: a message, the end of a wait for another span, or
/// the end of another span.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input {
    /// Index of the message; none for a wait or the end of a span.
    pub(super) message: Option<usize>,
    /// Outer span that sent the message, was awaited or ended; none if the message came from outside.
    pub(super) from: Option<usize>,
    /// Time at which the message was sent, or the other span ended, in ns.
    pub(super) sent: u64,
    /// Time at which the span could act on it, in ns: the message would have been taken out of the
    /// mailbox by a free lane, or the wait ended.
    pub(super) ready: u64,
}

/// Dependencies between the outer spans of a timeline.
pub(super) struct Links {
    /// Outer spans in topological order.
    pub(super) order: Vec<usize>,
    /// By span: the span after which its lane runs it, by a recorded order or because both have the same
    /// slot.
    pub(super) before: Vec<Option<usize>>,
    /// By span: its inputs.
    pub(super) inputs: Vec<Vec<Input>>,
    /// By span: its outermost ancestor.
    pub(super) outermost: Vec<usize>,
    /// By lane: times during which its thread slept on an empty mailbox, by end.
    pub(super) sleeps: Vec<Vec<Interval>>,
    /// By lane: indices of its waits that have a target, by end.
    pub(super) waits: Vec<Vec<usize>>,
    /// By outer span: indices of the waits for it, by end.
    pub(super) waits_for: HashMap<usize, Vec<usize>>,
}

/// The latest dependency of a span, which determined when it could start.
#[derive(Clone, Copy, Debug)]
pub(super) enum Binding {
    /// The span after which the lane runs it.
    Slot(usize),
    /// A message or a wait.
    Input(Input),
    /// Nothing in the recording.
    Nothing,
}

impl Links {
    pub(super) fn new(timeline: &Timeline) -> Links {
        let outermost = outermost(&timeline.spans);
        let mut before = before(timeline);
        let sleeps = sleeps(timeline);
        let busy = Busy::by_lane(timeline);
        let rests = rests_of_queues(timeline);
        let mut inputs: Vec<Vec<Input>> = vec![Vec::new(); timeline.spans.len()];
        for (index, message) in timeline.messages.iter().enumerate() {
            let (Some(to), Some(received)) = (message.to, message.received) else { continue };
            let to = outermost[to];
            let from = message.from.map(|from| outermost[from]);
            let from = from.filter(|from| timeline.spans[*from].start <= message.sent);
            let (sent, received) = (message.sent.0, received.0);
            // A message that arrives while the span runs did not delay its start.
            if received > timeline.spans[to].start.0 || from == Some(to) {
                continue;
            }
            let lane = message.to_lane.unwrap_or(timeline.spans[to].lane);
            let taken = busy[lane].taken_when_free(&sleeps[lane], sent, received);
            let was_there =
                || rests[lane].as_ref().is_some_and(|rests| !any_in(rests, sent, received));
            let ready = match taken {
                Some(free) => sent + (received - free),
                None if was_there() => sent,
                None => received,
            };
            inputs[to].push(Input { message: Some(index), from, sent, ready });
        }
        add_waits(timeline, &outermost, &mut inputs);
        add_afters(timeline, &outermost, &mut before, &mut inputs);
        let mut links = Links {
            order: Vec::new(),
            before,
            inputs,
            outermost,
            sleeps,
            waits: vec![Vec::new(); timeline.lanes.len()],
            waits_for: HashMap::new(),
        };
        for (index, wait) in timeline.waits.iter().enumerate() {
            let Some(target) = wait.target else { continue };
            links.waits[wait.lane].push(index);
            links.waits_for.entry(links.outermost[target]).or_default().push(index);
        }
        links.sort(timeline);
        links
    }

    /// The dependency of a span that was satisfied last, and the time of that in ns.
    pub(super) fn binding(&self, timeline: &Timeline, span: usize) -> (u64, Binding) {
        let slot = self.before[span].map(|b| (timeline.spans[b].end.0, Binding::Slot(b)));
        let inputs = self.inputs[span].iter().map(|input| (input.ready, Binding::Input(*input)));
        // The slot wins a tie: if it was busy until then, no other reason is needed.
        slot.into_iter()
            .chain(inputs)
            .reduce(|a, b| if b.0 > a.0 { b } else { a })
            .unwrap_or((timeline.spans[span].start.0, Binding::Nothing))
    }

    /// Sorts the outer spans topologically. A cycle, which only a broken recording has, is cut at
    /// its earliest span.
    fn sort(&mut self, timeline: &Timeline) {
        let mut missing = vec![0_usize; timeline.spans.len()];
        let mut followers: Vec<Vec<usize>> = vec![Vec::new(); timeline.spans.len()];
        for span in timeline.outer() {
            let senders = self.inputs[span].iter().filter_map(|input| input.from);
            for cause in self.before[span].into_iter().chain(senders) {
                missing[span] += 1;
                followers[cause].push(span);
            }
        }
        let mut done = vec![false; timeline.spans.len()];
        let mut ready: BinaryHeap<Reverse<usize>> =
            timeline.outer().filter(|span| missing[*span] == 0).map(Reverse).collect();
        let mut rest = timeline.outer();
        loop {
            let next = ready.pop().map(|Reverse(span)| span);
            let Some(span) = next.or_else(|| rest.find(|span| !done[*span])) else { return };
            if std::mem::replace(&mut done[span], true) {
                continue;
            }
            if missing[span] > 0 {
                self.inputs[span].retain(|input| input.from.is_none_or(|from| done[from]));
                self.before[span] = self.before[span].filter(|before| done[*before]);
            }
            self.order.push(span);
            for follower in std::mem::take(&mut followers[span]) {
                missing[follower] -= 1;
                if missing[follower] == 0 {
                    ready.push(Reverse(follower));
                }
            }
        }
    }
}

/// Adds the waits to the inputs: a wait delays the next span that starts on its lane.
fn add_waits(timeline: &Timeline, outermost: &[usize], inputs: &mut [Vec<Input>]) {
    let by_lane = timeline.outer_by_lane();
    for wait in &timeline.waits {
        let Some(from) = wait.target.map(|target| outermost[target]) else { continue };
        let spans = &by_lane[wait.lane];
        let next = spans.partition_point(|span| timeline.spans[*span].start < wait.end);
        let Some(next) = spans.get(next).copied().filter(|next| *next != from) else { continue };
        let (sent, ready) = (timeline.spans[from].end.0, wait.end.0);
        // A target that ended after the wait did not delay what followed.
        if sent <= ready {
            inputs[next].push(Input { message: None, from: Some(from), sent, ready });
        }
    }
}

/// By lane of a device with a queue: the times during which its worker's thread waited. A message that was in the mailbox
/// at none of them was not on its way until the thread took it: the thread was busy, with submitting to the device,
/// which is part of the device's spans.
fn rests_of_queues(timeline: &Timeline) -> Vec<Option<Vec<Interval>>> {
    let mut rests: Vec<Option<Vec<Interval>>> = vec![None; timeline.lanes.len()];
    for after in timeline.afters.iter().filter(|after| after.order == Order::Queue) {
        rests[timeline.spans[after.span].lane] = Some(Vec::new());
    }
    let sleeps =
        timeline.sleeps.iter().map(|sleep| (sleep.lane, Interval::new(sleep.start, sleep.end)));
    let waits = timeline.waits.iter().map(|wait| (wait.lane, Interval::new(wait.start, wait.end)));
    for (lane, rest) in sleeps.chain(waits) {
        if let Some(rests) = &mut rests[lane] {
            rests.push(rest);
        }
    }
    rests.into_iter().map(|rests| rests.map(union)).collect()
}

/// Whether one of the intervals, which are disjoint and ascending, overlaps the time between two moments.
fn any_in(intervals: &[Interval], from: u64, to: u64) -> bool {
    let first = intervals.partition_point(|interval| interval.end <= from);
    intervals.get(first).is_some_and(|interval| interval.start < to)
}

/// Adds the recorded orders. That of a queue takes the place of the slot: a lane that also does the host work of its
/// device runs both at the same time, and its slots do not tell which of them was before which.
fn add_afters(
    timeline: &Timeline,
    outermost: &[usize],
    before: &mut [Option<usize>],
    inputs: &mut [Vec<Input>],
) {
    for after in &timeline.afters {
        let (span, earlier) = (outermost[after.span], outermost[after.before]);
        let end = timeline.spans[earlier].end.0;
        if span == earlier || end > timeline.spans[span].start.0 {
            continue;
        }
        let is_same_lane = timeline.spans[span].lane == timeline.spans[earlier].lane;
        match after.order {
            Order::Queue if is_same_lane => before[span] = Some(earlier),
            Order::Queue | Order::Need => inputs[span].push(Input {
                message: None,
                from: Some(earlier),
                sent: end,
                ready: end,
            }),
        }
    }
}

/// The outermost ancestor of each span.
fn outermost(spans: &[Span]) -> Vec<usize> {
    let mut outermost: Vec<usize> = (0..spans.len()).collect();
    for (index, span) in spans.iter().enumerate() {
        if let Some(parent) = span.parent {
            outermost[index] = outermost[parent];
        }
    }
    outermost
}

/// The previous span in the slot of each span.
fn before(timeline: &Timeline) -> Vec<Option<usize>> {
    let mut last: Vec<Vec<Option<usize>>> =
        timeline.lanes.iter().map(|lane| vec![None; lane.slots]).collect();
    let mut before = vec![None; timeline.spans.len()];
    for index in timeline.outer_in_slot_order() {
        let span = &timeline.spans[index];
        before[index] = last[span.lane][span.slot].replace(index);
    }
    before
}

fn sleeps(timeline: &Timeline) -> Vec<Vec<Interval>> {
    let mut sleeps = vec![Vec::new(); timeline.lanes.len()];
    for sleep in &timeline.sleeps {
        sleeps[sleep.lane].push(Interval::new(sleep.start, sleep.end));
    }
    sleeps
}

/// Start and end times of the spans of one lane, each sorted.
#[derive(Clone, Default)]
struct Busy {
    starts: Vec<u64>,
    ends: Vec<u64>,
}

impl Busy {
    fn by_lane(timeline: &Timeline) -> Vec<Busy> {
        let mut lanes = vec![Busy::default(); timeline.lanes.len()];
        let spans = timeline.outer().map(|span| &timeline.spans[span]);
        for span in spans.filter(|span| span.start < span.end) {
            lanes[span.lane].starts.push(span.start.0);
            lanes[span.lane].ends.push(span.end.0);
        }
        for lane in &mut lanes {
            lane.ends.sort_unstable();
        }
        lanes
    }

    /// When the lane became free, if a message was in its mailbox until then: the lane was busy
    /// when the message was sent, idle when it was received, and did not sleep in between.
    fn taken_when_free(&self, sleeps: &[Interval], sent: u64, received: u64) -> Option<u64> {
        let begun = self.starts.partition_point(|start| *start < received);
        let ended = self.ends.partition_point(|end| *end <= received);
        let free = *self.ends.get(ended.checked_sub(1)?)?;
        let slept = sleeps.partition_point(|sleep| sleep.end <= free);
        let has_slept = sleeps.get(slept).is_some_and(|sleep| sleep.start < received);
        (sent < free && free < received && begun == ended && !has_slept).then_some(free)
    }
}
