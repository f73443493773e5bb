//! What subscribers of `tracing` learn of requests. In virtual time requests have no spans, so that nothing is told.

use std::fmt::Display;

use lapwing_traces::event::Milestone;
use tracing::Span;

use crate::sequence::SequenceId;

/// A milestone of a request, and why it was reached.
pub(super) struct Reached<'a> {
    pub(super) milestone: Milestone,
    pub(super) value: u64,
    pub(super) why: Option<&'a dyn Display>,
}

impl Reached<'_> {
    /// Tells it to the subscriber of the request's span.
    pub(super) fn tell(&self, trace: &Span, request: SequenceId) {
        if trace.is_disabled() {
            return;
        }
        let milestone = self.milestone.name();
        tracing::debug!(
            parent: trace,
            lane = "scheduler",
            request = request.0,
            milestone,
            value = self.value,
            why = self.why.map(tracing::field::display),
            "{milestone}"
        );
    }
}
