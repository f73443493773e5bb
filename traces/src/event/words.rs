//! Packs an event into 64-bit words, the form it has in a ring and in a file.

use std::num::NonZeroU64;

use super::{
    Activity, ChunkPhase, DraftRole, Event, EventKind, LaneId, Limited, MessageId, Milestone,
    NameId, Order, RowOutcome, Sending, SpanId, SpanInfo, StallCause, Tags, WaitInfo, WaitMode,
};
use crate::clock::Nanos;

mod chunks;

/// Number of 64-bit words of an event.
pub const WORDS: usize = 11;

/// Fields of an event before they are packed. Which of them are used depends on the kind.
#[derive(Clone, Copy, Debug, Default)]
struct Fields {
    kind: u8,
    sub: u8,
    stage: u16,
    layer: u16,
    role: u8,
    phase: u8,
    name: u32,
    id: u64,
    other: u64,
    since: u64,
    chunk: u64,
    request: u64,
    epoch: u32,
    rows: u32,
    bytes: u64,
    flops: u64,
}

impl Event {
    /// Packs the event into words.
    #[inline]
    pub fn to_words(&self) -> [u64; WORDS] {
        let f = Fields::of(&self.kind);
        [
            self.at.0,
            u64::from(f.kind)
                | u64::from(f.sub) << 8
                | u64::from(f.stage) << 16
                | u64::from(f.layer) << 32
                | u64::from(f.role) << 48
                | u64::from(f.phase) << 56,
            u64::from(self.lane.0) | u64::from(f.name) << 32,
            f.id,
            f.other,
            f.since,
            f.chunk,
            f.request,
            u64::from(f.epoch) | u64::from(f.rows) << 32,
            f.bytes,
            f.flops,
        ]
    }

    /// Unpacks an event. `None` if [`to_words`](Event::to_words) cannot produce these words.
    pub fn from_words(words: &[u64; WORDS]) -> Option<Event> {
        let fields = Fields {
            kind: words[1] as u8,
            sub: (words[1] >> 8) as u8,
            stage: (words[1] >> 16) as u16,
            layer: (words[1] >> 32) as u16,
            role: (words[1] >> 48) as u8,
            phase: (words[1] >> 56) as u8,
            name: (words[2] >> 32) as u32,
            id: words[3],
            other: words[4],
            since: words[5],
            chunk: words[6],
            request: words[7],
            epoch: words[8] as u32,
            rows: (words[8] >> 32) as u32,
            bytes: words[9],
            flops: words[10],
        };
        let event = Event {
            at: Nanos(words[0]),
            lane: LaneId(words[2] as u32),
            kind: fields.event_kind()?,
        };
        // Bits that this kind does not use must be clear, so that an event has exactly one form.
        (event.to_words() == *words).then_some(event)
    }
}

impl Fields {
    #[inline]
    fn of(event_kind: &EventKind) -> Fields {
        let none = Fields::default();
        match *event_kind {
            EventKind::Queued(span) => Fields { kind: 1, id: span.0.get(), ..none },
            EventKind::Submitted(span) => Fields { kind: 2, id: span.0.get(), ..none },
            EventKind::Started(span, info) => Fields { kind: 3, ..Fields::span(span, &info) },
            EventKind::Finished(span) => Fields { kind: 4, id: span.0.get(), ..none },
            EventKind::Ran(span, info, start) => {
                Fields { kind: 5, since: start.0, ..Fields::span(span, &info) }
            }
            EventKind::Sent(sending) => Fields {
                kind: 6,
                sub: sending.stall.map_or(0, |(cause, _)| cause.code()),
                name: sending.name.0,
                id: sending.message.0.get(),
                other: sending.span.map_or(0, |s| s.0.get()),
                since: sending.stall.map_or(0, |(_, since)| since.0),
                bytes: sending.bytes,
                ..none
            },
            EventKind::Received(message, span) => Fields {
                kind: 7,
                id: message.0.get(),
                other: span.map_or(0, |s| s.0.get()),
                ..none
            },
            EventKind::Woke(since) => Fields { kind: 8, since: since.0, ..none },
            EventKind::Waited(wait) => Fields {
                kind: 9,
                sub: wait.mode.code(),
                name: wait.name.0,
                other: wait.target.map_or(0, |s| s.0.get()),
                since: wait.since.0,
                chunk: wait.predicted,
                request: wait.margin,
                bytes: wait.slept,
                flops: wait.spun,
                ..none
            },
            EventKind::Freed(name, bytes) => Fields { kind: 10, name: name.0, bytes, ..none },
            EventKind::Counter(name, value) => {
                Fields { kind: 11, name: name.0, bytes: value.cast_unsigned(), ..none }
            }
            EventKind::Request(request, milestone, value) => {
                Fields { kind: 12, sub: milestone.code(), request, bytes: value, ..none }
            }
            EventKind::Rows(chunk, RowOutcome { drafted, accepted, wasted }) => Fields {
                kind: 13,
                chunk,
                rows: wasted,
                bytes: drafted.into(),
                flops: accepted.into(),
                ..none
            },
            EventKind::After(span, before, order) => Fields {
                kind: 14,
                sub: order.code(),
                id: span.0.get(),
                other: before.0.get(),
                ..none
            },
            EventKind::Limited(limited) => Fields::limited(&limited),
            EventKind::Routed(routed) => Fields::routed(&routed),
            EventKind::Need(need) => Fields::need(&need),
            EventKind::Rated(rated) => Fields::rated(&rated),
            EventKind::Experts(rows) => Fields::experts(&rows),
        }
    }

