//! Packets of a trace: track descriptors, a string table, and events in order of time.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::export::fields::{Field, Value};
use crate::export::proto::Proto;

/// Track of the process.
pub(super) const PROCESS: u64 = 1;
/// Largest time, because readers store times as signed numbers; later times are clamped to it.
const LATEST: u64 = i64::MAX as u64;
/// Id of `CLOCK_MONOTONIC` among Perfetto's clocks.
const MONOTONIC: u64 = 3;

/// Kind of a track event.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind<'a> {
    /// A slice with this name and category begins.
    Begin(&'a str, &'a str),
    /// The most recently opened slice of the track ends.
    End,
    /// A counter has this value.
    Counter(i64),
}

/// An event on a track.
#[derive(Debug)]
pub(super) struct Event<'a> {
    at: u64,
    kind: Kind<'a>,
    pub(super) fields: Vec<Field<'a>>,
    /// Flows through the event: id, and whether the event is the start (0), a middle point (1) or
    /// the end (2).
    pub(super) flows: Vec<(usize, u8)>,
}

impl<'a> Event<'a> {
    pub(super) fn new(at: u64, kind: Kind<'a>) -> Event<'a> {
        Event { at, kind, fields: Vec::new(), flows: Vec::new() }
    }
}

/// An encoded event, with its time and flows.
#[derive(Debug)]
struct Written {
    at: u64,
    flows: Vec<(usize, u8)>,
    body: Proto,
}

/// A trace being written.
pub(super) struct Packets {
    descriptors: Vec<Proto>,
    names: Texts,
    categories: Texts,
    keys: Texts,
    /// Events of each track in order of time.
    events: BTreeMap<u64, Vec<Written>>,
    next_track: u64,
}

impl Packets {
    pub(super) fn new(process: &str, labels: impl Iterator<Item = String>) -> Packets {
        let mut about = Proto::default();
        about.int(1, 1).bytes(6, process.as_bytes());
        labels.for_each(|label| {
            about.bytes(8, label.as_bytes());
        });
        let mut track = Proto::default();
        track.uint(1, PROCESS).message(3, &about).uint(11, 3);
        Packets {
            descriptors: vec![track],
            names: Texts::default(),
            categories: Texts::default(),
            keys: Texts::default(),
            events: BTreeMap::new(),
            next_track: PROCESS + 1,
        }
    }

    /// Creates a track below another one, after its other children.
    pub(super) fn track(&mut self, parent: u64, name: &str, counter: bool) -> u64 {
        let uuid = self.next_track;
        self.next_track += 1;
        let mut track = Proto::default();
        track.uint(1, uuid).uint(5, parent).bytes(2, name.as_bytes());
        // Children are ordered by number; tracks of the same name are not merged.
        track.uint(11, 3).uint(12, uuid & 0x7fff_ffff).uint(15, 2);
        if counter {
            track.message(8, &Proto::default());
        }
        self.descriptors.push(track);
        uuid
    }

    /// Adds an event to a track. The events of a track must be added in order of time.
    pub(super) fn push(&mut self, track: u64, event: Event) {
        let mut body = Proto::default();
        let kind = match event.kind {
            Kind::Begin(name, category) => {
                body.uint(10, self.names.number(name)).uint(3, self.categories.number(category));
                1
            }
            Kind::End => 2,
            Kind::Counter(value) => {
                body.int(30, value);
                4
            }
        };
        body.uint(9, kind).uint(11, track);
        for (key, value) in &event.fields {
            let mut field = Proto::default();
            field.uint(1, self.keys.number(key));
            match value {
                Value::Number(number) => field.uint(3, *number),
                Value::Flag(flag) => field.uint(2, u64::from(*flag)),
                Value::Text(text) => field.bytes(6, text.as_bytes()),
            };
            body.message(4, &field);
        }
        for (number, place) in &event.flows {
            body.fixed(if *place == 2 { 48 } else { 47 }, *number as u64 + 1);
        }
        let written = Written { at: event.at.min(LATEST), flows: event.flows, body };
        self.events.entry(track).or_default().push(written);
    }

