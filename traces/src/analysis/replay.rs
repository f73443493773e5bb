//! What-if analysis: replays the recorded run with other durations, in the recorded order.
//!
//! A span starts as soon as its slot is free and its inputs have arrived, plus the restart time
//! that it took in the recording. Without changes, the replay gives exactly the recorded times. The
//! order of spans within a slot is kept; a policy that would decide otherwise with the new times
//! has to be run again in the simulator.

use std::collections::BTreeSet;

use super::critical_path::{SegmentKind, children, push_running};
use super::interval::Interval;
use super::links::{Binding, Links};
pub use super::what_if::{Change, WhatIf, WhatIfError};
use crate::timeline::{Span, Timeline};

/// The replayed run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// First start to last end, in ns.
    pub makespan: u64,
    /// By span: its start and end in ns. Inner spans have those of their outermost ancestor.
    pub times: Vec<(u64, u64)>,
}

/// Factors that result from the changes.
struct Factors {
    /// Time factor of each span.
    time: Vec<f64>,
    sync: f64,
    restart: f64,
    /// Number of slots of each lane.
    slots: Vec<usize>,
}

impl Replay {
    /// Replays a run with changes.
    ///
    /// # Errors
    /// [`WhatIfError::Unknown`] if a change names something that the run does not have.
    pub fn new(timeline: &Timeline, what_if: &WhatIf) -> Result<Replay, WhatIfError> {
        let factors = Factors::of(timeline, what_if)?;
        let links = Links::new(timeline);
        let durations = durations(timeline, &factors);
        let times = timeline.spans.iter().map(|s| (s.start.0, s.end.0)).collect();
        let mut schedule = Schedule { timeline, links: &links, factors: &factors, times };
        // Only lanes with more slots than recorded choose a slot anew.
        let mut free: Vec<Vec<u64>> = timeline
            .lanes
            .iter()
            .zip(&factors.slots)
            .map(|(lane, factor)| if *factor > 1 { lane.slots * factor } else { 0 })
            .map(|slots| vec![timeline.extent().0.0; slots])
            .collect();
        for &span in &links.order {
            let slots = &mut free[timeline.spans[span].lane];
            let new_slot = (0..slots.len()).min_by_key(|slot| slots[*slot]);
            let before = links.before[span].map(|before| schedule.times[before].1);
            // Without a message, a span may depend on the previous span of its slot: more slots do
            // not help.
            let needs_slot = new_slot.filter(|_| !links.inputs[span].is_empty());
            let slot_free = needs_slot.map(|slot| slots[slot]).or(before);
            let start = schedule.start(span, slot_free);
            schedule.times[span] = (start, start.saturating_add(durations[span]));
            if let Some(slot) = new_slot {
                slots[slot] = schedule.times[span].1;
            }
        }
        let mut times = schedule.times;
        for span in 0..times.len() {
            times[span] = times[links.outermost[span]];
        }
        let first = times.iter().map(|(start, _)| *start).min().unwrap_or(0);
        let last = times.iter().map(|(_, end)| *end).max().unwrap_or(0);
        Ok(Replay { makespan: last - first, times })
    }
}

/// A replay in progress.
struct Schedule<'a> {
    timeline: &'a Timeline,
    links: &'a Links,
    factors: &'a Factors,
    /// By span: its start and end in ns; those recorded until the span is replayed.
    times: Vec<(u64, u64)>,
}

impl Schedule<'_> {
    /// Start of a span whose slot is free at `slot_free`.
    fn start(&self, span: usize, slot_free: Option<u64>) -> u64 {
        let recorded = self.timeline.spans[span].start.0;
        let (ready, binding) = self.links.binding(self.timeline, span);
        if matches!(binding, Binding::Nothing) {
            return recorded;
        }
        let messages = self.links.inputs[span].iter().map(|input| {
            let transit = scaled(input.ready - input.sent, self.factors.sync);
            let sent = input.from.map_or(input.sent, |from| self.sent(from, input.sent));
            sent.saturating_add(transit)
        });
        let satisfied = messages.chain(slot_free).max().unwrap_or(0);
        satisfied.saturating_add(scaled(recorded.saturating_sub(ready), self.factors.restart))
    }

    /// When a message leaves its sender, whose times have changed: after the same share of the
    /// sender's duration, or equally long after its end.
    fn sent(&self, from: usize, sent: u64) -> u64 {
        let (before, (start, end)) = (&self.timeline.spans[from], self.times[from]);
        if sent >= before.end.0 {
            return end.saturating_add(sent - before.end.0);
        }
        let (part, whole) = (u128::from(sent - before.start.0), u128::from(before.duration()));
        start + (u128::from(end - start) * part / whole) as u64
    }
}

