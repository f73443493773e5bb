//! The states of oracles: at each place the hash of the tokens up to some row, with no trace of earlier ones.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use lapwing_kernels::device::{Batch, SpanStates};
use lapwing_kernels::kv::{PageId, StateId};

use super::values::{PAGE_ROWS, START, mix};

/// The states of all oracles of an engine.
#[derive(Clone, Debug, Default)]
pub(super) struct States(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    latest: HashMap<StateId, u64>,
    /// What each row in a slot of a page has made of the state.
    made: HashMap<(PageId, usize), u64>,
}

impl States {
    /// Continues the states of sequences by their rows.
    pub(super) fn run(&self, batch: &Batch) {
        let mut kept = self.0.lock().expect("no panic");
        for span in &batch.spans {
            assert!(span.fork.is_none(), "a branch");
            let page = |at: usize| span.pages[at / PAGE_ROWS];
            let SpanStates { from, to, keep } = &span.states;
            assert_eq!(from.is_some(), span.start > 0, "it begins at row {}", span.start);
            // A lost sequence may read a state that was never computed.
            let mut state =
                from.map_or(START, |place| kept.latest.get(&place).copied().unwrap_or(0));
            for (at, row) in (span.start..).zip(span.rows.clone()) {
                state = mix(state, batch.ids[row]);
                kept.made.insert((page(at), at % PAGE_ROWS), state);
                let places = keep.iter().filter(|(rows, _)| *rows == at + 1);
                places.for_each(|(_, place)| _ = kept.latest.insert(*place, state));
            }
            kept.latest.insert(*to, state);
        }
    }

    /// What the row at a position has made of the state.
    pub(super) fn made(&self, pages: &[PageId], at: usize) -> Option<u64> {
        let kept = self.0.lock().expect("no panic");
        kept.made.get(&(pages[at / PAGE_ROWS], at % PAGE_ROWS)).copied()
    }
}
