//! Progress of a sequence's rows through the graph.

use std::num::NonZeroU64;
use std::ops::Range;

use lapwing_kernels::sync::{AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, lock};
use lapwing_plan::DeviceId;
use lapwing_traces::event::SpanId;

/// How many rows of a sequence each node of the graph has computed, and how many have been
/// submitted. The sequence's chunks share it, so a worker can see whether the rows before a chunk
/// are in the KV cache, whichever routes the chunks take. A worker that receives a chunk too early
/// is registered as a waiter, and is nudged when the chunk may have become ready.
///
/// A roll-back resets the row counts and begins a new epoch. Reports of chunks of earlier epochs are
/// ignored. The scheduler sends rows of a new epoch only when no chunk of an earlier one is left, so
/// stale rows never overwrite the KV rows of the new epoch.
#[derive(Debug)]
pub struct RowProgress {
    /// Rows computed per node, with one more entry for sampling.
    computed: Vec<AtomicUsize>,
    /// Per node: the rows submitted to one device, and that device (see [`pack`]).
    submitted: Vec<AtomicU64>,
    /// Per node: the recorded span that computed it last, or 0.
    spans: Vec<AtomicU64>,
    epoch: AtomicU64,
    lost: AtomicBool,
    /// Workers to nudge. The lock also makes an advance and a roll-back mutually exclusive.
    waiters: Mutex<Vec<DeviceId>>,
}

/// Packs the end of the submitted rows and their device; 0 means that no row is submitted.
fn pack(end: usize, device: DeviceId) -> u64 {
    (end as u64) << 16 | (device.0 as u64 + 1)
}

impl RowProgress {
    /// Progress of a graph of `nodes` nodes, none of which has computed a row.
    pub fn new(nodes: usize) -> RowProgress {
        RowProgress::after(0, nodes)
    }

    /// Progress of a graph of `nodes` nodes, all of which have computed the first `rows` rows.
    pub fn after(rows: usize, nodes: usize) -> RowProgress {
        RowProgress {
            computed: (0..nodes + 1).map(|_| AtomicUsize::new(rows)).collect(),
            submitted: (0..nodes + 1).map(|_| AtomicU64::new(0)).collect(),
            spans: (0..nodes + 1).map(|_| AtomicU64::new(0)).collect(),
            epoch: AtomicU64::new(0),
            lost: AtomicBool::new(false),
            waiters: Mutex::new(Vec::new()),
        }
    }

    /// Whether `worker` may run the nodes on the rows from `start` on. It may if all earlier rows are
    /// computed or are submitted to the same device, whose queue keeps the order. It also may if the
    /// rows are stale or lost and only have to be dropped. Otherwise `worker` is registered as a
    /// waiter and nudged at the next change. An empty range of nodes is always ready.
    pub fn is_ready(&self, nodes: &Range<usize>, rows: RowStart, worker: DeviceId) -> bool {
        let Some(last) = nodes.clone().next_back() else { return true };
        // Rows pass the nodes in order, so the last node has the fewest.
        let ready = || {
            self.is_lost()
                || self.epoch() != rows.epoch
                || self.computed[last].load(Ordering::Acquire) == rows.start
                || self.submitted[last].load(Ordering::Acquire) == pack(rows.start, worker)
        };
        if ready() {
            return true;
        }
        let mut waiters = lock(&self.waiters);
        // A change since the first check either precedes this lock or will find the waiter.
        if ready() {
            return true;
        }
        if !waiters.contains(&worker) {
            waiters.push(worker);
        }
        false
    }

    /// Records that the rows up to `end` are submitted to a device for these nodes.
    pub fn submit(&self, nodes: &Range<usize>, rows: RowEnd, device: DeviceId) {
        let _guard = lock(&self.waiters);
        if self.epoch() == rows.epoch {
            let submitted = pack(rows.end, device);
            self.submitted[nodes.clone()]
                .iter()
                .for_each(|s| s.store(submitted, Ordering::Release));
        }
    }

    /// Records that the nodes have computed the rows up to `end`. Returns the workers to nudge.
    #[must_use]
    pub fn advance(&self, nodes: &Range<usize>, rows: RowEnd) -> Vec<DeviceId> {
        let mut waiters = lock(&self.waiters);
        if self.epoch() == rows.epoch {
            let computed = self.computed[nodes.clone()].iter();
            computed.for_each(|computed| computed.store(rows.end, Ordering::Release));
        }
        std::mem::take(&mut *waiters)
    }

    /// Notes, for a recording, that this span has computed the nodes. Call it before
    /// [`advance`](RowProgress::advance), which publishes it.
    pub fn computed_in(&self, nodes: &Range<usize>, span: SpanId) {
        let spans = self.spans[nodes.clone()].iter();
        spans.for_each(|noted| noted.store(span.0.get(), Ordering::Relaxed));
    }

