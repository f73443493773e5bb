//! Assembles spans, messages and waits from events.

use std::collections::{BTreeMap, HashMap};

use super::{
    After, Counter, ExpertsOnLane, Freed, Lane, Message, RatedRoute, RequestMilestone, RouteChoice,
    Sleep, Span, Timeline, Wait,
};
use crate::clock::Nanos;
use crate::event::{
    Event, EventKind, LaneId, LaneKind, MessageId, Milestone, NameId, Rated, Routed, Sending,
    SpanId, SpanInfo,
};
use crate::recording::Recording;

/// A timeline under construction.
struct Build<'a> {
    recording: &'a Recording,
    spans: HashMap<SpanId, Open>,
    sent: HashMap<MessageId, (Event, Sending)>,
    received: HashMap<MessageId, (Event, Option<SpanId>)>,
    counters: BTreeMap<(usize, NameId), Vec<(Nanos, i64)>>,
    /// Lanes that have no entry in the recording, by their number.
    unnamed: HashMap<LaneId, usize>,
    timeline: Timeline,
}

/// What is known about a span so far.
#[derive(Clone, Copy, Default)]
struct Open {
    lane: usize,
    info: Option<SpanInfo>,
    queued: Option<Nanos>,
    submitted: Option<Nanos>,
    start: Option<Nanos>,
    end: Option<Nanos>,
}

/// Assembles a timeline. Events without a counterpart count as orphans from `since` on.
pub(super) fn build(recording: &Recording, since: Nanos) -> Timeline {
    let mut events: Vec<&Event> = recording.events.iter().collect();
    events.sort_by_key(|event| event.at);
    let last = events.last().map_or(Nanos(0), |event| event.at);
    let mut build = Build {
        recording,
        spans: HashMap::new(),
        sent: HashMap::new(),
        received: HashMap::new(),
        counters: BTreeMap::new(),
        unnamed: HashMap::new(),
        timeline: Timeline {
            meta: recording.meta.clone(),
            lanes: recording
                .lanes
                .iter()
                .map(|lane| Lane { name: lane.name.clone(), kind: lane.kind, slots: 0 })
                .collect(),
            dropped: recording.dropped,
            ..Timeline::default()
        },
    };
    for event in &events {
        build.take(event);
    }
    let index = build.close_spans(since, last);
    build.close_links(&index, since, &events);
    build.timeline
}

