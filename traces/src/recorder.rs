//! Records events from many threads. Recording can be switched on and off at run time.
//!
//! Each thread (or actor) has a [`Writer`] with a bounded ring of its own, so recording takes no
//! lock and never waits. Events that do not fit are dropped and counted.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::clock::{Clock, Nanos};
use crate::event::{Event, EventKind, LaneId, LaneKind, MessageId, NameId, SpanId};
use crate::recording::{LaneInfo, Recording};

mod ring;
mod store;

use ring::Ring;
use store::{Blocks, Store};

/// Which events are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Nothing.
    #[default]
    Off,
    /// Only requests and spans that are marked.
    Marked,
    /// Everything.
    All,
}

/// Capacities of a recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecorderConfig {
    /// Events that each writer's ring holds until they are collected, 88 bytes each.
    pub ring_events: usize,
    /// Events stored in total, 88 bytes each.
    pub events_max: usize,
    /// Which events to keep beyond `events_max`: the latest collected instead of the first.
    pub keep_latest: bool,
    /// Distinct strings stored (names of ops, fields of spans); all others share one placeholder.
    pub names_max: usize,
    /// Lanes stored; all others share one placeholder.
    pub lanes_max: usize,
}

impl Default for RecorderConfig {
    fn default() -> RecorderConfig {
        RecorderConfig {
            ring_events: 1 << 12,
            events_max: 1 << 22,
            keep_latest: false,
            names_max: 1 << 16,
            lanes_max: 1 << 12,
        }
    }
}

/// Records events. Cheap to clone; all clones are the same recorder.
#[derive(Clone)]
pub struct Recorder {
    inner: Arc<Inner>,
}

struct Inner {
    clock: Arc<dyn Clock>,
    config: RecorderConfig,
    scope: AtomicU8,
    /// Blocks of ids handed out to writers so far.
    id_blocks: AtomicU64,
    names: Mutex<Names>,
    lanes: Mutex<Vec<LaneInfo>>,
    meta: Mutex<BTreeMap<String, String>>,
    store: Mutex<Store>,
}

#[derive(Default)]
struct Names {
    texts: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
}

/// Placeholder for names beyond the limit.
const TOO_MANY_NAMES: &str = "(too many names)";

/// Placeholder for lanes beyond the limit.
const TOO_MANY_LANES: &str = "(too many lanes)";

