//! Spans that are never entered: work on a lane that lasts from its creation to its close, and what passes from lane to lane
//! while its children are that work.

use tracing_core::span::Id;
use tracing_subscriber::registry::{LookupSpan, SpanRef};

use super::local::{Local, OpenVisit};
use super::{SpanData, TimelineLayer, Visit, send};
use crate::event::{EventKind, MessageId, SpanInfo};

impl Visit {
    /// The one of two that ended later.
    pub(super) fn later(a: Option<Visit>, b: Option<Visit>) -> Option<Visit> {
        a.into_iter().chain(b).max_by_key(|visit| visit.end)
    }
}

impl TimelineLayer {
    /// Begins the work of a span that has a lane: it comes after what its parent has passed through before.
    pub(super) fn begin<'a, S: LookupSpan<'a>>(&self, span: &SpanRef<'a, S>, data: &mut SpanData) {
        let known = |parent: SpanRef<'a, S>| parent.extensions().get::<SpanData>()?.carried;
        if let Some(before) = span.parent().and_then(known) {
            data.inbox.extend(self.follow(&span.id(), before));
        }
        data.began = self.shared.with_local(|local| local.writer.now());
    }

    /// Records a message from a visit to the span that follows it.
    pub(super) fn follow(&self, id: &Id, before: Visit) -> Option<MessageId> {
        let by = OpenVisit { id: id.into_u64(), span: before.span, lane: before.lane };
        let message = |local: &mut Local| {
            let at = before.end.unwrap_or_else(|| local.writer.now());
            send(local, at, by, self.shared.follows)
        };
        self.shared.with_local(message)
    }

    /// Ends the work of a span that has a lane and was never entered.
    pub(super) fn close(&self, data: &mut SpanData) -> Option<Visit> {
        let (lane, start) = (data.lane?, data.began.filter(|_| data.visit.is_none())?);
        self.shared.with_local(|local| {
            let (span, end) = (local.writer.span(), local.writer.now());
            let info = SpanInfo {
                name: *data.name_id.get_or_insert_with(|| self.recorder().name(data.name)),
                activity: data.fields.activity,
                parent: None,
                tags: data.fields.tags,
            };
            local.writer.record(end, lane, EventKind::Ran(span, info, start));
            for message in data.inbox.drain(..) {
                local.writer.record(start, lane, EventKind::Received(message, Some(span)));
            }
            Visit { span, lane, end: Some(end) }
        })
    }

    /// Notes that a span has passed through a visit, unless it is work itself.
    pub(super) fn carry<'a, S: LookupSpan<'a>>(&self, span: Option<SpanRef<'a, S>>, visit: Visit) {
        let Some(span) = span else { return };
        self.with_data(&span, |data| {
            if data.visit.is_none() && data.began.is_none() {
                data.carried = Visit::later(data.carried, Some(visit));
            }
        });
    }
}
