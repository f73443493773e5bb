//! Which models are in memory, and what is to be done next.

use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use lapwing_engine::Engine;

/// The state of each model.
#[derive(Debug)]
pub(super) struct Slots {
    all: Mutex<Vec<Slot>>,
    /// Bytes of each model.
    bytes: Vec<u64>,
    /// Bytes that loaded models may have together; 0 for no limit.
    memory: u64,
    /// Told when a model is loaded, unloaded or no longer used.
    changed: Notify,
}

/// State of a model.
#[derive(Debug, Default)]
enum Slot {
    /// Not in memory.
    #[default]
    Unloaded,
    /// A task loads or unloads it.
    Changing,
    /// In memory.
    Loaded(Loaded),
    /// The program's own, with so many users here.
    Shared(Engine, usize),
}

#[derive(Debug)]
struct Loaded {
    engine: Engine,
    users: usize,
    last_used: Instant,
    /// When it is unloaded if it is idle; `None` for never.
    expires: Option<Instant>,
}

/// A loaded model, for lists.
#[derive(Debug)]
pub(crate) struct LoadedModel {
    /// Number among all models.
    pub(crate) index: usize,
    /// Its engine.
    pub(crate) engine: Engine,
    /// Time until it is unloaded if it stays idle.
    pub(crate) expires: Option<Duration>,
    /// Requests that use it.
    pub(crate) users: usize,
    /// Whether it is the program's own.
    pub(crate) is_shared: bool,
}

/// What a request for a model has to do.
#[derive(Debug)]
pub(super) enum Step {
    /// Use it, until it is [released](Slots::release).
    Use(Engine),
    /// Wait until something changes.
    Wait,
    Load,
    /// Unload another model, which makes room.
    Unload(Idle),
}

/// A model that is to be unloaded.
#[derive(Debug)]
pub(super) struct Idle {
    pub(super) index: usize,
    pub(super) engine: Engine,
}

impl Slots {
    /// Slots of unloaded models with these sizes in bytes.
    pub(super) fn new(bytes: Vec<u64>, memory: u64) -> Slots {
        let all = bytes.iter().map(|_| Slot::default()).collect();
        Slots { all: Mutex::new(all), bytes, memory, changed: Notify::new() }
    }

    /// What the request for a model has to do next.
    pub(super) fn step(&self, index: usize) -> Step {
        let mut slots = self.lock();
        match &mut slots[index] {
            Slot::Loaded(loaded) => {
                loaded.users += 1;
                return Step::Use(loaded.engine.clone());
            }
            Slot::Shared(engine, users) => {
                *users += 1;
                return Step::Use(engine.clone());
            }
            Slot::Changing => return Step::Wait,
            Slot::Unloaded => {}
        }
        let is_loaded = |slot: &Slot| matches!(slot, Slot::Changing | Slot::Loaded(_));
        let sizes = slots.iter().zip(&self.bytes);
        let taken: u64 = sizes.filter(|(slot, _)| is_loaded(slot)).map(|(_, bytes)| bytes).sum();
        let is_first = !slots.iter().any(is_loaded);
        if is_first || self.memory == 0 || taken + self.bytes[index] <= self.memory {
            slots[index] = Slot::Changing;
            return Step::Load;
        }
        let idle = slots.iter().enumerate().filter_map(|(at, slot)| match slot {
            Slot::Loaded(loaded) if loaded.users == 0 => Some((loaded.last_used, at)),
            _ => None,
        });
        let oldest = idle.min().and_then(|(_, oldest)| take(&mut slots, oldest));
        oldest.map_or(Step::Wait, Step::Unload)
    }

    /// A model whose time without requests is over.
    pub(super) fn take_expired(&self) -> Option<Idle> {
        let now = Instant::now();
        let mut slots = self.lock();
        let is_over = |slot: &Slot| slot.expires().is_some_and(|at| at <= now);
        let expired = slots.iter().position(is_over)?;
        take(&mut slots, expired)
    }

    /// When the time of the next model is over.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        self.lock().iter().filter_map(Slot::expires).min()
    }

    /// A request uses a model no longer. If there is none other, the model stays loaded for that time.
    pub(super) fn release(&self, index: usize, keep_alive: Option<Duration>) {
        match &mut self.lock()[index] {
            Slot::Loaded(loaded) => {
                loaded.users -= 1;
                loaded.last_used = Instant::now();
                loaded.expires = keep_alive.and_then(|time| loaded.last_used.checked_add(time));
            }
            Slot::Shared(_, users) => *users -= 1,
            Slot::Changing | Slot::Unloaded => {}
        }
        self.changed.notify_waiters();
    }

    /// A model is loaded, and stays so for that time without requests.
    pub(super) fn loaded(&self, index: usize, engine: Engine, keep_alive: Option<Duration>) {
        let last_used = Instant::now();
        let expires = keep_alive.and_then(|time| last_used.checked_add(time));
        self.set(index, Slot::Loaded(Loaded { engine, users: 0, last_used, expires }));
    }

    /// A model is the program's own.
    pub(super) fn share(&self, index: usize, engine: Engine) {
        self.set(index, Slot::Shared(engine, 0));
    }

    /// A model is unloaded, or could not be loaded.
    pub(super) fn unloaded(&self, index: usize) {
        self.set(index, Slot::Unloaded);
    }

    /// Returns when a model is loaded, unloaded or no longer used.
    pub(super) fn changed(&self) -> impl Future<Output = ()> + '_ {
        self.changed.notified()
    }

    /// The loaded models.
    pub(super) fn list(&self) -> Vec<LoadedModel> {
        let now = Instant::now();
        let slots = self.lock();
        let loaded = slots.iter().enumerate().filter_map(|(index, slot)| match slot {
            Slot::Loaded(loaded) => Some(LoadedModel {
                index,
                engine: loaded.engine.clone(),
                expires: loaded.expires.map(|at| at.saturating_duration_since(now)),
                users: loaded.users,
                is_shared: false,
            }),
            Slot::Shared(engine, users) => Some(LoadedModel {
                index,
                engine: engine.clone(),
                expires: None,
                users: *users,
                is_shared: true,
            }),
            Slot::Changing | Slot::Unloaded => None,
        });
        loaded.collect()
    }

    fn set(&self, index: usize, slot: Slot) {
        self.lock()[index] = slot;
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a loaded model, which is to be unloaded.
fn take(slots: &mut [Slot], index: usize) -> Option<Idle> {
    match std::mem::replace(&mut slots[index], Slot::Changing) {
        Slot::Loaded(loaded) => Some(Idle { index, engine: loaded.engine }),
        other => {
            slots[index] = other;
            None
        }
    }
}

impl Slot {
    /// When the model is unloaded, if it is idle.
    fn expires(&self) -> Option<Instant> {
        match self {
            Slot::Loaded(loaded) if loaded.users == 0 => loaded.expires,
            _ => None,
        }
    }
}