fn scaled(time: u64, factor: f64) -> u64 {
    // Above 2⁵³ ns (104 days), a float would lose the last digits.
    if factor == 1.0 { time } else { (time as f64 * factor).round() as u64 }
}

/// Duration of each outer span; each piece is scaled by the factor of its innermost span.
fn durations(timeline: &Timeline, factors: &Factors) -> Vec<u64> {
    let inner = children(timeline);
    let mut durations = vec![0; timeline.spans.len()];
    let mut pieces = Vec::new();
    for index in timeline.outer() {
        let span = &timeline.spans[index];
        push_running(timeline, &inner, index, Interval::new(span.start, span.end), &mut pieces);
        for piece in pieces.drain(..) {
            let SegmentKind::Running(innermost) = piece.kind else { continue };
            let time = scaled(piece.end - piece.start, factors.time[innermost]);
            durations[index] = u64::saturating_add(durations[index], time);
        }
    }
    durations
}

impl Factors {
    fn of(timeline: &Timeline, what_if: &WhatIf) -> Result<Factors, WhatIfError> {
        let mut factors = Factors {
            time: vec![1.0; timeline.spans.len()],
            sync: 1.0,
            restart: 1.0,
            slots: vec![1; timeline.lanes.len()],
        };
        for change in &what_if.changes {
            match change {
                Change::Op(name, factor) => {
                    let selects = |span: &Span| Change::selects(name, span);
                    if !factors.scale(*factor, timeline, selects) {
                        let ops = timeline.spans.iter().flat_map(Span::ops);
                        return Err(unknown("op", name, ops));
                    }
                }
                Change::Activity(name, factor) => {
                    if !factors.scale(*factor, timeline, |span| span.activity.name() == name) {
                        let all = timeline.spans.iter().map(|span| span.activity.name());
                        return Err(unknown("activity", name, all));
                    }
                }
                Change::On(name, factor) => {
                    let lane = lane(timeline, name)?;
                    for (span, time) in timeline.spans.iter().zip(&mut factors.time) {
                        *time *= if span.lane == lane { *factor } else { 1.0 };
                    }
                }
                Change::Sync(factor) => factors.sync *= factor,
                Change::Restart(factor) => factors.restart *= factor,
                Change::Slots(name, count) => {
                    let slots = &mut factors.slots[lane(timeline, name)?];
                    *slots = slots.saturating_mul(*count);
                }
            }
        }
        Ok(factors)
    }

    /// Applies a factor to every selected span; returns whether there is one.
    fn scale(&mut self, factor: f64, timeline: &Timeline, selects: impl Fn(&Span) -> bool) -> bool {
        let mut found = false;
        for (span, time) in timeline.spans.iter().zip(&mut self.time) {
            if selects(span) {
                found = true;
                *time *= factor;
            }
        }
        found
    }
}

fn lane(timeline: &Timeline, name: &str) -> Result<usize, WhatIfError> {
    let names = || timeline.lanes.iter().map(|lane| lane.name.as_str());
    let found = names().position(|lane| lane == name);
    found.ok_or_else(|| unknown("lane", name, names()))
}

fn unknown<'a>(
    what: &'static str,
    name: &str,
    known: impl Iterator<Item = &'a str>,
) -> WhatIfError {
    const SHOWN: usize = 20;
    let known: BTreeSet<&str> = known.collect();
    let more = if known.len() > SHOWN { ", …" } else { "" };
    let list: Vec<&str> = known.into_iter().take(SHOWN).collect();
    let known = if list.is_empty() { "none".to_owned() } else { list.join(", ") + more };
    WhatIfError::Unknown { what, name: name.to_owned(), known }
}
