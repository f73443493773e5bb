//! What the layer does at each call of `tracing`.

use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::fields::Fields;
use super::local::{self, Local, OpenVisit};
use super::{Created, SpanData, TimelineLayer, is_marked, send};
use crate::event::EventKind;

impl<S> Layer<S> for TimelineLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if local::is_closed() {
            return;
        }
        let fields = Fields::of(attributes);
        // The data of a span without fields can be created when it is first needed.
        if self.is_off() && fields.is_empty() {
            return;
        }
        let Some(span) = context.span(id) else { return };
        let mut data = self.data(&span, fields);
        if self.recorder().wants(data.marked) {
            data.created = self.shared.if_local(|local| {
                let by = local.top()?;
                Some(Created { thread: local.thread, at: local.writer.now(), by })
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
        if !fields.is_empty() {
            self.with_data(&span, |data| self.apply_fields(data, fields));
        }
    }

    fn on_follows_from(&self, id: &Id, follows: &Id, context: Context<'_, S>) {
        if self.is_off() || local::is_closed() {
            return;
        }
        let (Some(span), Some(before)) = (context.span(id), context.span(follows)) else { return };
        let visit = before.extensions().get::<SpanData>().and_then(|data| data.visit);
        let Some(visit) = visit else { return };
        let by = OpenVisit { id: follows.into_u64(), span: visit.span, lane: visit.lane };
        let message = |local: &mut Local| {
            let at = visit.end.unwrap_or_else(|| local.writer.now());
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
            && let Some(visit) = data.visit.as_mut().filter(|visit| visit.span == left)
        {
            visit.end = Some(at);
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
