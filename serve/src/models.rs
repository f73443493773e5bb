//! The models of a server: loaded when a request asks for one, unloaded when they are idle.

mod lease;
mod slots;
mod spec;

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use lapwing_actors::message::Shutdown;

use super::error::ApiError;
use slots::{Idle, LoadedModel, Slots, Step};

pub(crate) use lease::ModelLease;
pub(crate) use spec::{ModelSpec, Offer, Source};

/// The models.
#[derive(Clone, Debug)]
pub(crate) struct Models {
    specs: Arc<[ModelSpec]>,
    slots: Arc<Slots>,
    keep_alive: Option<Duration>,
}

impl Models {
    /// The models `specs`, of which none is loaded but those that run already.
    pub(crate) fn new(specs: Vec<ModelSpec>, memory: u64, keep_alive: Option<Duration>) -> Models {
        let slots = Slots::new(specs.iter().map(|spec| spec.bytes).collect(), memory);
        for (index, spec) in specs.iter().enumerate() {
            if let Source::Running(engine) = &spec.source {
                slots.share(index, engine.clone());
            }
        }
        Models { specs: specs.into(), slots: Arc::new(slots), keep_alive }
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
        &self,
        index: usize,
        keep_alive: Option<Option<Duration>>,
    ) -> Result<ModelLease, ApiError> {
        let keep_alive = keep_alive.unwrap_or(self.keep_alive);
        let began = Instant::now();
        let mut waited = false;
        loop {
            let changed = self.slots.changed();
            match self.slots.step(index) {
                Step::Use(engine) => {
                    let (specs, slots) = (Arc::clone(&self.specs), Arc::clone(&self.slots));
                    let load_time = waited.then(|| began.elapsed());
                    return Ok(ModelLease { specs, slots, index, engine, load_time, keep_alive });
                }
                Step::Wait => changed.await,
                Step::Load => self.clone().load(index).await?,
                Step::Unload(other) => self.clone().unload(other).await,
            }
            waited = true;
        }
    }

    /// Loads a model in a task of its own, so that a caller who leaves does not stop it for others.
    async fn load(self, index: usize) -> Result<(), ApiError> {
        let task = tokio::spawn(async move {
            let began = Instant::now();
            let spec = &self.specs[index];
            let built = match &spec.source {
                Source::Settings(builder) => builder.as_ref().clone().build().await,
                Source::Running(engine) => Ok(engine.clone()),
            };
            let load_time = began.elapsed();
            match built {
                Ok(engine) => {
                    let ms = load_time.as_millis() as u64;
                    tracing::info!(model = spec.name, ms, "model loaded");
                    self.slots.loaded(index, engine, self.keep_alive);
                    Ok(())
                }
                Err(error) => {
                    tracing::error!(model = spec.name, %error, "model cannot be loaded");
                    self.slots.unloaded(index);
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
    async fn unload(self, Idle { index, engine }: Idle) {
        let task = tokio::spawn(async move {
            let name = &self.specs[index].name;
            if let Err(error) = engine.shutdown(Shutdown::Drain).await {
                tracing::warn!(model = name, %error, "model not ended cleanly");
            }
            drop(engine);
            tracing::info!(model = name, "model unloaded");
            self.slots.unloaded(index);
        });
        let _ = task.await;
    }

    /// Unloads every model whose time without requests is over; returns when the next one is due.
    pub(crate) async fn unload_expired(&self) -> Option<Instant> {
        while let Some(expired) = self.slots.take_expired() {
            self.clone().unload(expired).await;
        }
        self.slots.next_expiry()
    }

    /// Returns when a model is loaded, unloaded or no longer used.
    pub(crate) fn changed(&self) -> impl Future<Output = ()> + '_ {
        self.slots.changed()
    }

    /// Returns when no request uses a model.
    pub(crate) async fn unused(&self) {
        loop {
            let changed = self.slots.changed();
            if self.loaded().iter().all(|loaded| loaded.users == 0) {
                return;
            }
            changed.await;
        }
    }

    /// Loads the first model.
    ///
    /// # Errors
    /// When it cannot be loaded.
    pub(crate) async fn load_first(&self) -> Result<(), ApiError> {
        self.lease(0, None).await.map(drop)
    }

    /// Ends all engines that were loaded here.
    pub(crate) async fn shutdown(&self, how: Shutdown) {
        for loaded in self.loaded().into_iter().filter(|loaded| !loaded.is_shared) {
            let _ = loaded.engine.shutdown(how).await;
        }
    }

    /// The loaded models.
    pub(crate) fn loaded(&self) -> Vec<LoadedModel> {
        self.slots.list()
    }
}
