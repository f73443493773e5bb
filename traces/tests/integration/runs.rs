//! Recordings written by hand, and schedules of random programs.

use std::num::NonZeroU64;

use lapwing_traces::event::{
    Activity, Event, EventKind, LaneId, LaneKind, MessageId, NameId, Sending, SpanId, SpanInfo,
    StallCause, Tags, WaitInfo, WaitMode,
};
use lapwing_traces::recording::{LaneInfo, Recording};
use lapwing_traces::{Analysis, Nanos, Timeline};
use proptest::prelude::*;

pub(crate) fn span_id(number: u64) -> SpanId {
    SpanId(NonZeroU64::new(number).unwrap())
}

pub(crate) fn message_id(number: u64) -> MessageId {
    MessageId(NonZeroU64::new(number).unwrap())
}

/// A recording written step by step.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) recording: Recording,
    messages: u64,
}

/// A span to record.
pub(crate) struct Work<'a> {
    pub(crate) id: u64,
    pub(crate) lane: &'a str,
    pub(crate) name: &'a str,
    pub(crate) activity: Activity,
    pub(crate) time: (u64, u64),
    pub(crate) parent: Option<u64>,
    pub(crate) tags: Tags,
}

/// A span with default activity and tags.
pub(crate) fn work<'a>(id: u64, lane: &'a str, name: &'a str, time: (u64, u64)) -> Work<'a> {
    let activity = Activity::Compute;
    Work { id, lane, name, activity, time, parent: None, tags: Tags::default() }
}

/// The part of a wait that was predicted, and the part that was slept; the rest was polled.
#[derive(Clone, Copy, Default)]
pub(crate) struct Slept {
    pub(crate) predicted: u64,
    pub(crate) margin: u64,
    pub(crate) slept: u64,
}

impl Script {
    pub(crate) fn lane(&mut self, name: &str) -> LaneId {
        let lanes = &mut self.recording.lanes;
        let at = lanes.iter().position(|lane| lane.name == name).unwrap_or_else(|| {
            lanes.push(LaneInfo { name: name.to_owned(), kind: LaneKind::Device });
            lanes.len() - 1
        });
        LaneId(at as u32)
    }

    pub(crate) fn name(&mut self, text: &str) -> NameId {
        let names = &mut self.recording.names;
        let at = names.iter().position(|name| name == text).unwrap_or_else(|| {
            names.push(text.to_owned());
            names.len() - 1
        });
        NameId(at as u32)
    }

    pub(crate) fn event(&mut self, at: u64, lane: &str, kind: EventKind) {
        let lane = self.lane(lane);
        self.recording.events.push(Event { at: Nanos(at), lane, kind });
    }

    pub(crate) fn work(&mut self, work: Work<'_>) -> &mut Script {
        let info = SpanInfo {
            name: self.name(work.name),
            activity: work.activity,
            parent: work.parent.map(span_id),
            tags: work.tags,
        };
        let (start, end) = work.time;
        self.event(end, work.lane, EventKind::Ran(span_id(work.id), info, Nanos(start)));
        self
    }

    pub(crate) fn ran(&mut self, id: u64, lane: &str, time: (u64, u64)) -> &mut Script {
        self.work(work(id, lane, "op", time))
    }

    /// Records a message between two spans (0: from outside) as (sent, received).
    pub(crate) fn sent(
        &mut self,
        spans: (u64, u64),
        lanes: (&str, &str),
        time: (u64, u64),
    ) -> &mut Script {
        self.stalled(spans, lanes, time, None)
    }

    pub(crate) fn stalled(
        &mut self,
        spans: (u64, u64),
        lanes: (&str, &str),
        time: (u64, u64),
        stall: Option<(StallCause, u64)>,
    ) -> &mut Script {
        self.messages += 1;
        let message = message_id(self.messages);
        let sending = Sending {
            message,
            span: (spans.0 > 0).then(|| span_id(spans.0)),
            name: self.name("chunk"),
            bytes: 0,
            stall: stall.map(|(cause, since)| (cause, Nanos(since))),
        };
        self.event(time.0, lanes.0, EventKind::Sent(sending));
        self.event(time.1, lanes.1, EventKind::Received(message, Some(span_id(spans.1))));
        self
    }

