//! The states of oracles: of each page the hash of the tokens up to the latest of its rows, with no trace of earlier ones.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use lapwing_kernels::device::Batch;
use lapwing_kernels::kv::PageId;

use super::values::{PAGE_ROWS, START, mix};

/// The states of all oracles of an engine.
#[derive(Clone, Debug, Default)]
pub(super) struct States(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    latest: HashMap<PageId, u64>,
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
            // A lost sequence may read a state that was never computed.
            let before = span.start.checked_sub(1).map(page);
            let mut state =
                before.map_or(START, |page| kept.latest.get(&page).copied().unwrap_or(0));
            for (at, row) in (span.start..).zip(span.rows.clone()) {
                state = mix(state, batch.ids[row]);
                kept.latest.insert(page(at), state);
                kept.made.insert((page(at), at % PAGE_ROWS), state);
            }
        }
    }

    /// What the row at a position has made of the state.
    pub(super) fn made(&self, pages: &[PageId], at: usize) -> Option<u64> {
        let kept = self.0.lock().expect("no panic");
        kept.made.get(&(pages[at / PAGE_ROWS], at % PAGE_ROWS)).copied()
    }
}
