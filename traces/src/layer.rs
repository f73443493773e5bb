//! Records the spans and events of the [`tracing`](https://docs.rs/tracing) crate.

use std::sync::Arc;

use tracing_core::Event;
use tracing_core::span::Id;
use tracing_subscriber::registry::{LookupSpan, SpanRef};

use crate::clock::Nanos;
#[cfg(doc)]
use crate::event::Tags;
use crate::event::{EventKind, LaneId, MessageId, NameId, Sending, SpanId, SpanInfo};
use crate::recorder::{Recorder, Scope};

mod carried;
mod fields;
mod local;
mod subscribe;

use fields::{Fields, LaneField};
use local::{Local, OpenVisit, Shared};

/// A `tracing` layer that records spans and events. Use one per subscriber.
///
/// ```
/// use std::sync::Arc;
/// use lapwing_traces::layer::TimelineLayer;
/// use lapwing_traces::{OsClock, Recorder, RecorderConfig, Scope, Timeline};
/// use tracing_subscriber::layer::SubscriberExt;
///
/// let recorder = Recorder::new(Arc::new(OsClock::start()), RecorderConfig::default());
/// recorder.set_scope(Scope::All);
/// let subscriber = tracing_subscriber::registry().with(TimelineLayer::new(recorder.clone()));
/// tracing::subscriber::with_default(subscriber, || {
///     tracing::info_span!("load", bytes = 4096).in_scope(|| tracing::info!("from the cache"));
/// });
/// assert_eq!(Timeline::new(&recorder.recording()).spans[0].name, "load");
/// ```
///
/// **Lanes.** Every thread that enters a span gets a lane with the thread's name, or `thread N`. If
/// several threads have the same name at the same time, a number is appended to the later ones.
///
/// **Spans.** Each visit of a span, from enter to exit, is a span of the timeline, so an `async`
/// span has one for each poll. Its parent is the enclosing visit on the same thread. A visit that
/// starts while recording is off is not recorded; one that started before recording was switched off
/// still gets its end. A span that names its lane when it is created, and is never entered, is one
/// span of the timeline, from its creation to its close.
///
/// **Fields.** The numbers `chunk`, `request`, `stage`, `layer`, `rows`, `epoch`, `bytes` and
/// `flops`, and the text `role`, become [`Tags`]. The text `device`, or else `lane`, puts the span on the lane of that
/// name (a [`Device`](crate::event::LaneKind::Device) or an
/// [`Actor`](crate::event::LaneKind::Actor)) instead of the thread's. The text `activity` is the
/// name of an [`Activity`](crate::event::Activity); the default is `other`. The text `timeline.name`
/// takes the place of the span's name. `marked = true` marks
/// the span and all spans created inside it for [`Scope::Marked`].
///
/// **Messages.** A span that is created inside another span and first entered on another thread
/// receives a message `spawn` from it: sent at creation, received at the first enter.
/// `follows_from` adds a message `follows` from the latest visit of the other span, received at the
/// next enter.
///
/// **What passes from lane to lane.** A span that is never entered and has no lane, such as a piece of
/// work that several devices process in turn, is where its children with lanes have been: each of them
/// receives a message `follows` from the one that ended last before it was created. If such a span follows from another of
/// that kind, the first child receives it from where that one has been, and the other one has then been where this one
/// was.
///
/// **Events.** Every field `counter.NAME` of an event is a new value of the counter NAME
/// (fractions are rounded). A counter is on the lane that the event names, or else on the lane where
/// it was first seen. An event with the number `request` and the text `milestone`, the name of a
/// [`Milestone`](crate::event::Milestone), is that milestone of the request, with the number `value`. Any other event
/// becomes a mark: a span of length zero, named by
/// the event's message. To select events and spans, give the layer a filter.
#[derive(Debug)]
pub struct TimelineLayer {
    shared: Arc<Shared>,
}

/// Data of a program's span that the layer keeps with it.
struct SpanData {
    name: &'static str,
    /// Its interned name, once looked up.
    name_id: Option<NameId>,
    fields: Fields,
    lane: Option<LaneId>,
    marked: bool,
    /// Where it was created; removed when it is first entered.
    created: Option<Created>,
    /// The latest visit.
    visit: Option<Visit>,
    /// Messages that the next visit receives.
    inbox: Vec<MessageId>,
    /// When it was created, if it had a lane then.
    began: Option<Nanos>,
    /// Without a lane: the latest visit of its children that have one.
    carried: Option<Visit>,
    /// The spans without a lane that it follows.
    follows: Vec<Id>,
}

#[derive(Clone, Copy)]
struct Created {
    thread: u64,
    at: Nanos,
    by: OpenVisit,
}

#[derive(Clone, Copy)]
struct Visit {
    span: SpanId,
    lane: LaneId,
    end: Option<Nanos>,
}

impl TimelineLayer {
    /// Creates a layer that records with `recorder`. The recorder's [`Scope`] decides what is
    /// recorded.
    pub fn new(recorder: Recorder) -> TimelineLayer {
        TimelineLayer { shared: Shared::new(recorder) }
    }

    fn recorder(&self) -> &Recorder {
        &self.shared.recorder
    }