/// Ids of spans and messages that a writer reserves at once.
const ID_BLOCK: u64 = 1 << 16;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recorder {
    /// Creates a recorder that takes its times from `clock`. It is off.
    pub fn new(clock: Arc<dyn Clock>, config: RecorderConfig) -> Recorder {
        Recorder {
            inner: Arc::new(Inner {
                clock,
                config,
                scope: AtomicU8::new(Scope::Off as u8),
                id_blocks: AtomicU64::new(0),
                names: Mutex::default(),
                lanes: Mutex::default(),
                meta: Mutex::default(),
                store: Mutex::default(),
            }),
        }
    }

    /// Clock that times the events.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.clock
    }

    /// Sets which events are recorded from now on.
    pub fn set_scope(&self, scope: Scope) {
        self.inner.scope.store(scope as u8, Ordering::Relaxed);
    }

    /// Which events are recorded.
    #[inline]
    pub fn scope(&self) -> Scope {
        match self.inner.scope.load(Ordering::Relaxed) {
            0 => Scope::Off,
            1 => Scope::Marked,
            _ => Scope::All,
        }
    }

    /// Whether an event is recorded. `marked`: its request or span is marked.
    #[inline]
    pub fn wants(&self, marked: bool) -> bool {
        match self.scope() {
            Scope::Off => false,
            Scope::Marked => marked,
            Scope::All => true,
        }
    }

    /// Interns a string: equal strings get the same number. Takes a lock, so intern names in
    /// advance where time matters.
    pub fn name(&self, text: &str) -> NameId {
        let mut names = lock(&self.inner.names);
        if let Some(number) = names.numbers.get(text) {
            return NameId(*number);
        }
        let text =
            if names.texts.len() + 1 < self.inner.config.names_max { text } else { TOO_MANY_NAMES };
        if let Some(number) = names.numbers.get(text) {
            return NameId(*number);
        }
        let number = names.texts.len() as u32;
        let text: Arc<str> = text.into();
        names.texts.push(Arc::clone(&text));
        names.numbers.insert(text, number);
        NameId(number)
    }

    /// Registers a lane. The same name and kind always give the same lane. Takes a lock, as
    /// [`name`](Recorder::name) does.
    pub fn lane(&self, name: &str, kind: LaneKind) -> LaneId {
        let mut lanes = lock(&self.inner.lanes);
        let find = |lanes: &[LaneInfo], name: &str, kind| {
            lanes.iter().position(|lane| lane.kind == kind && lane.name == name)
        };
        if let Some(known) = find(&lanes, name, kind) {
            return LaneId(known as u32);
        }
        let room = lanes.len() + 1 < self.inner.config.lanes_max;
        let (name, kind) = if room { (name, kind) } else { (TOO_MANY_LANES, LaneKind::Thread) };
        let lane = find(&lanes, name, kind).unwrap_or_else(|| {
            lanes.push(LaneInfo { name: name.to_owned(), kind });
            lanes.len() - 1
        });
        LaneId(lane as u32)
    }

    /// Stores a fact about the run, such as the model's name.
    pub fn set_meta(&self, key: &str, value: &str) {
        lock(&self.inner.meta).insert(key.to_owned(), value.to_owned());
    }

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

    /// Drains the rings into the store.
    pub fn collect(&self) {
        lock(&self.inner.store).collect(&self.inner.config);
    }

    /// Number of events dropped so far.
    pub fn dropped(&self) -> u64 {
        lock(&self.inner.store).dropped()
    }

    /// Copies everything recorded so far; recording continues.
    pub fn recording(&self) -> Recording {
        let mut store = lock(&self.inner.store);
        store.collect(&self.inner.config);
        let (events, dropped) = (store.snapshot(), store.dropped());
        drop(store);
        self.make(&events, dropped)
    }

    /// Removes and returns everything recorded since the last call, in no particular order, for
    /// live views of a run. Later recordings do not contain these events. The number of dropped
    /// events counts the whole run.
    pub fn take(&self) -> Recording {
        let mut store = lock(&self.inner.store);
        store.collect(&self.inner.config);
        let (events, dropped) = (store.take(), store.dropped());
        drop(store);
        self.make(&events, dropped)
    }

    /// Reads names and lanes after the events, so that every number in an event has its entry.
    fn make(&self, events: &Blocks, dropped: u64) -> Recording {
        let mut all = Vec::with_capacity(events.len());
        all.extend(events.events());
        Recording {
            meta: lock(&self.inner.meta).clone(),
            lanes: lock(&self.inner.lanes).clone(),
            names: lock(&self.inner.names).texts.iter().map(|text| text.to_string()).collect(),
            events: all,
            dropped,
        }
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("Recorder");
        debug.field("scope", &self.scope()).field("dropped", &self.dropped());
        debug.finish_non_exhaustive()
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::clock::OsClock;

    fn ring_count(recorder: &Recorder) -> usize {
        lock(&recorder.inner.store).rings()
    }

    fn times(recording: &Recording) -> Vec<u64> {
        recording.events.iter().map(|event| event.at.0).collect()
    }

    #[test]
    fn the_rings_of_dropped_writers_are_freed() {
        let config = RecorderConfig { ring_events: 8, ..RecorderConfig::default() };
        let recorder = Recorder::new(Arc::new(OsClock::start()), config);
        let mut lasting = recorder.writer();
        lasting.record(Nanos(0), LaneId(0), EventKind::Woke(Nanos(0)));
        for n in 1..=1000 {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut writer = recorder.writer();
                    writer.record(Nanos(n), LaneId(0), EventKind::Woke(Nanos(0)));
                });
            });
            assert_eq!(ring_count(&recorder), 1, "only the ring of the writer that still exists");
        }
        lasting.record(Nanos(1001), LaneId(0), EventKind::Woke(Nanos(0)));
        let mut recording = recorder.recording();
        recording.events.sort_by_key(|event| event.at);
        assert_eq!((times(&recording), recording.dropped), ((0..=1001).collect(), 0));
    }

    #[test]
    fn the_ring_of_a_writer_dropped_while_the_store_is_locked_is_freed_later() {
        let config = RecorderConfig { ring_events: 2, ..RecorderConfig::default() };
        let recorder = Recorder::new(Arc::new(OsClock::start()), config);
        let writers: Vec<Writer> = (0..10).map(|_| recorder.writer()).collect();
        let busy = lock(&recorder.inner.store);
        for (n, mut writer) in (0..).zip(writers) {
            for time in [n, n, n] {
                writer.record(Nanos(time), LaneId(0), EventKind::Woke(Nanos(0)));
            }
        }
        assert_eq!(busy.rings(), 10, "dropping a writer does not wait");
        drop(busy);
        let writer = recorder.writer();
        assert_eq!(
            (ring_count(&recorder), recorder.dropped()),
            (1, 10),
            "the rings are freed, their drop counts kept"
        );
        drop(writer);
        let recording = recorder.recording();
        let expected: Vec<u64> = (0..10).flat_map(|n| [n, n]).collect();
        assert_eq!((times(&recording), recording.dropped), (expected, 10));
    }

    #[test]
    fn a_full_ring_drops_and_counts_events_while_the_store_is_locked() {
        let config = RecorderConfig { ring_events: 8, ..RecorderConfig::default() };
        let recorder = Recorder::new(Arc::new(OsClock::start()), config);
        let mut writer = recorder.writer();
        let busy = lock(&recorder.inner.store);
        for n in 0..20 {
            writer.record(Nanos(n), LaneId(0), EventKind::Woke(Nanos(0)));
        }
        drop(busy);
        let recording = recorder.recording();
        assert_eq!((times(&recording), recording.dropped), ((0..8).collect(), 12));
        drop(writer);
        assert_eq!((recorder.recording().dropped, recorder.dropped()), (12, 12));
        assert_eq!(ring_count(&recorder), 0, "the ring is freed, its drop count kept");
    }
}