impl Build<'_> {
    fn name(&self, id: NameId) -> String {
        match self.recording.names.get(id.0 as usize) {
            Some(name) => name.clone(),
            None => format!("name {}", id.0),
        }
    }

    /// Index of a lane; a lane without an entry in the recording is added.
    fn lane(&mut self, id: LaneId) -> usize {
        let at = id.0 as usize;
        if at < self.recording.lanes.len() {
            return at;
        }
        let lanes = &mut self.timeline.lanes;
        *self.unnamed.entry(id).or_insert_with(|| {
            let name = format!("lane {}", id.0);
            lanes.push(Lane { name, kind: LaneKind::Thread, slots: 0 });
            lanes.len() - 1
        })
    }

    fn routed(&mut self, routed: Routed) {
        let [route, alone] = [routed.route, routed.alone].map(|name| self.name(name));
        let Routed { chunk, end, alone_end, is_due, .. } = routed;
        let routes = Vec::new();
        let choice = RouteChoice { route, end, alone, alone_end, is_due, routes };
        self.timeline.routed.insert(chunk, choice);
    }

    fn rated(&mut self, rated: Rated) {
        let route = self.name(rated.route);
        let Rated { chunk, end, alone, busy, is_ready, .. } = rated;
        if let Some(choice) = self.timeline.routed.get_mut(&chunk) {
            choice.routes.push(RatedRoute { route, end, alone, busy, is_ready });
        }
    }

    fn take(&mut self, event: &Event) {
        let at = event.at;
        match event.kind {
            EventKind::Queued(id) => self.spans.entry(id).or_default().queued = Some(at),
            EventKind::Submitted(id) => self.spans.entry(id).or_default().submitted = Some(at),
            EventKind::Finished(id) => self.spans.entry(id).or_default().end = Some(at),
            EventKind::Started(id, info) => {
                let lane = self.lane(event.lane);
                let open = self.spans.entry(id).or_default();
                (open.lane, open.info, open.start) = (lane, Some(info), Some(at));
            }
            EventKind::Ran(id, info, start) => {
                let lane = self.lane(event.lane);
                let open = self.spans.entry(id).or_default();
                (open.lane, open.info, open.start) = (lane, Some(info), Some(start.min(at)));
                open.end = Some(at);
            }
            EventKind::Sent(sending) => {
                self.sent.insert(sending.message, (*event, sending));
            }
            EventKind::Received(message, span) => {
                self.received.insert(message, (*event, span));
            }
            EventKind::Woke(since) => {
                let lane = self.lane(event.lane);
                self.timeline.sleeps.push(Sleep { lane, start: since.min(at), end: at });
            }
            EventKind::Freed(name, bytes) => {
                let (lane, name) = (self.lane(event.lane), self.name(name));
                self.timeline.freed.push(Freed { lane, name, at, bytes });
            }
            EventKind::Counter(name, value) => {
                let lane = self.lane(event.lane);
                self.counters.entry((lane, name)).or_default().push((at, value));
            }
            EventKind::Request(request, milestone, value) => {
                if milestone == Milestone::TokenGap {
                    self.timeline.gap_targets.insert(request, value);
                }
                self.timeline.milestones.push(RequestMilestone { request, milestone, at, value });
            }
            EventKind::Rows(chunk, rows) => {
                let sum = self.timeline.outcomes.entry(chunk).or_default();
                sum.drafted = sum.drafted.saturating_add(rows.drafted);
                sum.accepted = sum.accepted.saturating_add(rows.accepted);
                sum.wasted = sum.wasted.saturating_add(rows.wasted);
            }
            EventKind::Experts(rows) => {
                let lane = self.lane(event.lane);
                self.timeline.experts.push(ExpertsOnLane { lane, at, rows });
            }
            EventKind::Limited(limited) => {
                self.timeline.limited.insert(limited.chunk, limited);
            }
            EventKind::Routed(routed) => self.routed(routed),
            EventKind::Rated(rated) => self.rated(rated),
            EventKind::Need(need) => {
                self.timeline.needs.entry(need.chunk).or_default().push(need);
            }
            // Handled in `close_links`, because their spans may start and end later.
            EventKind::Waited(_) | EventKind::After(..) => {}
        }
    }

    /// Creates the spans that have a start; returns the index of each.
    fn close_spans(&mut self, since: Nanos, last: Nanos) -> HashMap<SpanId, usize> {
        let mut spans = Vec::with_capacity(self.spans.len());
        let mut parents = HashMap::new();
        for (id, open) in std::mem::take(&mut self.spans) {
            let (Some(info), Some(start)) = (open.info, open.start) else {
                let latest = [open.queued, open.submitted, open.end].into_iter().max().flatten();
                self.timeline.orphans += u64::from(latest.is_none_or(|at| at >= since));
                continue;
            };
            if let Some(parent) = info.parent {
                parents.insert(id, parent);
            }
            let end = open.end.filter(|end| *end >= start);
            spans.push(Span {
                id,
                lane: open.lane,
                slot: 0,
                parent: None,
                depth: 0,
                name: self.name(info.name),
                activity: info.activity,
                queued: open.queued,
                submitted: open.submitted,
                start,
                end: end.unwrap_or(last.max(start)),
                finished: end.is_some(),
                discarded: false,
                tags: info.tags,
            });
        }
        spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end), span.id));
        let index: HashMap<SpanId, usize> =
            spans.iter().enumerate().map(|(at, span)| (span.id, at)).collect();
        for (child, parent) in parents {
            let (child, parent) = (index[&child], index.get(&parent).copied());
            // A span on another lane, or one that extends beyond its parent, becomes an outer span.
            spans[child].parent = parent.filter(|parent| contains(&spans[*parent], &spans[child]));
        }
        self.timeline.spans = spans;
        super::slots::assign(&mut self.timeline);
        super::discarded::mark(&mut self.timeline);
        index
    }

    fn close_links(&mut self, index: &HashMap<SpanId, usize>, since: Nanos, events: &[&Event]) {
        let find = |id: Option<SpanId>| id.and_then(|id| index.get(&id).copied());
        let mut sent: Vec<(Event, Sending)> =
            std::mem::take(&mut self.sent).into_values().collect();
        sent.sort_by_key(|(event, sending)| (event.at, sending.message));
        for (event, sending) in sent {
            let received = self.received.remove(&sending.message);
            let message = Message {
                from: find(sending.span),
                to: received.and_then(|(_, span)| find(span)),
                from_lane: self.lane(event.lane),
                to_lane: received.map(|(event, _)| self.lane(event.lane)),
                name: self.name(sending.name),
                sent: event.at,
                received: received.map(|(received, _)| received.at.max(event.at)),
                bytes: sending.bytes,
                stall: sending.stall.map(|(cause, since)| (cause, since.min(event.at))),
            };
            self.timeline.messages.push(message);
        }
        let orphans = self.received.values().filter(|(event, _)| event.at >= since);
        self.timeline.orphans += orphans.count() as u64;
        for event in events {
            if let EventKind::After(span, before, order) = event.kind {
                // The earlier span may belong to an earlier part of the run.
                if let (Some(span), Some(before)) = (find(Some(span)), find(Some(before))) {
                    self.timeline.afters.push(After { span, before, order });
                }
            }
            if let EventKind::Waited(wait) = event.kind {
                let lane = self.lane(event.lane);
                let wait = Wait {
                    lane,
                    name: self.name(wait.name),
                    target: find(wait.target),
                    mode: wait.mode,
                    start: wait.since.min(event.at),
                    end: event.at,
                    predicted: wait.predicted,
                    margin: wait.margin,
                    slept: wait.slept,
                    spun: wait.spun,
                };
                self.timeline.waits.push(wait);
            }
        }
        for ((lane, name), values) in std::mem::take(&mut self.counters) {
            let name = self.name(name);
            self.timeline.counters.push(Counter { name, lane, values });
        }
    }
}

fn contains(parent: &Span, child: &Span) -> bool {
    parent.lane == child.lane
        && parent.start <= child.start
        && child.end <= parent.end
        && (parent.start, std::cmp::Reverse(parent.end), parent.id)
            < (child.start, std::cmp::Reverse(child.end), child.id)
}