    /// Records a wait of `lane` for a span as (start, end).
    pub(crate) fn waited(
        &mut self,
        lane: &str,
        target: u64,
        time: (u64, u64),
        sleep: Slept,
    ) -> &mut Script {
        let Slept { predicted, margin, slept } = sleep;
        let wait = WaitInfo {
            name: self.name("device"),
            since: Nanos(time.0),
            target: Some(span_id(target)),
            mode: WaitMode::SleepThenSpin,
            predicted,
            margin,
            slept,
            spun: time.1 - time.0 - slept,
        };
        self.event(time.1, lane, EventKind::Waited(wait));
        self
    }

    pub(crate) fn analysed(&self) -> (Timeline, Analysis) {
        let timeline = Timeline::new(&self.recording);
        let analysis = Analysis::new(&timeline);
        (timeline, analysis)
    }
}

/// A piece of work of a random program.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) lane: usize,
    pub(crate) duration: u64,
    /// Dependencies: an earlier piece, the duration of its message, and the time between sending
    /// and the end of the sender.
    pub(crate) needs: Vec<(usize, u64, u64)>,
    /// Time between being ready and starting.
    pub(crate) lag: u64,
    pub(crate) inner: bool,
}

/// Programs of up to 40 pieces on up to 4 lanes.
pub(crate) fn programs() -> impl Strategy<Value = Vec<Piece>> {
    let piece = (
        0..4_usize,
        prop_oneof![Just(0), 1..100_u64],
        prop::collection::vec((any::<prop::sample::Index>(), 0..20_u64, 0..30_u64), 0..3),
        prop_oneof![Just(0), 0..10_u64],
        any::<bool>(),
    );
    prop::collection::vec(piece, 1..40).prop_map(|pieces| {
        let piece = |(at, (lane, duration, needs, lag, inner)): (usize, (_, _, Vec<_>, _, _))| {
            let needs = needs.into_iter().filter(|_| at > 0);
            let needs = needs
                .map(|(n, way, early): (prop::sample::Index, _, _)| (n.index(at), way, early))
                .collect();
            Piece { lane, duration, needs, lag, inner }
        };
        pieces.into_iter().enumerate().map(piece).collect()
    })
}

/// Runs a program: each lane runs its pieces in order, each as early as possible. A `thread` takes
/// messages out of its mailbox only when it is free; otherwise they are recorded on arrival.
pub(crate) fn schedule(program: &[Piece], thread: bool) -> Script {
    let mut script = Script::default();
    let mut free = [0_u64; 4];
    let mut times: Vec<(u64, u64)> = Vec::new();
    for (at, piece) in program.iter().enumerate() {
        let lane = format!("lane {}", piece.lane);
        let free_at = free[piece.lane];
        let mut came = free_at;
        let mut messages = Vec::new();
        for (from, way, early) in &piece.needs {
            let sent = times[*from].1.saturating_sub(*early).max(times[*from].0);
            came = came.max(sent + way);
            messages.push((*from, sent, sent + way));
        }
        let start = came + piece.lag;
        let time = (start, start + piece.duration);
        let id = at as u64 + 1;
        script.work(work(id, &lane, &format!("op {}", at % 5), time));
        if piece.inner && piece.duration > 2 {
            let inner = (start + 1, start + 1 + piece.duration / 2);
            let inner = Work { parent: Some(id), ..work(1000 + id, &lane, "inner", inner) };
            script.work(inner);
        }
        if came > free_at {
            script.event(came, &lane, EventKind::Woke(Nanos(free_at)));
        }
        for (from, sent, received) in messages {
            let sender = format!("lane {}", program[from].lane);
            // Some dependencies become waits, where there is a span to wait for.
            if sent == times[from].1 && sent > free_at && (from + at) % 2 == 1 {
                let sleep = Slept { slept: (received - free_at) / 2, ..Slept::default() };
                script.waited(&lane, from as u64 + 1, (free_at, received), sleep);
                continue;
            }
            let taken = if thread { received.max(start.min(free_at + 1)) } else { received };
            script.sent((from as u64 + 1, id), (&sender, &lane), (sent, taken));
        }
        times.push(time);
        free[piece.lane] = time.1;
    }
    script
}
