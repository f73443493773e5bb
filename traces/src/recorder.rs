//! The recorder: collects events from many threads, at run time switched on and off.
//!
//! Each thread (or actor) has a [`Writer`] with a bounded ring of its own, so that recording
//! takes no lock and never waits. What finds no room is dropped and counted.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::clock::{Clock, Nanos};
use crate::event::{Event, LaneId, LaneKind, MessageId, NameId, SpanId, WORDS, What};
use crate::recording::{LaneInfo, Recording};

mod ring;

use ring::Ring;

/// What is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Nothing.
    #[default]
    Off,
    /// Requests that ask for it.
    Marked,
    /// Everything.
    All,
}

/// Sizes of a recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecorderConfig {
    /// Events that each writer's ring holds until they are collected, 88 bytes each.
    pub ring_events: usize,
    /// Events kept in all.
    pub events_max: usize,
    /// Which events to keep when there are more: the latest instead of the first.
    pub keep_latest: bool,
    /// Different texts (names of ops, fields of spans) kept.
    pub names_max: usize,
}

impl Default for RecorderConfig {
    fn default() -> RecorderConfig {
        RecorderConfig {
            ring_events: 1 << 14,
            events_max: 1 << 22,
            keep_latest: false,
            names_max: 1 << 16,
        }
    }
}

/// Collects events. Cheap to clone; all clones are the same recorder.
#[derive(Clone)]
pub struct Recorder {
    inner: Arc<Inner>,
}

struct Inner {
    clock: Arc<dyn Clock>,
    config: RecorderConfig,
    scope: AtomicU8,
    writers: AtomicU64,
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

#[derive(Default)]
struct Store {
    rings: Vec<Arc<Ring>>,
    events: VecDeque<[u64; WORDS]>,
    /// Dropped here, and by rings that are gone.
    dropped: u64,
}

/// Text that stands for all that no longer fit into the table of names.
const TOO_MANY: &str = "(too many names)";

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recorder {
    /// A recorder that is off, with times of `clock`.
    pub fn new(clock: Arc<dyn Clock>, config: RecorderConfig) -> Recorder {
        Recorder {
            inner: Arc::new(Inner {
                clock,
                config,
                scope: AtomicU8::new(Scope::Off as u8),
                writers: AtomicU64::new(0),
                names: Mutex::default(),
                lanes: Mutex::default(),
                meta: Mutex::default(),
                store: Mutex::default(),
            }),
        }
    }

    /// The clock of the events' times.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.clock
    }

    /// Chooses what is recorded from now on.
    pub fn set_scope(&self, scope: Scope) {
        self.inner.scope.store(scope as u8, Ordering::Relaxed);
    }

    /// What is recorded.
    #[inline]
    pub fn scope(&self) -> Scope {
        match self.inner.scope.load(Ordering::Relaxed) {
            0 => Scope::Off,
            1 => Scope::Marked,
            _ => Scope::All,
        }
    }

    /// Whether something that asks for it (`marked`), or does not, is recorded.
    #[inline]
    pub fn wants(&self, marked: bool) -> bool {
        match self.scope() {
            Scope::Off => false,
            Scope::Marked => marked,
            Scope::All => true,
        }
    }

    /// The number of a text; the same text has the same number. Takes a lock: look names up
    /// beforehand where time matters.
    pub fn name(&self, text: &str) -> NameId {
        let mut names = lock(&self.inner.names);
        if let Some(number) = names.numbers.get(text) {
            return NameId(*number);
        }
        let text =
            if names.texts.len() + 1 < self.inner.config.names_max { text } else { TOO_MANY };
        if let Some(number) = names.numbers.get(text) {
            return NameId(*number);
        }
        let number = names.texts.len() as u32;
        let text: Arc<str> = text.into();
        names.texts.push(Arc::clone(&text));
        names.numbers.insert(text, number);
        NameId(number)
    }

    /// A lane of that name; the same name and kind is the same lane.
    pub fn lane(&self, name: &str, kind: LaneKind) -> LaneId {
        let mut lanes = lock(&self.inner.lanes);
        let known = lanes.iter().position(|lane| lane.name == name && lane.kind == kind);
        LaneId(known.unwrap_or_else(|| {
            lanes.push(LaneInfo { name: name.to_owned(), kind });
            lanes.len() - 1
        }) as u32)
    }

