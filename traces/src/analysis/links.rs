//! What held up what: the edges between outer spans.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::interval::Interval;
use crate::timeline::{Span, Timeline};

/// What a span needed to begin: a message, or the end of a wait for another span.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input {
    /// Index of the message; none if it is a wait.
    pub(super) message: Option<usize>,
    /// Outer span that sent the message, or was waited for; none if it came from outside.
    pub(super) from: Option<usize>,
    /// The message left its sender, or what was waited for ended.
    pub(super) sent: u64,
    /// Could be acted on: taken out of the mailbox, had its reader been free; or the wait ended.
    pub(super) ready: u64,
}

/// Edges between the outer spans of a timeline.
pub(super) struct Links {
    /// Outer spans, every one after all that it waits for.
    pub(super) order: Vec<usize>,
    /// By span: the one before it in its slot.
    pub(super) before: Vec<Option<usize>>,
    /// By span: what it waited for.
    pub(super) inputs: Vec<Vec<Input>>,
    /// By span: its outermost ancestor.
    pub(super) outermost: Vec<usize>,
    /// By lane: when it slept for want of messages, by end.
    pub(super) sleeps: Vec<Vec<Interval>>,
    /// By lane: its waits with a target (indices), by end.
    pub(super) waits: Vec<Vec<usize>>,
    /// By outer span: the waits for it, by end.
    pub(super) waits_for: HashMap<usize, Vec<usize>>,
}

/// Why a span did not begin earlier.
#[derive(Clone, Copy, Debug)]
pub(super) enum Binding {
    /// Its slot was taken by this span.
    Slot(usize),
    /// This had not come, or not ended.
    Input(Input),
    /// The recording does not say.
    Nothing,
}

impl Links {
    pub(super) fn new(timeline: &Timeline) -> Links {
        let outermost = outermost(&timeline.spans);
        let before = before(timeline);
        let sleeps = sleeps(timeline);
        let busy = Busy::by_lane(timeline);
        let mut inputs: Vec<Vec<Input>> = vec![Vec::new(); timeline.spans.len()];
        for (index, message) in timeline.messages.iter().enumerate() {
            let (Some(to), Some(received)) = (message.to, message.received) else { continue };
            let to = outermost[to];
            let from = message.from.map(|from| outermost[from]);
            let from = from.filter(|from| timeline.spans[*from].start <= message.sent);
            let (sent, received) = (message.sent.0, received.0);
            // What comes while the span runs did not hold up its start.
            if received > timeline.spans[to].start.0 || from == Some(to) {
                continue;
            }
            let lane = message.to_lane.unwrap_or(timeline.spans[to].lane);
            let taken = busy[lane].taken_when_free(&sleeps[lane], (sent, received));
            let ready = taken.map_or(received, |free| sent + (received - free));
            inputs[to].push(Input { message: Some(index), from, sent, ready });
        }
        add_waits(timeline, &outermost, &mut inputs);
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

    /// The latest of all that a span waited for, and when that was settled.
    pub(super) fn binding(&self, timeline: &Timeline, span: usize) -> (u64, Binding) {
        let slot = self.before[span].map(|b| (timeline.spans[b].end.0, Binding::Slot(b)));
        let inputs = self.inputs[span].iter().map(|input| (input.ready, Binding::Input(*input)));
        // Of equals the first: a slot that was busy until then needs no other reason.
        slot.into_iter()
            .chain(inputs)
            .reduce(|a, b| if b.0 > a.0 { b } else { a })
            .unwrap_or((timeline.spans[span].start.0, Binding::Nothing))
    }

    /// Puts the outer spans into an order in which causes come first. Cycles, which only a broken
    /// recording has, are cut at their earliest span.
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

/// Adds what each span waited for: a wait holds up the next span that begins on its lane.
fn add_waits(timeline: &Timeline, outermost: &[usize], inputs: &mut [Vec<Input>]) {
    let turns = timeline.turns();
    for wait in &timeline.waits {
        let Some(from) = wait.target.map(|target| outermost[target]) else { continue };
        let turn = &turns[wait.lane];
        let next = turn.partition_point(|span| timeline.spans[*span].start < wait.end);
        let Some(next) = turn.get(next).copied().filter(|next| *next != from) else { continue };
        let (sent, ready) = (timeline.spans[from].end.0, wait.end.0);
        // What had not ended did not hold up what came after.
        if sent <= ready {
            inputs[next].push(Input { message: None, from: Some(from), sent, ready });
        }
    }
}

fn outermost(spans: &[Span]) -> Vec<usize> {
    let mut outermost: Vec<usize> = (0..spans.len()).collect();
    for (index, span) in spans.iter().enumerate() {
        if let Some(parent) = span.parent {
            outermost[index] = outermost[parent];
        }
    }
    outermost
}

fn before(timeline: &Timeline) -> Vec<Option<usize>> {
    let mut last: Vec<Vec<Option<usize>>> =
        timeline.lanes.iter().map(|lane| vec![None; lane.slots]).collect();
    let mut before = vec![None; timeline.spans.len()];
    for index in timeline.outer_in_turn() {
        let span = &timeline.spans[index];
        before[index] = last[span.lane][span.slot].replace(index);
    }
    before
}

fn sleeps(timeline: &Timeline) -> Vec<Vec<Interval>> {
    let mut sleeps = vec![Vec::new(); timeline.lanes.len()];
    for sleep in &timeline.sleeps {
        sleeps[sleep.lane].push((sleep.start.0, sleep.end.0));
    }
    sleeps
}

/// When one lane ran something.
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

    /// When the lane became free, if a message lay in its mailbox until then: the lane ran
    /// something when it was sent, ran nothing when it was taken out, and did not sleep between.
    fn taken_when_free(&self, sleeps: &[Interval], (sent, received): Interval) -> Option<u64> {
        let begun = self.starts.partition_point(|start| *start < received);
        let ended = self.ends.partition_point(|end| *end <= received);
        let free = *self.ends.get(ended.checked_sub(1)?)?;
        let slept = sleeps.partition_point(|sleep| sleep.1 <= free);
        let has_slept = sleeps.get(slept).is_some_and(|sleep| sleep.0 < received);
        (sent < free && free < received && begun == ended && !has_slept).then_some(free)
    }
}
