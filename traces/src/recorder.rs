//! Records events from many threads. Recording can be switched on and off at run time.
//!
//! Each thread (or actor) has a [`Writer`] with a bounded ring of its own, so recording takes no
//! lock and never waits. Events that do not fit are dropped and counted.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::clock::{Clock, Nanos};
use crate::event::{LaneId, LaneKind, NameId};
use crate::recording::{LaneInfo, Recording};

mod losses;
mod ring;
mod store;
mod writer;

use store::{Blocks, Store};
pub use writer::Writer;

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

    /// Copies everything recorded so far. Of the dropped events, only those count that were of this time or later:
    /// 0 says that nothing since then is missing. The number may be too large: events that were dropped one after
    /// another count together.
    pub fn recording_since(&self, time: Nanos) -> Recording {
        let mut store = lock(&self.inner.store);
        store.collect(&self.inner.config);
        let (events, dropped) = (store.snapshot(), store.dropped_since(time.0));
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

#[cfg(all(test, not(loom)))]
mod tests;
