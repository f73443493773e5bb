//! Generates recordings of any shape.

use std::num::NonZeroU64;

use lapwing_traces::Nanos;
use lapwing_traces::event::{
    Activity, ChunkPhase, DraftRole, Event, EventKind, ExpertRows, LaneId, LaneKind, Limited,
    MessageId, Milestone, NameId, Need, Order, Rated, Routed, RowOutcome, Sending, SpanId,
    SpanInfo, StallCause, Tags, WaitInfo, WaitMode,
};
use lapwing_traces::recording::{LaneInfo, Recording};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// Mostly small numbers, as in real recordings, but also the largest ones.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..300u64, 2 => any::<u64>(), 1 => Just(u64::MAX)]
}

fn span() -> impl Strategy<Value = SpanId> {
    number().prop_map(|n| SpanId(NonZeroU64::MIN.saturating_add(n)))
}

fn message() -> impl Strategy<Value = MessageId> {
    number().prop_map(|n| MessageId(NonZeroU64::MIN.saturating_add(n)))
}

fn nanos() -> impl Strategy<Value = Nanos> {
    number().prop_map(Nanos)
}

fn name() -> impl Strategy<Value = NameId> {
    any::<u32>().prop_map(NameId)
}

fn info() -> impl Strategy<Value = SpanInfo> {
    let subject = (option::of(0..u64::MAX), option::of(0..u64::MAX));
    let place = (option::of(0..u16::MAX), option::of(0..u16::MAX));
    let work = (option::of(select(DraftRole::ALL)), option::of(select(ChunkPhase::ALL)));
    let size = (any::<u32>(), any::<u32>(), number(), number());
    let tags = (subject, place, work, size).prop_map(
        |((chunk, request), (stage, layer), (role, phase), (rows, epoch, bytes, flops))| Tags {
            chunk,
            request,
            stage,
            layer,
            role,
            phase,
            rows,
            epoch,
            bytes,
            flops,
        },
    );
    (name(), select(Activity::ALL), option::of(span()), tags)
        .prop_map(|(name, activity, parent, tags)| SpanInfo { name, activity, parent, tags })
}

fn wait() -> impl Strategy<Value = WaitInfo> {
    let times = (number(), number(), number(), number());
    (name(), nanos(), option::of(span()), select(WaitMode::ALL), times).prop_map(
        |(name, since, target, mode, (predicted, margin, slept, spun))| WaitInfo {
            name,
            since,
            target,
            mode,
            predicted,
            margin,
            slept,
            spun,
        },
    )
}

fn sending() -> impl Strategy<Value = Sending> {
    let stall = option::of((select(StallCause::ALL), nanos()));
    (message(), option::of(span()), name(), number(), stall).prop_map(
        |(message, span, name, bytes, stall)| Sending { message, span, name, bytes, stall },
    )
}

fn event_kind() -> impl Strategy<Value = EventKind> {
    prop_oneof![
        span().prop_map(EventKind::Queued),
        span().prop_map(EventKind::Submitted),
        (span(), info()).prop_map(|(span, info)| EventKind::Started(span, info)),
        span().prop_map(EventKind::Finished),
        (span(), info(), nanos()).prop_map(|(span, info, start)| EventKind::Ran(span, info, start)),
        sending().prop_map(EventKind::Sent),
        (message(), option::of(span()))
            .prop_map(|(message, span)| EventKind::Received(message, span)),
        nanos().prop_map(EventKind::Woke),
        wait().prop_map(EventKind::Waited),
        (name(), number()).prop_map(|(name, bytes)| EventKind::Freed(name, bytes)),
        (name(), any::<i64>()).prop_map(|(name, value)| EventKind::Counter(name, value)),
        (number(), select(Milestone::ALL), number())
            .prop_map(|(request, milestone, value)| EventKind::Request(request, milestone, value)),
        (number(), any::<[u32; 3]>()).prop_map(|(chunk, [drafted, accepted, wasted])| {
            EventKind::Rows(chunk, RowOutcome { drafted, accepted, wasted })
        }),
        (span(), span(), select(Order::ALL))
            .prop_map(|(span, before, order)| EventKind::After(span, before, order)),
        (number(), option::of(number()), number()).prop_map(|(chunk, stream, slack)| {
            EventKind::Limited(Limited { chunk, stream, slack })
        }),
        ([number(), number(), number()], name(), name(), any::<bool>()).prop_map(
            |([chunk, end, alone_end], route, alone, is_due)| {
                EventKind::Routed(Routed { chunk, route, end, alone, alone_end, is_due })
            }
        ),
        ([number(), number(), number(), number()], name(), any::<bool>()).prop_map(
            |([chunk, end, alone, busy], route, is_ready)| {
                EventKind::Rated(Rated { chunk, route, end, alone, busy, is_ready })
            }
        ),
        (number(), any::<u32>(), any::<[u64; Need::DEVICES]>(), number()).prop_map(
            |(chunk, count, times, path)| EventKind::Need(Need { chunk, count, times, path })
        ),
        (any::<(u8, u16, u16, u32)>(), any::<[u16; ExpertRows::MANY]>()).prop_map(
            |((model, layer, experts, first), rows)| {
                EventKind::Experts(ExpertRows { model, layer, experts, first, rows })
            }
        ),
    ]
}

pub(crate) fn event() -> impl Strategy<Value = Event> {
    (nanos(), any::<u32>(), event_kind()).prop_map(|(at, lane, kind)| Event {
        at,
        lane: LaneId(lane),
        kind,
    })
}

pub(crate) fn recording() -> impl Strategy<Value = Recording> {
    let lane = (".{0,12}", select(LaneKind::ALL)).prop_map(|(name, kind)| LaneInfo { name, kind });
    (
        btree_map(".{0,8}", ".{0,20}", 0..4),
        vec(lane, 0..5),
        vec(".{0,12}", 0..8),
        vec(event(), 0..60),
        number(),
    )
        .prop_map(|(meta, lanes, names, events, dropped)| Recording {
            meta,
            lanes,
            names,
            events,
            dropped,
        })
}