    /// Encodes the trace.
    pub(super) fn finish(self) -> Vec<u8> {
        let mut trace = Proto::default();
        let first_at = self.events.values().filter_map(|events| events.first()).map(|e| e.at).min();
        let mut clock = Proto::default();
        clock.uint(1, MONOTONIC).uint(2, first_at.unwrap_or(0));
        let mut snapshot = Proto::default();
        snapshot.message(1, &clock).uint(2, MONOTONIC);
        let mut defaults = Proto::default();
        defaults.uint(58, MONOTONIC);
        let mut texts = Proto::default();
        self.categories.write(1, &mut texts);
        self.names.write(2, &mut texts);
        self.keys.write(3, &mut texts);
        let mut first = Proto::default();
        first.message(6, &snapshot).message(59, &defaults).message(12, &texts);
        // The first packet resets the incremental state of the sequence, which the other packets
        // need.
        add_packet(&mut trace, first, 1);
        for descriptor in &self.descriptors {
            let mut packet = Proto::default();
            packet.message(60, descriptor);
            add_packet(&mut trace, packet, 2);
        }
        for event in in_order(self.events) {
            let mut packet = Proto::default();
            packet.uint(8, event.at).message(11, &event.body);
            add_packet(&mut trace, packet, 2);
        }
        trace.0
    }
}

fn add_packet(trace: &mut Proto, mut packet: Proto, sequence_flags: u64) {
    packet.uint(10, 1).uint(13, sequence_flags);
    trace.message(1, &packet);
}

/// Merges the tracks by time. Simultaneous events are ordered along their flows, because a reader
/// that meets the end of a flow before its start takes them for two flows.
fn in_order(tracks: BTreeMap<u64, Vec<Written>>) -> Vec<Written> {
    let mut heads: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    let mut flows_left: HashSet<(usize, u8)> = HashSet::new();
    let mut tracks: Vec<_> = tracks.into_values().map(|t| t.into_iter().peekable()).collect();
    for (number, track) in tracks.iter_mut().enumerate() {
        if let Some(event) = track.peek() {
            heads.entry(event.at).or_default().push(number);
        }
    }
    let mut ordered = Vec::new();
    while let Some((at, mut waiting)) = heads.pop_first() {
        // Flows through events of this time that are not written yet.
        flows_left.clear();
        let mut blocked = Vec::new();
        let mut groups: Vec<(usize, std::vec::IntoIter<Written>)> = Vec::new();
        for number in waiting.drain(..) {
            let mut group = Vec::new();
            while let Some(event) = tracks[number].next_if(|event| event.at == at) {
                flows_left.extend(event.flows.iter().copied());
                group.push(event);
            }
            if let Some(event) = tracks[number].peek() {
                heads.entry(event.at).or_default().push(number);
            }
            groups.push((number, group.into_iter()));
        }
        while !groups.is_empty() {
            let before = ordered.len();
            for (number, group) in groups.drain(..) {
                let mut group = group.peekable();
                while let Some(event) = group.next_if(|event| is_next(event, &flows_left)) {
                    event.flows.iter().for_each(|flow| _ = flows_left.remove(flow));
                    ordered.push(event);
                }
                let rest: Vec<Written> = group.collect();
                if !rest.is_empty() {
                    blocked.push((number, rest.into_iter()));
                }
            }
            if ordered.len() == before {
                // The flows form a cycle at one instant, so any order is acceptable.
                flows_left.clear();
            }
            std::mem::swap(&mut groups, &mut blocked);
        }
    }
    ordered
}

/// Whether all earlier points of its flows are written.
fn is_next(event: &Written, flows_left: &HashSet<(usize, u8)>) -> bool {
    let earlier =
        |(flow, place): &(usize, u8)| (0..*place).any(|place| flows_left.contains(&(*flow, place)));
    !event.flows.iter().any(earlier)
}

/// Interned strings: each is written once and referred to by number.
#[derive(Default)]
struct Texts {
    numbers: HashMap<String, u64>,
    table: Vec<String>,
}

impl Texts {
    fn number(&mut self, text: &str) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        self.table.push(text.to_owned());
        let number = self.table.len() as u64;
        self.numbers.insert(text.to_owned(), number);
        number
    }

    fn write(&self, field: u32, into: &mut Proto) {
        for (at, text) in self.table.iter().enumerate() {
            let mut entry = Proto::default();
            entry.uint(1, at as u64 + 1).bytes(2, text.as_bytes());
            into.message(field, &entry);
        }
    }
}