    fn is_off(&self) -> bool {
        self.recorder().scope() == Scope::Off
    }

    fn data<'a, S: LookupSpan<'a>>(&self, span: &SpanRef<'a, S>, fields: Fields) -> SpanData {
        let mut data = SpanData {
            name: span.metadata().name(),
            name_id: None,
            fields: Fields::default(),
            lane: None,
            marked: is_marked(span.parent()),
            created: None,
            visit: None,
            inbox: Vec::new(),
            began: None,
            carried: None,
            follows: Vec::new(),
        };
        self.apply_fields(&mut data, fields);
        data
    }

    /// Applies fields that became known.
    fn apply_fields(&self, data: &mut SpanData, mut fields: Fields) {
        data.lane = fields.lane.take().map(|lane| self.lane(&lane)).or(data.lane);
        let name = fields.name.take().map(|name| self.shared.text(&name, data.name));
        data.name_id = name.or(data.name_id);
        data.marked |= fields.marked;
        data.fields = fields;
    }

    /// Calls `f` with the data of a span, which is created from the span's name if there is none.
    fn with_data<'a, S, T>(
        &self,
        span: &SpanRef<'a, S>,
        f: impl FnOnce(&mut SpanData) -> T,
    ) -> Option<T>
    where
        S: LookupSpan<'a>,
    {
        let mut extensions = span.extensions_mut();
        if extensions.get_mut::<SpanData>().is_none() {
            drop(extensions);
            let data = self.data(span, Fields::default());
            extensions = span.extensions_mut();
            if extensions.get_mut::<SpanData>().is_none() {
                extensions.insert(data);
            }
        }
        extensions.get_mut::<SpanData>().map(f)
    }

    fn lane(&self, lane: &LaneField) -> LaneId {
        self.recorder().lane(&lane.name, lane.kind)
    }

    /// Records the start of a visit, and the messages that it receives.
    fn enter(&self, data: &mut SpanData, id: &Id, local: &mut Local) {
        let at = local.writer.now();
        let lane = data.lane.unwrap_or_else(|| local.lane(&self.shared));
        let span = local.writer.span();
        let info = SpanInfo {
            name: *data.name_id.get_or_insert_with(|| self.recorder().name(data.name)),
            activity: data.fields.activity,
            parent: local.top().map(|top| top.span),
            tags: data.fields.tags,
        };
        local.writer.record(at, lane, EventKind::Started(span, info));
        if let Some(created) = data.created.take().filter(|created| created.thread != local.thread)
        {
            let message = send(local, created.at, created.by, self.shared.spawn);
            local.writer.record(at, lane, EventKind::Received(message, Some(span)));
        }
        for message in data.inbox.drain(..) {
            local.writer.record(at, lane, EventKind::Received(message, Some(span)));
        }
        data.visit = Some(Visit { span, lane, end: None });
        local.push(OpenVisit { id: id.into_u64(), span, lane });
    }

    fn count(&self, fields: &Fields, local: &mut Local) {
        let named = fields.lane.as_ref().map(|lane| self.lane(lane));
        let at = local.writer.now();
        for (counter, value) in &fields.counters {
            let here = || named.unwrap_or_else(|| local.lane_here(&self.shared));
            let (name, lane) = self.shared.counter(counter, here);
            local.writer.record(at, named.unwrap_or(lane), EventKind::Counter(name, *value));
        }
    }

    /// Records the milestone of a request; `false` if the event is none.
    fn reach(&self, fields: &Fields, local: &mut Local) -> bool {
        let (Some(milestone), Some(request)) = (fields.milestone, fields.tags.request) else {
            return false;
        };
        let named = fields.lane.as_ref().map(|lane| self.lane(lane));
        let lane = named.unwrap_or_else(|| local.lane_here(&self.shared));
        let at = local.writer.now();
        local.writer.record(at, lane, EventKind::Request(request, milestone, fields.value));
        true
    }

    fn mark(&self, event: &Event<'_>, fields: &Fields, local: &mut Local) {
        let lane = fields.lane.as_ref().map(|lane| self.lane(lane));
        let lane = lane.unwrap_or_else(|| local.lane_here(&self.shared));
        let info = SpanInfo {
            name: self.shared.text(&fields.message, event.metadata().name()),
            activity: fields.activity,
            parent: local.top().map(|top| top.span),
            tags: fields.tags,
        };
        let (at, span) = (local.writer.now(), local.writer.span());
        local.writer.record(at, lane, EventKind::Ran(span, info, at));
    }
}

/// Records a message sent during a visit.
fn send(local: &mut Local, at: Nanos, by: OpenVisit, name: NameId) -> MessageId {
    let message = local.writer.message();
    let sending = Sending { message, span: Some(by.span), name, bytes: 0, stall: None };
    local.writer.record(at, by.lane, EventKind::Sent(sending));
    message
}

/// Whether a span, or else its nearest ancestor with data, is marked.
fn is_marked<'a, S: LookupSpan<'a>>(span: Option<SpanRef<'a, S>>) -> bool {
    let known = |span: SpanRef<'a, S>| span.extensions().get::<SpanData>().map(|data| data.marked);
    span.and_then(|span| span.scope().find_map(known)).unwrap_or(false)
}
