//! The spans of chunks, for subscribers of `tracing`.

use tracing::{Level, Span};

use super::running::Sequence;
use super::selection::Selection;
use super::state::Scheduler;
use lapwing_plan::Route;

impl Scheduler {
    /// The span of a chunk of `rows` rows. It follows from the spans of its requests, and is a child of the only one, so
    /// that this one's trace shows its chunks. Where no subscriber asks for it, there is none, and nothing else is looked
    /// at.
    pub(super) fn chunk_span(&self, id: u64, rows: usize, of: &Selection, route: &Route) -> Span {
        if !tracing::span_enabled!(Level::DEBUG) {
            return Span::none();
        }
        let sequences = || of.rows.iter().map(|(at, _)| &self.running[*at]);
        let requests = || sequences().map(|it| &it.trace).filter(|trace| !trace.is_disabled());
        let Some(first) = requests().next() else { return Span::none() };
        let is_marked = |sequence: &Sequence| sequence.context.requested;
        let parent = first.id().filter(|_| of.rows.len() == 1);
        let span = tracing::debug_span!(
            parent: parent,
            "chunk",
            chunk = id,
            phase = of.shape.phase.name(),
            rows,
            sequences = of.rows.len(),
            predicted_us = route.predicted.map(|time| time.as_secs_f64() * 1e6),
            marked = sequences().any(is_marked),
        );
        requests().for_each(|request| {
            span.follows_from(request);
        });
        span
    }
}
