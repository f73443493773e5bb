//! The models of a server: loaded when a request asks for one, unloaded when they are idle.

mod lease;

use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use axum::http::StatusCode;
use lapwing_actors::message::Shutdown;
use lapwing_traces::Recorder;
use tokio::sync::Notify;

use super::error::ApiError;
use super::facts::ModelFacts;
use lapwing_engine::{Engine, EngineBuilder};

pub(crate) use lease::ModelLease;

/// A model that a server offers.
#[derive(Clone, Debug)]
pub(crate) struct ModelSpec {
    /// Name that requests use.
    pub(crate) name: String,
    /// Settings of its engine.
    pub(crate) builder: EngineBuilder,
    /// Its file.
    pub(crate) path: PathBuf,
    /// Size of the file.
    pub(crate) bytes: u64,
    /// When the file was written.
    pub(crate) modified: SystemTime,
    /// What the file says about it.
    pub(crate) facts: ModelFacts,
    /// Records what its devices do, if timelines are kept.
    pub(crate) recorder: Option<Recorder>,
    /// Sampling temperature if a request names none.
    pub(crate) temperature: Option<f32>,
}

/// The models.
#[derive(Debug)]
pub(crate) struct Models {
    specs: Vec<ModelSpec>,
    slots: Mutex<Vec<Slot>>,
    /// Told when a model is loaded, unloaded or no longer used.
    changed: Notify,
    memory: u64,
    keep_alive: Option<Duration>,
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
}

impl Models {
    /// The models `specs`, of which none is loaded.
    pub(crate) fn new(
        specs: Vec<ModelSpec>,
        memory: u64,
        keep_alive: Option<Duration>,
    ) -> Arc<Models> {
        let slots = specs.iter().map(|_| Slot::default()).collect();
        let changed = Notify::new();
        Arc::new(Models { specs, slots: Mutex::new(slots), changed, memory, keep_alive })
    }

    /// The models that are offered.
    pub(crate) fn specs(&self) -> &[ModelSpec] {
        &self.specs
    }

