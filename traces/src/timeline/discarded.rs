//! Finds the spans whose results were discarded.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use super::Timeline;
use crate::event::DraftRole;

/// The epochs of a draft model's sequence are not those of its request.
type Subject = (u64, bool);

/// Marks the outer spans that were discarded, and the spans in them. If the outcome of a chunk's rows is recorded, it
/// decides; otherwise the epochs do.
pub(super) fn mark(timeline: &mut Timeline) {
    let mut begun: HashMap<Subject, BTreeMap<u32, u64>> = HashMap::new();
    let subject =
        |span: &super::Span| Some((span.tags.request?, span.tags.role == Some(DraftRole::Draft)));
    for span in &timeline.spans {
        if let Some(subject) = subject(span) {
            // Spans are sorted by start.
            begun.entry(subject).or_default().entry(span.tags.epoch).or_insert(span.start.0);
        }
    }
    for at in 0..timeline.spans.len() {
        let span = &timeline.spans[at];
        let outcome = span.tags.chunk.and_then(|chunk| timeline.outcomes.get(&chunk));
        let discarded = match (span.parent, outcome) {
            // A parent precedes the spans in it.
            (Some(parent), _) => timeline.spans[parent].discarded,
            (None, Some(outcome)) => span.tags.rows > 0 && outcome.wasted >= span.tags.rows,
            (None, None) => {
                let epochs = subject(span).and_then(|subject| begun.get(&subject));
                let later = epochs.and_then(|epochs| {
                    let later = (Bound::Excluded(span.tags.epoch), Bound::Unbounded);
                    epochs.range(later).map(|(_, at)| *at).min()
                });
                later.is_some_and(|at| at < span.end.0)
            }
        };
        timeline.spans[at].discarded = discarded;
    }
}
