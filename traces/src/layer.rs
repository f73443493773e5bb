//! Spans and events of the [`tracing`](https://docs.rs/tracing) crate on the timeline.

use std::sync::Arc;

use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::{LookupSpan, SpanRef};

use crate::clock::Nanos;
#[cfg(doc)]
use crate::event::Tags;
use crate::event::{EventKind, LaneId, MessageId, NameId, Sending, SpanId, SpanInfo};
use crate::recorder::{Recorder, Scope};

mod fields;
mod local;

use fields::{Fields, LaneField};
use local::{Entered, Local, Shared};

/// Records what a program tells through `tracing`; one per subscriber.
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
/// **Lanes.** Every thread that enters a span is a lane with the thread's name, or `thread N`. Of
/// threads with the same name at the same time, the later ones get a number after it.
///
/// **Spans.** Each stay in a span, from enter to exit, is a span of the timeline: an `async` span
/// gives one for each poll. The one that encloses it on the thread is its parent. What is entered
/// while recording is off is not recorded; what was entered before it was switched off still gets
/// its end.
///
/// **Fields.** The numbers `chunk`, `request`, `stage`, `layer`, `rows`, `epoch`, `bytes` and
/// `flops` become [`Tags`]. The text `device`, or else `lane`, puts the span on the lane of that
/// name (a [`Device`](crate::event::LaneKind::Device) or an
/// [`Actor`](crate::event::LaneKind::Actor)) instead of the thread's. The text `activity` is the
/// name of an [`Activity`](crate::event::Activity), `other` without. `marked = true` marks the
/// span and all that are made inside it for [`Scope::Marked`].
///
/// **Messages.** A span that is made inside a span, and first entered on another thread, has a
/// message `spawn` from there: sent when it was made, received when it was entered.
/// `follows_from` gives a message `follows` from the latest stay in the other span, received at
/// the next enter.
///
/// **Events.** Every field `counter.NAME` of an event is a new value of the counter NAME
/// (fractions are rounded); a counter stands on the lane where it was first seen, or on the one
/// that the event names. An event without such a field is a span of no length, with its message
/// as name: a mark. To have only some events and spans, give the layer a filter.
#[derive(Debug)]
pub struct TimelineLayer {
    shared: Arc<Shared>,
}

/// What the timeline needs to know of a span of the program; kept with it.
struct SpanData {
    name: &'static str,
    /// Its number, once it was looked up.
    name_id: Option<NameId>,
    fields: Fields,
    lane: Option<LaneId>,
    marked: bool,
    /// Where it was made, until it is first entered.
    made: Option<Made>,
    /// The latest stay in it.
    stay: Option<Stay>,
    /// Messages to the next stay.
    inbox: Vec<MessageId>,
}

#[derive(Clone, Copy)]
struct Made {
    thread: u64,
    at: Nanos,
    by: Entered,
}

#[derive(Clone, Copy)]
struct Stay {
    span: SpanId,
    lane: LaneId,
    end: Option<Nanos>,
}

impl TimelineLayer {
    /// A layer that records with `recorder`; whether it does, and what, is the recorder's
    /// [`Scope`].
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
            made: None,
            stay: None,
            inbox: Vec::new(),
        };
        self.learn(&mut data, fields);
        data
    }

    /// Takes over what newly known fields say.
    fn learn(&self, data: &mut SpanData, mut fields: Fields) {
        data.lane = fields.lane.take().map(|lane| self.lane(&lane)).or(data.lane);
        data.marked |= fields.marked;
        data.fields = fields;
    }

    /// What is known of a span; if nothing is, what its name says.
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

    /// Records a stay's begin, and what came to it.
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
        if let Some(made) = data.made.take().filter(|made| made.thread != local.thread) {
            let message = send(local, made.at, made.by, self.shared.spawn);
            local.writer.record(at, lane, EventKind::Received(message, Some(span)));
        }
        for message in data.inbox.drain(..) {
            local.writer.record(at, lane, EventKind::Received(message, Some(span)));
        }
        data.stay = Some(Stay { span, lane, end: None });
        local.push(Entered { id: id.into_u64(), span, lane });
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

