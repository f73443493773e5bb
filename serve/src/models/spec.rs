//! What is known of a model before it is loaded.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use lapwing_traces::{OsClock, Recorder, RecorderConfig, Scope};

use crate::config::ServeConfig;
use crate::facts::ModelFacts;
use crate::start_error::ServeError;
use lapwing_engine::{Engine, EngineBuilder};

/// A model that a server is to offer.
#[derive(Debug)]
pub(crate) struct Offer {
    /// Name that requests use.
    pub(crate) name: String,
    /// Where its engine comes from.
    pub(crate) source: Source,
    /// Sampling temperature if a request names none.
    pub(crate) temperature: Option<f32>,
}

/// Where the engine of a model comes from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// It is built from settings when a request asks for it.
    Settings(Box<EngineBuilder>),
    /// It runs already, and is shared with the program.
    Running(Engine),
}

/// A model that a server offers.
#[derive(Clone, Debug)]
pub(crate) struct ModelSpec {
    /// Name that requests use.
    pub(crate) name: String,
    /// Where its engine comes from.
    pub(crate) source: Source,
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

impl ModelSpec {
    /// Reads the file of a model. An engine that is still to be built gets the server's queue policy, its maximum of
    /// requests and a recorder.
    ///
    /// # Errors
    /// When the file cannot be read, or its model cannot answer conversations although its engine requires it.
    pub(crate) fn read(offer: Offer, config: &ServeConfig) -> Result<ModelSpec, ServeError> {
        let Offer { name, source, temperature } = offer;
        let path = match &source {
            Source::Settings(builder) => builder.model_file().to_owned(),
            Source::Running(engine) => engine.model_path().to_owned(),
        };
        let fault = |source| ServeError::Model { name: name.clone(), source: Box::new(source) };
        let facts = ModelFacts::read(&path).map_err(fault)?;
        if let Source::Settings(builder) = &source {
            builder.check_chat().map_err(fault)?;
        }
        let data = std::fs::metadata(&path).ok();
        let modified = data.and_then(|data| data.modified().ok()).unwrap_or(SystemTime::UNIX_EPOCH);
        let (source, recorder) = match source {
            Source::Settings(builder) => {
                let recorder = recorder(config.timeline_events);
                let builder = builder.policy(config.policy_text());
                let builder = builder.requests_max(config.requests_max);
                let builder = builder.sequences_max(config.sequences_max);
                let builder = recorder.iter().cloned().fold(builder, EngineBuilder::recorder);
                (Source::Settings(Box::new(builder)), recorder)
            }
            Source::Running(engine) => {
                let recorder = (config.timeline_events > 0).then(|| engine.recorder().clone());
                (Source::Running(engine), recorder)
            }
        };
        let bytes = facts.bytes;
        Ok(ModelSpec { name, source, path, bytes, modified, facts, recorder, temperature })
    }
}

/// A recorder that keeps the latest events; `None` if none are to be kept.
fn recorder(events_max: usize) -> Option<Recorder> {
    if events_max == 0 {
        return None;
    }
    let config = RecorderConfig { events_max, keep_latest: true, ..RecorderConfig::default() };
    let recorder = Recorder::new(Arc::new(OsClock::start()), config);
    recorder.set_scope(Scope::All);
    Some(recorder)
}
