//! Engines that are built only for models that can answer conversations.

use lapwing_kernels::model::Architecture;
use lapwing_kernels::weights::WeightFile;

use super::EngineBuilder;
use crate::chat::{ChatFault, ChatTemplate};
use crate::config::Settings;
use crate::error::Error;

impl EngineBuilder {
    /// Builds the engine only if the model can answer conversations ([`Request::ask`](crate::Request::ask),
    /// [`Request::chat`](crate::Request::chat)), so that a program learns at its start that it cannot. By default, any model
    /// is accepted, and a request with messages is an error if the model has no chat template.
    ///
    /// ```no_run
    /// # use lapwing::Engine;
    /// # fn example() -> Result<(), lapwing::Error> {
    /// let built = Engine::builder().model("model.gguf").require_chat().build_blocking();
    /// let engine = match built {
    ///     Err(error) if error.chat_fault().is_some() => {
    ///         eprintln!("{error}");
    ///         return Ok(());
    ///     }
    ///     built => built?,
    /// };
    /// # Ok(())
    /// # }
    /// ```
    pub fn require_chat(mut self) -> EngineBuilder {
        self.settings.require_chat = true;
        self
    }

    /// Checks what [`require_chat`](EngineBuilder::require_chat) requires, which building does as well. Reads only the file's
    /// header.
    ///
    /// # Errors
    /// When the model cannot be read, or cannot answer conversations although it has to.
    pub fn check_chat(&self) -> Result<(), Error> {
        if !self.settings.require_chat {
            return Ok(());
        }
        let settings = self.settled()?;
        check(&settings, &WeightFile::open(&settings.model)?)
    }
}

/// Checks that the model of a file can answer conversations, if the settings say that it has to. Reads only the file's header.
pub(super) fn check(settings: &Settings, file: &WeightFile) -> Result<(), Error> {
    if !settings.require_chat {
        return Ok(());
    }
    let metadata = file.metadata();
    let architecture = metadata.opt_str("general.architecture").ok().flatten();
    let is_encoder = architecture
        .and_then(Architecture::by_name)
        .is_some_and(|architecture| architecture.is_encoder());
    match ChatFault::of(is_encoder, ChatTemplate::source_in(metadata)?) {
        Some(fault) => Err(Error::no_chat(settings.model.clone(), fault)),
        None => Ok(()),
    }
}
