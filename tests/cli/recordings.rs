//! A recording that tests of several commands read.

use std::num::NonZeroU64;
use std::path::Path;

use lapwing_traces::Nanos;
use lapwing_traces::event::{
    Activity, DraftRole, Event, EventKind, ExpertRows, LaneId, LaneKind, Limited, MessageId,
    Milestone, NameId, Rated, Routed, RowOutcome, Sending, SpanId, SpanInfo, StallCause, Tags,
    WaitInfo, WaitMode,
};
use lapwing_traces::recording::{LaneInfo, Recording};

const NAMES: [&str; 9] = [
    "decode",
    "attn",
    "chunk",
    "gpu done",
    "queue depth",
    "kv pages",
    "read weights",
    "gpu",
    "cpu+gpu",
];

fn span(id: u64) -> SpanId {
    SpanId(NonZeroU64::new(id).expect("not 0"))
}

/// A run with all kinds of events: 100 µs, of which `cpu` computes 40 and then `gpu` 60.
pub(crate) fn recording(gpu_ns: u64) -> Recording {
    let mut events = Vec::new();
    let mut event = |at: u64, lane: u32, kind: EventKind| {
        events.push(Event { at: Nanos(at), lane: LaneId(lane), kind });
    };
    let info = |name: u32, parent: Option<SpanId>, request: u64| SpanInfo {
        name: NameId(name),
        activity: Activity::Compute,
        parent,
        tags: Tags {
            chunk: Some(7),
            request: Some(request),
            role: Some(DraftRole::Verify),
            rows: 3,
            bytes: 4_000,
            flops: 8_000,
            ..Tags::default()
        },
    };
    let end = 40_000 + gpu_ns;
    event(0, 0, EventKind::Request(1, Milestone::Submitted, 3));
    event(0, 0, EventKind::Request(1, Milestone::TokenGap, 25_000));
    event(0, 0, EventKind::Limited(Limited { chunk: 7, stream: Some(1), slack: 48_000 }));
    event(500, 0, EventKind::Request(1, Milestone::Admitted, 0));
    event(40_000, 0, EventKind::Ran(span(1), info(0, None, 1), Nanos(0)));
    event(30_000, 0, EventKind::Ran(span(2), info(1, Some(span(1)), 1), Nanos(10_000)));
    let message = MessageId(NonZeroU64::MIN);
    let stall = Some((StallCause::BackPressure, Nanos(39_000)));
    let name = NameId(2);
    let sending = Sending { message, span: Some(span(1)), name, bytes: 64, stall };
    event(40_000, 0, EventKind::Sent(sending));
    event(40_000, 1, EventKind::Received(message, Some(span(3))));
    event(end, 1, EventKind::Ran(span(3), info(1, None, 1), Nanos(40_000)));
    let wait = WaitInfo {
        name: NameId(3),
        since: Nanos(40_000),
        target: Some(span(3)),
        mode: WaitMode::SleepThenSpin,
        predicted: 59_000,
        margin: 1_000,
        slept: 58_000,
        spun: end - 40_000 - 58_000,
    };
    event(end, 0, EventKind::Waited(wait));
    event(0, 0, EventKind::Counter(NameId(4), 1));
    event(50_000, 0, EventKind::Counter(NameId(4), 3));
    event(end, 0, EventKind::Freed(NameId(5), 4_096));
    let rows = std::array::from_fn(|expert| [3, 0, 1, 2].get(expert).copied().unwrap_or(0));
    let rows = ExpertRows { model: 0, layer: 5, experts: 4, first: 0, rows };
    event(30_000, 0, EventKind::Experts(rows));
    for at in [60_000, 80_000, 100_000] {
        event(at, 1, EventKind::Request(1, Milestone::Token, 1));
    }
    event(end, 0, EventKind::Rows(7, RowOutcome { drafted: 2, accepted: 1, wasted: 1 }));
    event(end, 0, EventKind::Request(1, Milestone::Finished, 0));
    let lane = |name: &str| LaneInfo { name: name.to_owned(), kind: LaneKind::Device };
    Recording {
        meta: [("model".to_owned(), "tiny".to_owned())].into(),
        lanes: vec![lane("cpu"), lane("gpu")],
        names: NAMES.map(str::to_owned).to_vec(),
        events,
        dropped: 0,
    }
}

/// Saves the run in a file.
pub(crate) fn saved(folder: &Path, name: &str, gpu_ns: u64) -> String {
    let path = folder.join(name);
    recording(gpu_ns).save(&path).expect("save");
    path.display().to_string()
}

/// The same of a run that also reads weights from a disk, and whose chunk could take two routes.
pub(crate) fn saved_reading(folder: &Path, name: &str, gpu_ns: u64) -> String {
    let mut recording = recording(gpu_ns);
    let tags = Tags { bytes: 4_096, ..Tags::default() };
    let (name_of, parent) = (NameId(6), Some(span(1)));
    let read = SpanInfo { name: name_of, activity: Activity::Read, parent, tags };
    let kind = EventKind::Ran(span(4), read, Nanos(8_000));
    recording.events.push(Event { at: Nanos(9_000), lane: LaneId(0), kind });
    let (route, alone) = (NameId(7), NameId(8));
    let routed = Routed { chunk: 7, route, end: 30_000, alone, alone_end: 42_000, is_due: true };
    let kind = EventKind::Routed(routed);
    let rated = Rated { chunk: 7, route, end: 30_000, alone: 25_000, busy: 4_000, is_ready: true };
    let taken = EventKind::Rated(rated);
    let other = EventKind::Rated(Rated { route: alone, end: 42_000, busy: 20_000, ..rated });
    for (at, kind) in [kind, other, taken].into_iter().enumerate() {
        recording.events.insert(at, Event { at: Nanos(0), lane: LaneId(0), kind });
    }
    let path = folder.join(name);
    recording.save(&path).expect("save");
    path.display().to_string()
}