    /// The recorded span that computed the last of the nodes for the rows before. Call it when
    /// [`is_ready`](RowProgress::is_ready) has said that they are ready.
    pub fn computed_by(&self, nodes: &Range<usize>) -> Option<SpanId> {
        let last = nodes.clone().next_back()?;
        NonZeroU64::new(self.spans[last].load(Ordering::Relaxed)).map(SpanId)
    }

    /// Resets all nodes to the rows before `row` and begins an epoch. Rows before `row` that are still
    /// in flight become stale like all others, so the roll-back may reach further. Returns
    /// the first row to compute again, and the workers to nudge, which drop what is stale.
    #[must_use]
    pub fn roll_back(&self, row: usize) -> (usize, Vec<DeviceId>) {
        let mut waiters = lock(&self.waiters);
        self.epoch.fetch_add(1, Ordering::AcqRel);
        // Rows pass the nodes in order, so sampling has the fewest.
        let row = row.min(self.complete());
        for (computed, submitted) in self.computed.iter().zip(&self.submitted) {
            computed.store(row, Ordering::Release);
            submitted.store(0, Ordering::Release);
        }
        (row, std::mem::take(&mut *waiters))
    }

    /// The present epoch.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Rows that a node has computed.
    pub fn computed(&self, node: usize) -> usize {
        self.computed[node].load(Ordering::Acquire)
    }

    /// Rows that are complete: all nodes and sampling have done with them.
    pub fn complete(&self) -> usize {
        self.computed.last().map_or(0, |last| last.load(Ordering::Acquire))
    }

    /// Marks the sequence as lost: its rows are no longer needed. Returns the workers to nudge.
    #[must_use]
    pub fn lose(&self) -> Vec<DeviceId> {
        self.lost.store(true, Ordering::Release);
        std::mem::take(&mut *lock(&self.waiters))
    }

    /// Whether the sequence is lost.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }
}

/// First row of a chunk, and the epoch in which it was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowStart {
    /// Position of the row.
    pub start: usize,
    /// Epoch of the chunk.
    pub epoch: u64,
}

/// End of a chunk's rows, and the epoch in which it was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowEnd {
    /// One past the last row.
    pub end: usize,
    /// Epoch of the chunk.
    pub epoch: u64,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn from(start: usize, epoch: u64) -> RowStart {
        RowStart { start, epoch }
    }

    fn to(end: usize, epoch: u64) -> RowEnd {
        RowEnd { end, epoch }
    }

    #[test]
    fn an_early_worker_is_nudged_once_by_each_change() {
        let (progress, worker) = (RowProgress::new(3), DeviceId(1));
        assert!(progress.is_ready(&(0..2), from(0, 0), worker));
        assert!(!progress.is_ready(&(0..2), from(7, 0), worker));
        assert!(!progress.is_ready(&(0..3), from(7, 0), worker));
        assert_eq!(progress.advance(&(0..2), to(7, 0)), [worker]);
        assert!(progress.is_ready(&(0..2), from(7, 0), worker));
        assert!(!progress.is_ready(&(0..3), from(7, 0), worker));
        assert_eq!(progress.lose(), [worker]);
        assert!(progress.is_ready(&(0..3), from(7, 0), worker) && progress.lose().is_empty());
    }

    #[test]
    fn submitted_rows_are_in_order_on_the_same_device_only() {
        let progress = RowProgress::new(2);
        let (here, elsewhere) = (DeviceId(0), DeviceId(1));
        progress.submit(&(0..2), to(4, 0), here);
        assert!(progress.is_ready(&(0..2), from(4, 0), here));
        assert!(!progress.is_ready(&(0..2), from(4, 0), elsewhere));
        assert_eq!(progress.roll_back(2), (0, vec![elsewhere]), "no row is complete");
        assert!(!progress.is_ready(&(0..2), from(4, 1), here), "submitted rows are stale");
    }

    proptest! {
        /// Any mix of advances and roll-backs: a node never counts a row that was rolled back and
        /// not computed again, and reports of earlier epochs change nothing.
        #[test]
        fn a_node_counts_exactly_the_rows_of_the_present_epoch(
            events in prop::collection::vec((any::<bool>(), 0_usize..20, 0_u64..4), 1..60)
        ) {
            let progress = RowProgress::new(2);
            let (mut rows, mut epoch) = (0, 0_u64);
            for (rolls_back, at, age) in events {
                if rolls_back {
                    let (row, _) = progress.roll_back(at);
                    (rows, epoch) = (rows.min(at), epoch + 1);
                    prop_assert_eq!(row, rows);
                } else {
                    let of = epoch.saturating_sub(age);
                    drop(progress.advance(&(0..3), to(at, of)));
                    if of == epoch {
                        rows = at;
                    }
                }
                prop_assert_eq!((progress.computed(0), progress.epoch()), (rows, epoch));
                prop_assert!(progress.is_ready(&(0..2), from(rows, epoch), DeviceId(0)));
                prop_assert!(!progress.is_ready(&(0..2), from(rows + 1, epoch), DeviceId(0)));
            }
        }
    }
}
