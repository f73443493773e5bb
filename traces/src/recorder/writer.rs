//! Handles of recording threads and actors.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::ring::Ring;
use super::{Recorder, lock};
use crate::clock::Nanos;
use crate::event::{Event, EventKind, LaneId, MessageId, SpanId};

/// Ids of spans and messages that a writer reserves at once.
const ID_BLOCK: u64 = 1 << 16;

impl Recorder {
    /// Creates a writer for one thread or actor. Allocates its ring, which is freed when the writer
    /// is dropped, or, if the store is locked at that moment, when the next writer is created or
    /// the rings are drained.
    pub fn writer(&self) -> Writer {
        let ring = Arc::new(Ring::new(self.inner.config.ring_events));
        let mut store = lock(&self.inner.store);
        store.collect_closed(&self.inner.config);
        store.add(Arc::clone(&ring));
        drop(store);
        Writer { recorder: self.clone(), ring, next_id: 0, ids_end: 0 }
    }
}

/// Handle with which one thread or actor records.
#[derive(Debug)]
pub struct Writer {
    recorder: Recorder,
    ring: Arc<Ring>,
    next_id: u64,
    /// First id that is not reserved for this writer.
    ids_end: u64,
}

impl Writer {
    /// The recorder of this writer.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Whether an event is recorded. `marked`: its request or span is marked.
    #[inline]
    pub fn wants(&self, marked: bool) -> bool {
        self.recorder.wants(marked)
    }

    /// Current time of the recorder's clock.
    #[inline]
    pub fn now(&self) -> Nanos {
        self.recorder.inner.clock.now()
    }

    /// A span id, unique in this recorder.
    #[inline]
    pub fn span(&mut self) -> SpanId {
        SpanId(self.id())
    }

    /// A message id, unique in this recorder.
    #[inline]
    pub fn message(&mut self) -> MessageId {
        MessageId(self.id())
    }

    #[inline]
    fn id(&mut self) -> NonZeroU64 {
        if self.next_id == self.ids_end {
            self.take_ids();
        }
        let id = NonZeroU64::MIN.saturating_add(self.next_id);
        self.next_id += 1;
        id
    }

    /// Reserves a block of ids, so that a new id does not touch a shared counter.
    #[cold]
    fn take_ids(&mut self) {
        self.next_id = self.recorder.inner.id_blocks.fetch_add(1, Ordering::Relaxed) * ID_BLOCK;
        self.ids_end = self.next_id + ID_BLOCK;
    }

    /// Records an event. Call it only if [`wants`](Writer::wants) returns true.
    #[inline]
    pub fn record(&mut self, at: Nanos, lane: LaneId, kind: EventKind) {
        let events = self.ring.push(&Event { at, lane, kind }.to_words());
        if self.ring.should_drain(events) {
            self.collect();
        }
    }

    /// Drains this writer's ring, unless the store is locked.
    #[cold]
    fn collect(&self) {
        if let Ok(mut store) = self.recorder.inner.store.try_lock() {
            store.collect_one(&self.ring, &self.recorder.inner.config);
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.ring.close();
        // An ending thread does not wait: if the store is locked, the next one to lock it drains
        // the ring.
        if let Ok(mut store) = self.recorder.inner.store.try_lock() {
            store.collect_closed(&self.recorder.inner.config);
        }
    }
}