/// Records that a message left a stay in a span.
fn send(local: &mut Local, at: Nanos, by: Entered, name: NameId) -> MessageId {
    let message = local.writer.message();
    let sending = Sending { message, span: Some(by.span), name, bytes: 0, stall: None };
    local.writer.record(at, by.lane, EventKind::Sent(sending));
    message
}

/// Whether a span, or else the nearest around it that is known, is marked.
fn is_marked<'a, S: LookupSpan<'a>>(span: Option<SpanRef<'a, S>>) -> bool {
    let known = |span: SpanRef<'a, S>| span.extensions().get::<SpanData>().map(|data| data.marked);
    span.and_then(|span| span.scope().find_map(known)).unwrap_or(false)
}

impl<S> Layer<S> for TimelineLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if local::is_closed() {
            return;
        }
        let fields = Fields::of(attributes);
        // Of a span without fields, nothing is lost when it is looked at later.
        if self.is_off() && fields.are_none() {
            return;
        }
        let Some(span) = context.span(id) else { return };
        let mut data = self.data(&span, fields);
        if self.recorder().wants(data.marked) {
            data.made = self.shared.if_local(|local| {
                let by = local.top()?;
                Some(Made { thread: local.thread, at: local.writer.now(), by })
            });
        }
        span.extensions_mut().replace(data);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if local::is_closed() {
            return;
        }
        let Some(span) = context.span(id) else { return };
        let known = span.extensions().get::<SpanData>().map(|data| data.fields.clone());
        let fields = known.unwrap_or_default().with(values);
        if !fields.are_none() {
            self.with_data(&span, |data| self.learn(data, fields));
        }
    }

    fn on_follows_from(&self, id: &Id, follows: &Id, context: Context<'_, S>) {
        if self.is_off() || local::is_closed() {
            return;
        }
        let (Some(span), Some(before)) = (context.span(id), context.span(follows)) else { return };
        let stay = before.extensions().get::<SpanData>().and_then(|data| data.stay);
        let Some(stay) = stay else { return };
        let by = Entered { id: follows.into_u64(), span: stay.span, lane: stay.lane };
        let message = |local: &mut Local| {
            let at = stay.end.unwrap_or_else(|| local.writer.now());
            send(local, at, by, self.shared.follows)
        };
        self.with_data(&span, |data| {
            if self.recorder().wants(data.marked) {
                data.inbox.extend(self.shared.with_local(message));
            }
        });
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if self.is_off() || local::is_closed() {
            return;
        }
        let Some(span) = context.span(id) else { return };
        self.with_data(&span, |data| {
            if self.recorder().wants(data.marked) {
                self.shared.with_local(|local| self.enter(data, id, local));
            }
        });
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        if self.shared.is_unused() {
            return;
        }
        let left = self.shared.if_local(|local| {
            let entered = local.pop(id.into_u64())?;
            let at = local.writer.now();
            local.writer.record(at, entered.lane, EventKind::Finished(entered.span));
            Some((entered.span, at))
        });
        let (Some((left, at)), Some(span)) = (left, context.span(id)) else { return };
        if let Some(data) = span.extensions_mut().get_mut::<SpanData>()
            && let Some(stay) = data.stay.as_mut().filter(|stay| stay.span == left)
        {
            stay.end = Some(at);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if self.is_off() || local::is_closed() {
            return;
        }
        let fields = Fields::of_event(event);
        let marked = fields.marked || is_marked(context.event_span(event));
        if self.recorder().wants(marked) {
            self.shared.with_local(|local| match fields.counters.is_empty() {
                true => self.mark(event, &fields, local),
                false => self.count(&fields, local),
            });
        }
    }
}
