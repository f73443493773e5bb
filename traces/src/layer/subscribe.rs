//! What the layer does at each call of `tracing`.

use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::fields::Fields;
use super::local;
use super::{Created, SpanData, TimelineLayer, Visit, is_marked};
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
            if data.lane.is_some() {
                self.begin(&span, &mut data);
            }
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
        let of = |data: &SpanData| (data.visit, data.carried);
        let known = before.extensions().get::<SpanData>().map(of);
        let (visit, carried) = known.unwrap_or_default();
        self.with_data(&span, |data| match visit {
            Some(visit) if self.recorder().wants(data.marked) => {
                data.inbox.extend(self.follow(follows, visit));
            }
            Some(_) => {}
            None => {
                data.follows.push(follows.clone());
                data.carried = Visit::later(data.carried, carried);
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
        let ended = |data: &mut SpanData| {
            let visit = data.visit.as_mut().filter(|visit| visit.span == left)?;
            visit.end = Some(at);
            data.began.and(Some(*visit))
        };
        let work = span.extensions_mut().get_mut::<SpanData>().and_then(ended);
        if let Some(visit) = work {
            self.carry(span.parent(), visit);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        if self.shared.is_unused() || local::is_closed() {
            return;
        }
        let Some(span) = context.span(&id) else { return };
        let closed = |data: &mut SpanData| {
            let follows = std::mem::take(&mut data.follows);
            (self.close(data), data.carried, follows)
        };
        let closed = span.extensions_mut().get_mut::<SpanData>().map(closed);
        let Some((work, carried, follows)) = closed else { return };
        if let Some(visit) = work {
            self.carry(span.parent(), visit);
        }
        if let Some(visit) = carried {
            follows.iter().for_each(|before| self.carry(context.span(before), visit));
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
                true if self.reach(&fields, local) => {}
                true => self.mark(event, &fields, local),
                false => self.count(&fields, local),
            });
        }
    }
}
