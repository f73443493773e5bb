//! Counterparts of recorded events.

use std::collections::{HashMap, HashSet};

use lapwing_traces::Recording;
use lapwing_traces::event::{EventKind, Milestone};

/// Events of a recording, grouped by the kinds that must have a counterpart.
#[derive(Default)]
pub(super) struct Books {
    pub(super) started: HashSet<u64>,
    pub(super) finished: HashSet<u64>,
    pub(super) ran: HashSet<u64>,
    pub(super) sent: HashMap<u64, String>,
    pub(super) received: HashSet<u64>,
    pub(super) ends: HashMap<u64, Vec<Milestone>>,
    pub(super) submitted: HashSet<u64>,
}

impl Books {
    pub(super) fn of(recording: &Recording) -> Books {
        let mut books = Books::default();
        for event in &recording.events {
            let fresh = match event.kind {
                EventKind::Started(span, _) => books.started.insert(span.0.get()),
                EventKind::Finished(span) => books.finished.insert(span.0.get()),
                EventKind::Ran(span, _, start) => {
                    start <= event.at && books.ran.insert(span.0.get())
                }
                EventKind::Sent(sending) => {
                    let name = recording.names[sending.name.0 as usize].clone();
                    books.sent.insert(sending.message.0.get(), name).is_none()
                }
                EventKind::Received(message, _) => books.received.insert(message.0.get()),
                EventKind::Request(request, Milestone::Submitted, _) => {
                    books.submitted.insert(request)
                }
                EventKind::Request(request, milestone, _)
                    if !matches!(
                        milestone,
                        Milestone::Admitted
                            | Milestone::Token
                            | Milestone::TokenGap
                            | Milestone::Recomputed
                    ) =>
                {
                    books.ends.entry(request).or_default().push(milestone);
                    true
                }
                _ => true,
            };
            assert!(fresh, "twice, or backwards: {event:?}");
        }
        books
    }

    /// Messages that were never received, by name.
    pub(super) fn lost(&self) -> Vec<&str> {
        let lost = self.sent.iter().filter(|(id, _)| !self.received.contains(id));
        lost.map(|(_, name)| name.as_str()).collect()
    }
}
