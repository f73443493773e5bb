//! Perfetto's native format: a protobuf of trace packets.
//!
//! One process represents the run. Below it, every lane is a track with child tracks: one for each
//! slot and for concurrent inner spans, its idle time by cause, messages in transit, and counters.
//! The critical path has a track of its own. Times are nanoseconds of the recording on the
//! monotonic clock. A flow leads from the span that sends a message, over the message, to the span
//! that handles it; its id is the index of the message in the timeline plus one.

use super::fields::{self, Facts};
use super::messages::{self, MessageRows};
use super::tracks::{self, Tracks};
use crate::analysis::{Analysis, SegmentKind};
use crate::timeline::Timeline;

mod packets;

use packets::{Event, Kind, PROCESS, Packets};

/// Exports a timeline in Perfetto's format.
pub fn perfetto(timeline: &Timeline, analysis: &Analysis) -> Vec<u8> {
    let name = timeline.meta.get("model").map_or("lapwing", String::as_str);
    let labels = timeline.meta.iter().map(|(key, value)| format!("{key}: {value}"));
    let mut packets = Packets::new(name, labels);
    let facts = Facts::new(timeline, analysis);
    let packed = tracks::pack(timeline);
    let mail = messages::assign_rows(timeline);
    let path = packets.track(PROCESS, "critical path", false);
    let lanes = Lanes::new(timeline, &packed, &mail, &mut packets);
    add_spans(&mut packets, &facts, &packed, &lanes);
    add_messages(&mut packets, timeline, &mail, &lanes);
    add_gaps(&mut packets, &facts, analysis, &lanes);
    add_path(&mut packets, &facts, analysis, path);
    for counter in &timeline.counters {
        let track = packets.track(lanes.uuids[counter.lane], &counter.name, true);
        for (at, value) in &counter.values {
            packets.push(track, Event::new(at.0, Kind::Counter(*value)));
        }
    }
    packets.finish()
}

/// Ids of the tracks.
struct Lanes {
    /// Track of each lane.
    uuids: Vec<u64>,
    /// Id of each track of spans.
    spans: Vec<u64>,
    /// Track of each lane's idle time.
    idle: Vec<u64>,
    /// Tracks of messages, by lane and row.
    messages: Vec<Vec<u64>>,
}

impl Lanes {
    fn new(
        timeline: &Timeline,
        packed: &Tracks,
        mail: &MessageRows,
        packets: &mut Packets,
    ) -> Lanes {
        let mut lanes =
            Lanes { uuids: Vec::new(), spans: Vec::new(), idle: Vec::new(), messages: Vec::new() };
        let mut tracks = packed.tracks.iter().peekable();
        for (lane, name) in fields::lane_names(timeline).iter().enumerate() {
            let uuid = packets.track(PROCESS, name, false);
            lanes.uuids.push(uuid);
            while let Some(track) = tracks.next_if(|track| track.lane == lane) {
                let name = format!("{name} {}", track.row + 1);
                lanes.spans.push(packets.track(uuid, &name, false));
            }
            lanes.idle.push(packets.track(uuid, &format!("{name} idle"), false));
            let mut row = || packets.track(uuid, &format!("{name} messages"), false);
            lanes.messages.push((0..mail.rows[lane]).map(|_| row()).collect());
        }
        lanes
    }
}

fn add_spans(packets: &mut Packets, facts: &Facts, packed: &Tracks, lanes: &Lanes) {
    let timeline = facts.timeline;
    // Flows at the span's ends; a flow never goes back in time.
    let mut flows: Vec<Vec<(usize, u8)>> = vec![Vec::new(); timeline.spans.len()];
    for (number, message) in timeline.messages.iter().enumerate() {
        if let Some(from) = message.from.filter(|s| timeline.spans[*s].start <= message.sent) {
            flows[from].push((number, 0));
        }
        if let Some(to) = message.to.filter(|s| message.sent <= timeline.spans[*s].start) {
            flows[to].push((number, 2));
        }
    }
    for (track, uuid) in packed.tracks.iter().zip(&lanes.spans) {
        for edge in &track.edges {
            let span = &timeline.spans[edge.span];
            let event = if edge.begins {
                let category = span.activity.name();
                let mut event = Event::new(edge.at, Kind::Begin(&span.name, category));
                event.fields = facts.span(edge.span);
                event.flows = std::mem::take(&mut flows[edge.span]);
                event
            } else {
                Event::new(edge.at, Kind::End)
            };
            packets.push(*uuid, event);
        }
    }
}

fn add_messages(packets: &mut Packets, timeline: &Timeline, mail: &MessageRows, lanes: &Lanes) {
    for (number, message) in timeline.messages.iter().enumerate() {
        let track = lanes.messages[message.from_lane][mail.row_of[number]];
        let mut event = Event::new(message.sent.0, Kind::Begin(&message.name, "message"));
        event.fields = fields::message(message);
        event.flows = vec![(number, 1)];
        packets.push(track, event);
        packets.push(track, Event::new(message.received.unwrap_or(message.sent).0, Kind::End));
    }
}

fn add_gaps(packets: &mut Packets, facts: &Facts, analysis: &Analysis, lanes: &Lanes) {
    for gap in &analysis.gaps {
        let cause = gap.cause.title(facts.timeline);
        let mut event = Event::new(gap.start, Kind::Begin(&cause, "idle"));
        event.fields = facts.wait(gap.cause, gap.next, gap.blocker);
        packets.push(lanes.idle[gap.lane], event);
        packets.push(lanes.idle[gap.lane], Event::new(gap.end, Kind::End));
    }
}

fn add_path(packets: &mut Packets, facts: &Facts, analysis: &Analysis, track: u64) {
    for segment in &analysis.critical_path.segments {
        let (name, next, category) = match segment.kind {
            SegmentKind::Running(span) => {
                (facts.timeline.spans[span].name.clone(), span, "running")
            }
            SegmentKind::Waiting(cause, next) => (cause.title(facts.timeline), next, "waiting"),
        };
        let mut event = Event::new(segment.start, Kind::Begin(&name, category));
        event.fields = facts.segment(segment.lane, next);
        packets.push(track, event);
        packets.push(track, Event::new(segment.end, Kind::End));
    }
}
