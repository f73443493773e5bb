//! What is known of a model before it is loaded.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use lapwing_traces::{OsClock, Recorder, RecorderConfig, Scope};

use crate::config::ServeConfig;
use crate::facts::ModelFacts;
use crate::start_error::ServeError;
use lapwing_engine::EngineBuilder;

/// A model that a server is to offer.
#[derive(Debug)]
pub(crate) struct Offer {
    /// Name that requests use.
    pub(crate) name: String,
    /// Settings of its engine.
    pub(crate) engine: EngineBuilder,
    /// Sampling temperature if a request names none.
    pub(crate) temperature: Option<f32>,
}

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

impl ModelSpec {
    /// Reads the file of a model. Its engine gets the server's queue policy, maximum of requests and a recorder.
    ///
    /// # Errors
    /// When the file cannot be read, or its model cannot answer conversations although its engine requires it.
    pub(crate) fn read(offer: Offer, config: &ServeConfig) -> Result<ModelSpec, ServeError> {
        let Offer { name, engine, temperature } = offer;
        let path = engine.model_file().to_owned();
        let fault = |source| ServeError::Model { name: name.clone(), source: Box::new(source) };
        let facts = ModelFacts::read(&path).map_err(fault)?;
        engine.check_chat().map_err(fault)?;
        let data = std::fs::metadata(&path).ok();
        let modified = data.and_then(|data| data.modified().ok()).unwrap_or(SystemTime::UNIX_EPOCH);
        let recorder = recorder(config.timeline_events);
        let builder = engine.policy(config.policy_text()).requests_max(config.requests_max);
        let builder = builder.sequences_max(config.sequences_max);
        let builder = recorder.iter().cloned().fold(builder, EngineBuilder::recorder);
        let bytes = facts.bytes;
        Ok(ModelSpec { name, builder, path, bytes, modified, facts, recorder, temperature })
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