    /// Remembers a fact about the run, such as the model's name.
    pub fn set_meta(&self, key: &str, value: &str) {
        lock(&self.inner.meta).insert(key.to_owned(), value.to_owned());
    }

    /// A writer for one thread or actor.
    pub fn writer(&self) -> Writer {
        let number = self.inner.writers.fetch_add(1, Ordering::Relaxed) + 1;
        let ring = Arc::new(Ring::new(self.inner.config.ring_events));
        lock(&self.inner.store).rings.push(Arc::clone(&ring));
        Writer { recorder: self.clone(), ring, next_id: number << 40 }
    }

    /// Empties the rings into the recording.
    pub fn collect(&self) {
        let mut store = lock(&self.inner.store);
        store.collect(&self.inner.config);
    }

    /// Events that found no room so far.
    pub fn dropped(&self) -> u64 {
        let store = lock(&self.inner.store);
        store.dropped + store.rings.iter().map(|ring| ring.dropped()).sum::<u64>()
    }

    /// Everything recorded so far; recording goes on.
    pub fn recording(&self) -> Recording {
        self.collect();
        let events = lock(&self.inner.store).events.iter().filter_map(Event::from_words).collect();
        self.make(events)
    }

    /// Takes out what was recorded since the last call, in no particular order; for views that
    /// follow a run. Later recordings lack it.
    pub fn take(&self) -> Recording {
        self.collect();
        let taken = std::mem::take(&mut lock(&self.inner.store).events);
        self.make(taken.iter().filter_map(Event::from_words).collect())
    }

    fn make(&self, events: Vec<Event>) -> Recording {
        Recording {
            meta: lock(&self.inner.meta).clone(),
            lanes: lock(&self.inner.lanes).clone(),
            names: lock(&self.inner.names).texts.iter().map(|text| text.to_string()).collect(),
            events,
            dropped: self.dropped(),
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

impl Store {
    fn collect(&mut self, config: &RecorderConfig) {
        let Store { rings, events, dropped } = self;
        for ring in rings.iter() {
            ring.drain(|words| {
                if events.len() == config.events_max {
                    *dropped += 1;
                    if !config.keep_latest || events.pop_front().is_none() {
                        return;
                    }
                }
                events.push_back(words);
            });
        }
        // A ring without a writer stays empty from now on.
        rings.retain(|ring| {
            let alive = Arc::strong_count(ring) > 1;
            if !alive {
                *dropped += ring.dropped();
            }
            alive
        });
    }
}

/// One thread's or actor's end of a [`Recorder`].
#[derive(Debug)]
pub struct Writer {
    recorder: Recorder,
    ring: Arc<Ring>,
    next_id: u64,
}

impl Writer {
    /// The recorder.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Whether something that asks for it (`marked`), or does not, is recorded.
    #[inline]
    pub fn wants(&self, marked: bool) -> bool {
        self.recorder.wants(marked)
    }

    /// The time.
    #[inline]
    pub fn now(&self) -> Nanos {
        self.recorder.inner.clock.now()
    }

    /// A number that no other span of this recorder has.
    #[inline]
    pub fn span(&mut self) -> SpanId {
        SpanId(self.id())
    }

    /// A number that no other message of this recorder has.
    #[inline]
    pub fn message(&mut self) -> MessageId {
        MessageId(self.id())
    }

    #[inline]
    fn id(&mut self) -> NonZeroU64 {
        self.next_id += 1;
        NonZeroU64::MIN.saturating_add(self.next_id)
    }

    /// Records an event. Whether it is wanted, [`wants`](Writer::wants) tells.
    #[inline]
    pub fn record(&mut self, at: Nanos, lane: LaneId, what: What) {
        let held = self.ring.push(&Event { at, lane, what }.to_words());
        if held * 2 >= self.ring.capacity() && held.is_multiple_of(64) {
            self.collect();
        }
    }

    /// Empties the rings, unless somebody else is about it.
    #[cold]
    fn collect(&self) {
        if let Ok(mut store) = self.recorder.inner.store.try_lock() {
            store.collect(&self.recorder.inner.config);
        }
    }
}