    #[inline]
    fn span(span: SpanId, info: &SpanInfo) -> Fields {
        let tags = &info.tags;
        Fields {
            sub: info.activity.code(),
            stage: tags.stage.map_or(0, |s| s.saturating_add(1)),
            layer: tags.layer.map_or(0, |l| l.saturating_add(1)),
            role: tags.role.map_or(0, DraftRole::code),
            phase: tags.phase.map_or(0, ChunkPhase::code),
            name: info.name.0,
            id: span.0.get(),
            other: info.parent.map_or(0, |s| s.0.get()),
            chunk: tags.chunk.map_or(0, |c| c.saturating_add(1)),
            request: tags.request.map_or(0, |r| r.saturating_add(1)),
            epoch: tags.epoch,
            rows: tags.rows,
            bytes: tags.bytes,
            flops: tags.flops,
            ..Fields::default()
        }
    }

    fn event_kind(&self) -> Option<EventKind> {
        let name = NameId(self.name);
        Some(match self.kind {
            1 => EventKind::Queued(self.id()?),
            2 => EventKind::Submitted(self.id()?),
            3 => EventKind::Started(self.id()?, self.info()?),
            4 => EventKind::Finished(self.id()?),
            5 => EventKind::Ran(self.id()?, self.info()?, Nanos(self.since)),
            6 => EventKind::Sent(Sending {
                message: MessageId(NonZeroU64::new(self.id)?),
                span: self.other(),
                name,
                bytes: self.bytes,
                stall: match self.sub {
                    0 => None,
                    code => Some((StallCause::from_code(code)?, Nanos(self.since))),
                },
            }),
            7 => EventKind::Received(MessageId(NonZeroU64::new(self.id)?), self.other()),
            8 => EventKind::Woke(Nanos(self.since)),
            9 => EventKind::Waited(WaitInfo {
                name,
                since: Nanos(self.since),
                target: self.other(),
                mode: WaitMode::from_code(self.sub)?,
                predicted: self.chunk,
                margin: self.request,
                slept: self.bytes,
                spun: self.flops,
            }),
            10 => EventKind::Freed(name, self.bytes),
            11 => EventKind::Counter(name, self.bytes.cast_signed()),
            12 => EventKind::Request(self.request, Milestone::from_code(self.sub)?, self.bytes),
            13 => EventKind::Rows(
                self.chunk,
                RowOutcome {
                    drafted: self.bytes.try_into().ok()?,
                    accepted: self.flops.try_into().ok()?,
                    wasted: self.rows,
                },
            ),
            14 => EventKind::After(self.id()?, self.other()?, Order::from_code(self.sub)?),
            15 => EventKind::Limited(Limited {
                chunk: self.chunk,
                stream: (self.sub > 0).then_some(self.request),
                slack: self.bytes,
            }),
            16 => EventKind::Experts(self.expert_rows()),
            17 => EventKind::Routed(self.route()?),
            18 => EventKind::Need(self.as_need()),
            19 => EventKind::Rated(self.as_rated()),
            _ => return None,
        })
    }

    fn id(&self) -> Option<SpanId> {
        NonZeroU64::new(self.id).map(SpanId)
    }

    fn other(&self) -> Option<SpanId> {
        NonZeroU64::new(self.other).map(SpanId)
    }

    fn info(&self) -> Option<SpanInfo> {
        Some(SpanInfo {
            name: NameId(self.name),
            activity: Activity::from_code(self.sub)?,
            parent: self.other(),
            tags: Tags {
                chunk: self.chunk.checked_sub(1),
                request: self.request.checked_sub(1),
                stage: self.stage.checked_sub(1),
                layer: self.layer.checked_sub(1),
                role: match self.role {
                    0 => None,
                    code => Some(DraftRole::from_code(code)?),
                },
                phase: match self.phase {
                    0 => None,
                    code => Some(ChunkPhase::from_code(code)?),
                },
                rows: self.rows,
                epoch: self.epoch,
                bytes: self.bytes,
                flops: self.flops,
            },
        })
    }
}
