//! Divides recordings of one recorder between the runs that it recorded.

use std::collections::HashMap;

use super::Recording;
use crate::clock::Nanos;
use crate::event::{Event, EventKind, SpanId};

impl Recording {
    /// Removes and returns what began before `at`. A thread may record the end of its work late, when
    /// the next run has begun: with this function, such events do not count for the next run.
    ///
    /// A span belongs to the side on which it started, with all of its events, the messages that it
    /// sent, and the receipt of those that it handled. Every other event belongs to the side of its
    /// time.
    pub fn split_before(&mut self, at: Nanos) -> Recording {
        let mut spans: HashMap<SpanId, bool> = HashMap::new();
        for event in &self.events {
            let start = match event.kind {
                EventKind::Started(..) => event.at,
                EventKind::Ran(_, _, start) => start,
                _ => continue,
            };
            if let Some(span) = span_of(&event.kind) {
                spans.insert(span, start < at);
            }
        }
        let is_before = |event: &mut Event| match span_of(&event.kind) {
            // The start of a span that ends here was recorded before, with the earlier run.
            Some(span) if matches!(event.kind, EventKind::Finished(_)) => {
                spans.get(&span).copied().unwrap_or(true)
            }
            Some(span) => spans.get(&span).copied().unwrap_or(event.at < at),
            None => event.at < at,
        };
        let events = self.events.extract_if(.., is_before).collect();
        Recording {
            meta: self.meta.clone(),
            lanes: self.lanes.clone(),
            names: self.names.clone(),
            events,
            dropped: self.dropped,
        }
    }

    /// Adds events that the same recorder returned later.
    pub fn append(&mut self, later: Recording) {
        let Recording { meta, lanes, names, events, dropped } = later;
        self.meta.extend(meta);
        // Lanes and names keep their numbers; a later recording may have more of them.
        (self.lanes, self.names, self.dropped) = (lanes, names, dropped);
        self.events.extend(events);
    }
}

/// The span that an event belongs to.
fn span_of(kind: &EventKind) -> Option<SpanId> {
    match kind {
        EventKind::Queued(span)
        | EventKind::Submitted(span)
        | EventKind::Started(span, _)
        | EventKind::Finished(span)
        | EventKind::After(span, ..)
        | EventKind::Ran(span, ..) => Some(*span),
        EventKind::Sent(sending) => sending.span,
        EventKind::Received(_, span) => *span,
        EventKind::Woke(_)
        | EventKind::Waited(_)
        | EventKind::Freed(..)
        | EventKind::Counter(..)
        | EventKind::Request(..)
        | EventKind::Rows(..)
        | EventKind::Limited(_)
        | EventKind::Routed(_)
        | EventKind::Rated(_)
        | EventKind::Need(_)
        | EventKind::Experts(_) => None,
    }
}
