//! State of a watched run, updated event by event.

use std::collections::{BTreeMap, HashMap, VecDeque};

use lapwing_engine::traces::Nanos;
use lapwing_engine::traces::Recording;
use lapwing_engine::traces::event::{EventKind, LaneKind, Milestone, NameId, SpanId};

/// Time span of strips and rates, in ns.
pub(super) const WINDOW: u64 = 4_000_000_000;

/// State of a run.
#[derive(Debug, Default)]
pub(super) struct Board {
    /// Current time.
    pub(super) now: Nanos,
    /// Lanes, by their number.
    pub(super) lanes: Vec<LaneView>,
    /// Ops by name: their number and total time.
    ops: HashMap<String, (u64, u64)>,
    /// Counters by lane and name.
    pub(super) counters: BTreeMap<(String, String), i64>,
    submitted: Option<Nanos>,
    first_token: Option<Nanos>,
    last_token: Option<Nanos>,
    /// Tokens so far.
    pub(super) tokens: u64,
    /// Tokens within the time span.
    recent: VecDeque<(Nanos, u64)>,
    /// Prompt tokens so far.
    pub(super) prompt_tokens: u64,
    /// Dropped events.
    pub(super) dropped: u64,
    open: HashMap<SpanId, (usize, Nanos)>,
}

/// State of a lane.
#[derive(Debug)]
pub(super) struct LaneView {
    /// Name.
    pub(super) name: String,
    /// Whether it ever runs anything that is recorded.
    pub(super) shown: bool,
    /// Busy intervals, by end.
    busy: VecDeque<(u64, u64)>,
}

impl Board {
    /// Adds newly recorded events.
    pub(super) fn add(&mut self, recording: &Recording, now: Nanos) {
        self.now = now;
        self.dropped = recording.dropped;
        for lane in recording.lanes.iter().skip(self.lanes.len()) {
            let shown = matches!(lane.kind, LaneKind::Device | LaneKind::Actor | LaneKind::Link);
            self.lanes.push(LaneView { name: lane.name.clone(), shown, busy: VecDeque::new() });
        }
        let name = |id: NameId| {
            recording.names.get(id.0 as usize).cloned().unwrap_or_else(|| "?".to_owned())
        };
        for event in &recording.events {
            let lane = event.lane.0 as usize;
            match event.kind {
                EventKind::Started(span, info) if info.parent.is_none() => {
                    self.open.insert(span, (lane, event.at));
                }
                EventKind::Finished(span) => {
                    if let Some((lane, start)) = self.open.remove(&span) {
                        self.ran(lane, start, event.at);
                    }
                }
                EventKind::Ran(_, info, start) if info.parent.is_none() => {
                    self.ran(lane, start, event.at);
                }
                EventKind::Ran(_, info, start) => {
                    let (count, total) = self.ops.entry(name(info.name)).or_default();
                    *count += 1;
                    *total += event.at.0.saturating_sub(start.0);
                }
                EventKind::Counter(id, value) => {
                    let lane = self.lanes.get(lane).map_or("?", |lane| &lane.name);
                    self.counters.insert((lane.to_owned(), name(id)), value);
                }
                EventKind::Request(_, milestone, value) => {
                    self.milestone(event.at, milestone, value)
                }
                _ => {}
            }
        }
        let old = now.0.saturating_sub(WINDOW);
        for lane in &mut self.lanes {
            while lane.busy.front().is_some_and(|(_, end)| *end < old) {
                lane.busy.pop_front();
            }
        }
        while self.recent.front().is_some_and(|(at, _)| at.0 < old) {
            self.recent.pop_front();
        }
    }

    fn ran(&mut self, lane: usize, start: Nanos, end: Nanos) {
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.busy.push_back((start.0, end.0));
        }
    }

    fn milestone(&mut self, at: Nanos, milestone: Milestone, value: u64) {
        match milestone {
            Milestone::Submitted => {
                self.submitted.get_or_insert(at);
                self.prompt_tokens += value;
            }
            Milestone::Token => {
                self.first_token.get_or_insert(at);
                self.last_token = Some(at);
                self.tokens += value;
                self.recent.push_back((at, value));
            }
            _ => {}
        }
    }

    /// Time to first token, in ms.
    pub(super) fn ttft_ms(&self) -> Option<f64> {
        let (submitted, first) = (self.submitted?, self.first_token?);
        Some(first.since(submitted).as_secs_f64() * 1e3)
    }

    /// Tokens per second: within the time span, and since the first token.
    pub(super) fn rates(&self) -> (Option<f64>, Option<f64>) {
        let rate = |tokens: u64, from: Nanos, to: Nanos| {
            let seconds = to.since(from).as_secs_f64();
            (seconds > 0.0 && tokens > 0).then(|| tokens as f64 / seconds)
        };
        // The first token of an answer ends no interval.
        let recent: u64 = self.recent.iter().skip(1).map(|(_, tokens)| tokens).sum();
        let now = self.recent.front().zip(self.recent.back());
        let now = now.and_then(|((from, _), (to, _))| rate(recent, *from, *to));
        let whole = self.first_token.zip(self.last_token);
        let mean = whole.and_then(|(from, to)| rate(self.tokens.saturating_sub(1), from, to));
        (now, mean)
    }

    /// Ops with the longest total time: name, count, total ns, share.
    pub(super) fn top_ops(&self, most: usize) -> Vec<(&str, u64, u64, f64)> {
        let all: u64 = self.ops.values().map(|(_, total)| total).sum();
        let mut ops: Vec<_> = self
            .ops
            .iter()
            .map(|(name, (count, total))| {
                (name.as_str(), *count, *total, *total as f64 / all.max(1) as f64)
            })
            .collect();
        ops.sort_unstable_by_key(|(name, _, total, _)| (std::cmp::Reverse(*total), *name));
        ops.truncate(most);
        ops
    }

    /// Busy share of each of `columns` equal parts of the time span, and of all of it.
    pub(super) fn busy(&self, lane: usize, columns: usize) -> (Vec<f64>, f64) {
        let (from, step) = (self.now.0 as f64 - WINDOW as f64, WINDOW as f64 / columns as f64);
        let mut shares = vec![0.0; columns];
        let running = self.open.values().filter(|(of, _)| *of == lane);
        let running = running.map(|(_, start)| (start.0, self.now.0));
        for (start, end) in self.lanes[lane].busy.iter().copied().chain(running) {
            let (start, end) = ((start as f64 - from) / step, (end as f64 - from) / step);
            let first = start.max(0.0) as usize;
            for (column, share) in shares.iter_mut().enumerate().skip(first) {
                let column = column as f64;
                if column >= end {
                    break;
                }
                *share += (end.min(column + 1.0) - start.max(column)).max(0.0);
            }
        }
        let mean = shares.iter().sum::<f64>() / columns.max(1) as f64;
        (shares, mean)
    }
}