    /// The number of the model `name`; the first one without a name. Ollama's tag `:latest` may follow.
    ///
    /// # Errors
    /// When there is no such model.
    pub(crate) fn find(&self, name: Option<&str>) -> Result<usize, ApiError> {
        let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(0) };
        let plain = name.strip_suffix(":latest").unwrap_or(name);
        self.specs.iter().position(|spec| spec.name == plain || spec.name == name).ok_or_else(
            || {
                let known: Vec<&str> = self.specs.iter().map(|spec| &*spec.name).collect();
                let message =
                    format!("model '{name}' does not exist; this server has {}", known.join(", "));
                let error = ApiError::new(StatusCode::NOT_FOUND, "model_not_found", message);
                ApiError { param: Some("model".to_owned()), ..error }
            },
        )
    }

    /// The model with a number, loaded if it is not. Requests for a model that is being loaded wait for it.
    /// `keep_alive` takes the place of the server's; `Some(None)` keeps it loaded.
    ///
    /// # Errors
    /// When it cannot be loaded.
    pub(crate) async fn lease(
        self: &Arc<Models>,
        index: usize,
        keep_alive: Option<Option<Duration>>,
    ) -> Result<ModelLease, ApiError> {
        let keep_alive = keep_alive.unwrap_or(self.keep_alive);
        let began = Instant::now();
        let mut waited = false;
        loop {
            let changed = self.changed.notified();
            match self.step(index, keep_alive) {
                Step::Ready(mut lease) => {
                    lease.load_time = waited.then(|| began.elapsed());
                    return Ok(lease);
                }
                Step::Wait => changed.await,
                Step::Load => self.clone().load(index).await?,
                Step::Unload(index, other) => self.clone().unload(index, other).await,
            }
            waited = true;
        }
    }

    /// What the request for a model has to do next.
    fn step(self: &Arc<Models>, index: usize, keep_alive: Option<Duration>) -> Step {
        let mut slots = self.lock();
        match &mut slots[index] {
            Slot::Loaded(loaded) => {
                loaded.users += 1;
                let (models, engine) = (Arc::clone(self), loaded.engine.clone());
                let load_time = None;
                return Step::Ready(ModelLease { models, index, engine, load_time, keep_alive });
            }
            Slot::Changing => return Step::Wait,
            Slot::Unloaded => {}
        }
        let taken: u64 = slots
            .iter()
            .zip(&self.specs)
            .filter(|(slot, _)| !matches!(slot, Slot::Unloaded))
            .map(|(_, spec)| spec.bytes)
            .sum();
        let is_first = slots.iter().all(|slot| matches!(slot, Slot::Unloaded));
        if is_first || self.memory == 0 || taken + self.specs[index].bytes <= self.memory {
            slots[index] = Slot::Changing;
            return Step::Load;
        }
        let idle = slots.iter().enumerate().filter_map(|(at, slot)| match slot {
            Slot::Loaded(loaded) if loaded.users == 0 => Some((loaded.last_used, at)),
            _ => None,
        });
        match idle.min() {
            Some((_, oldest)) => match std::mem::replace(&mut slots[oldest], Slot::Changing) {
                Slot::Loaded(loaded) => Step::Unload(oldest, loaded.engine),
                _ => Step::Wait,
            },
            None => Step::Wait,
        }
    }

    /// Loads a model in a task of its own, so that a caller who leaves does not stop it for others.
    async fn load(self: Arc<Models>, index: usize) -> Result<(), ApiError> {
        let task = tokio::spawn(async move {
            let began = Instant::now();
            let built = self.specs[index].builder.clone().build().await;
            let load_time = began.elapsed();
            match built {
                Ok(engine) => {
                    tracing::info!(
                        model = self.specs[index].name,
                        ms = load_time.as_millis() as u64,
                        "model loaded"
                    );
                    let last_used = Instant::now();
                    let expires = self.keep_alive.and_then(|time| last_used.checked_add(time));
                    let loaded = Loaded { engine, users: 0, last_used, expires };
                    self.set(index, Slot::Loaded(loaded));
                    Ok(())
                }
                Err(error) => {
                    tracing::error!(model = self.specs[index].name, %error, "model cannot be loaded");
                    self.set(index, Slot::Unloaded);
                    Err(ApiError::from(error))
                }
            }
        });
        task.await.unwrap_or_else(|error| {
            let message = "the model cannot be loaded; the log of the server says why";
            let failed =
                ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "model_not_loaded", message);
            Err(failed.logged(format!("the model cannot be loaded: {error}")))
        })
    }

    /// Ends the engine of a model, also if the caller leaves.
    async fn unload(self: Arc<Models>, index: usize, engine: Engine) {
        let task = tokio::spawn(async move {
            if let Err(error) = engine.shutdown(Shutdown::Drain).await {
                tracing::warn!(model = self.specs[index].name, %error, "model not ended cleanly");
            }
            drop(engine);
            tracing::info!(model = self.specs[index].name, "model unloaded");
            self.set(index, Slot::Unloaded);
        });
        let _ = task.await;
    }

    /// Unloads every model whose time without requests is over; returns when the next one is due.
    pub(crate) async fn unload_expired(self: &Arc<Models>) -> Option<Instant> {
        loop {
            let (index, expired) = {
                let mut slots = self.lock();
                let now = Instant::now();
                let expired = slots.iter().position(|slot| {
                    matches!(slot, Slot::Loaded(l) if l.users == 0 && l.expires.is_some_and(|at| at <= now))
                });
                match expired {
                    None => return slots.iter().filter_map(Slot::expires).min(),
                    Some(index) => match std::mem::replace(&mut slots[index], Slot::Changing) {
                        Slot::Loaded(loaded) => (index, loaded.engine),
                        _ => return None,
                    },
                }
            };
            self.clone().unload(index, expired).await;
        }
    }

    /// Returns when a model is loaded, unloaded or no longer used.
    pub(crate) fn changed(&self) -> impl Future<Output = ()> + '_ {
        self.changed.notified()
    }

    /// Loads the first model.
    ///
    /// # Errors
    /// When it cannot be loaded.
    pub(crate) async fn load_first(self: &Arc<Models>) -> Result<(), ApiError> {
        self.lease(0, None).await.map(drop)
    }

    /// Ends all engines.
    pub(crate) async fn shutdown(&self, how: Shutdown) {
        for loaded in self.loaded() {
            let _ = loaded.engine.shutdown(how).await;
        }
    }

    /// The loaded models.
    pub(crate) fn loaded(&self) -> Vec<LoadedModel> {
        let now = Instant::now();
        let slots = self.lock();
        let loaded = slots.iter().enumerate().filter_map(|(index, slot)| match slot {
            Slot::Loaded(loaded) => Some(LoadedModel {
                index,
                engine: loaded.engine.clone(),
                expires: loaded.expires.map(|at| at.saturating_duration_since(now)),
                users: loaded.users,
            }),
            _ => None,
        });
        loaded.collect()
    }

    fn set(&self, index: usize, slot: Slot) {
        self.lock()[index] = slot;
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
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

/// What a request for a model has to do.
#[derive(Debug)]
enum Step {
    Ready(ModelLease),
    /// Until something changes.
    Wait,
    Load,
    /// Another model, which makes room.
    Unload(usize, Engine),
}
