//! The model of an engine: a file, or a name whose file is fetched.

use std::borrow::Cow;

use super::EngineBuilder;
#[cfg(feature = "fetch")]
use super::fetch_apart::{StopOnDrop, fetch_apart};
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
    pub(super) fn with_stop(mut self) -> (EngineBuilder, StopOnDrop) {
        self.settings.fetch_stop = std::sync::Arc::default();
        let stop = StopOnDrop(std::sync::Arc::clone(&self.settings.fetch_stop));
        (self, stop)
    }

    /// The settings with the model's file, which is fetched if it is named.
    pub(super) fn settled(&self) -> Result<Cow<'_, Settings>, Error> {
        #[cfg(feature = "fetch")]
        if let Some(name) = &self.settings.model_name {
            let model = fetch_apart(name, &self.settings.fetch_stop)?;
            return Ok(Cow::Owned(Settings { model, ..self.settings.clone() }));
        }
        Ok(Cow::Borrowed(&self.settings))
    }
}
