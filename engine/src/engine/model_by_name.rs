//! The model of an engine: a file, or a name whose file is fetched.

use std::borrow::Cow;

use super::EngineBuilder;
use crate::config::Settings;
use crate::error::Error;

impl EngineBuilder {
    /// The model by name: one of the catalogue (`smollm2`; [`catalogue`](crate::models::catalogue) lists
    /// them), or `hf:owner/repo/file.gguf[@revision]`. A model that is not in the default cache is
    /// fetched when the engine is built, without reporting progress; [`fetch`](crate::models::fetch)
    /// reports it, or uses another cache. Dropping the future of [`build`](EngineBuilder::build) stops
    /// the fetch. The last call of this and [`model`](EngineBuilder::model) counts.
    ///
    /// ```no_run
    /// # use lapwing::Engine;
    /// # async fn example() -> Result<(), lapwing::Error> {
    /// let engine = Engine::builder().model_named("smollm2").build().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "fetch")]
    pub fn model_named(mut self, name: impl Into<String>) -> EngineBuilder {
        self.settings.model_name = Some(name.into());
        self
    }

    /// With a flag of its own that stops a fetch, and the guard that sets it.
    #[cfg(feature = "fetch")]
    pub(super) fn with_stop(mut self) -> (EngineBuilder, fetching::StopOnDrop) {
        self.settings.fetch_stop = std::sync::Arc::default();
        let stop = fetching::StopOnDrop(std::sync::Arc::clone(&self.settings.fetch_stop));
        (self, stop)
    }

    /// The settings with the model's file, which is fetched if it is named.
    pub(super) fn settled(&self) -> Result<Cow<'_, Settings>, Error> {
        #[cfg(feature = "fetch")]
        if let Some(name) = &self.settings.model_name {
            let model = fetching::fetch_apart(name, &self.settings.fetch_stop)?;
            return Ok(Cow::Owned(Settings { model, ..self.settings.clone() }));
        }
        Ok(Cow::Borrowed(&self.settings))
    }
}

/// The file of a named model, which is fetched if it is not in the default cache.
#[cfg(feature = "fetch")]
pub(super) fn fetched(name: &str, settings: &Settings) -> Result<std::path::PathBuf, Error> {
    fetching::fetch_apart(name, &settings.fetch_stop)
}

#[cfg(feature = "fetch")]
mod fetching {
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use lapwing_actors::drive::blocking::run_apart;

    use crate::error::Error;
    use crate::models::{FetchError, FetchEvent, ModelCache, ModelName, fetch_until};

    /// Stops a fetch when the future that waits for it is dropped.
    #[derive(Debug)]
    pub(in crate::engine) struct StopOnDrop(pub(super) Arc<AtomicBool>);

    impl Drop for StopOnDrop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// Fetches a model into the default cache on a thread and a runtime of their own, so that the
    /// caller may be on any thread.
    pub(super) fn fetch_apart(name: &str, stop: &Arc<AtomicBool>) -> Result<PathBuf, Error> {
        let name: ModelName = name.parse()?;
        let cache = ModelCache::open(None)?;
        if let Some(path) = cache.path_of(&name.to_string()) {
            return Ok(path);
        }
        let stop = Arc::clone(stop);
        let fetched = run_apart("fetch", move || -> Result<PathBuf, Error> {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(Error::thread)?;
            let stopped = || stop.load(Ordering::Relaxed);
            let mut silent = |_: FetchEvent| {};
            let path = runtime.block_on(fetch_until(&cache, &name, &mut silent, stopped));
            path.unwrap_or(Err(FetchError::WorkerDied { detail: "it was stopped".to_owned() }))
                .map_err(Error::from)
        });
        fetched.map_err(Error::thread)?
    }
}
