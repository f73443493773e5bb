//! The way of every command to its engine: a model by name or path and options become a builder, which the command completes,
//! and the builder becomes an engine.

use std::path::PathBuf;

use lapwing_engine::draft::{DraftChoice, DraftForm};
use lapwing_engine::models::ModelCache;
use lapwing_engine::{Engine, EngineBuilder};

use super::attention::AttentionChanges;
use super::drivers;
use super::engine_args::EngineArgs;
use super::failure::Failure;
use super::plans::with_plans;
use super::profiles::with_profile;
use super::requant;
use super::resolve::model_file;
use super::session::Session;

/// A builder with settings that may be absent.
pub(crate) trait Given: Sized {
    /// Sets a value if there is one.
    fn given<T>(self, value: Option<T>, set: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            Some(value) => set(self, value),
            None => self,
        }
    }
}

impl Given for EngineBuilder {}
impl Given for DraftChoice {}

impl EngineArgs {
    /// The builder of a model by name or path, which is fetched if necessary, with all settings and without a prefix cache.
    pub(crate) async fn builder_of(
        &self,
        model: &str,
        session: &Session,
    ) -> Result<EngineBuilder, Failure> {
        self.builder(model_file(model, session).await?)
    }

    /// As [`builder_of`](EngineArgs::builder_of), for an engine that generates nothing: without a given drafter, none is loaded.
    pub(crate) async fn builder_to_score(
        &self,
        model: &str,
        session: &Session,
    ) -> Result<EngineBuilder, Failure> {
        let builder = self.builder_of(model, session).await?;
        Ok(if self.draft.is_none() { builder.draft(DraftChoice::none()) } else { builder })
    }

    /// As [`builder_of`](EngineArgs::builder_of), of a file.
    pub(crate) fn builder(&self, model: PathBuf) -> Result<EngineBuilder, Failure> {
        let builder = self.without_strategy(model)?;
        Ok(builder.given(self.devices.strategy.as_deref(), EngineBuilder::strategy))
    }

    /// As [`builder`](EngineArgs::builder), with all settings except the strategy.
    pub(crate) fn without_strategy(&self, model: PathBuf) -> Result<EngineBuilder, Failure> {
        let draft = self.drafter().schedule(self.draft_schedule.unwrap_or_default());
        let draft = draft.given(self.draft_device.as_deref(), DraftChoice::on_device);
        let draft = draft.given(self.draft_length, DraftChoice::length);
        let (pre_verify, post_verify) = (self.draft_pre_verify, self.draft_post_verify);
        let draft = draft.form(DraftForm { pre_verify, post_verify, ..DraftForm::default() });
        // Without a cache folder, a model on disk still runs.
        let cache = if self.no_packed_cache { None } else { ModelCache::open(None).ok() };
        let builder = Engine::builder()
            .model(model)
            .strategy_options(self.devices.options())
            .kv(self.kv)
            .activations(self.activations())
            .prefix_cache(false)
            .draft(draft.width(self.draft_width.unwrap_or(1)))
            .lister(drivers::lister())
            .devices(self.devices.specs()?)
            .wait_for_graphs(self.devices.wait_for_graphs)
            .given(self.requant, EngineBuilder::requant)
            .given(self.policy.as_deref(), EngineBuilder::policy)
            .given(self.reserve, EngineBuilder::reserve)
            .given(self.token_gap, EngineBuilder::token_gap)
            .given(self.devices.gpu_layers, EngineBuilder::gpu_layers)
            .given(self.devices.permits, EngineBuilder::permits)
            .given(self.threads, EngineBuilder::threads)
            .given(self.cores.as_ref(), |builder, cores| {
                builder.cores(cores.cores().iter().copied())
            })
            .given(self.chunk, EngineBuilder::chunk_rows)
            .given(self.isa.as_deref(), EngineBuilder::isa)
            .given(cache, |builder, cache| builder.packed_cache(cache.dir().join("packed")))
            .given(self.packed_memory(), EngineBuilder::packed_memory);
        let builder = self.attention.apply(builder);
        let builder = self.devices.place.iter().fold(builder, EngineBuilder::place);
        let waits = self.devices.wait.iter();
        let builder = waits.fold(builder, |builder, (link, mode)| builder.wait(*link, *mode));
        Ok(if self.mlock { builder.lock_weights() } else { builder })
    }
}

/// The builder with the stored profile and plans of its devices, as far as there are usable ones.
pub(crate) fn with_stored(builder: EngineBuilder, session: &Session) -> EngineBuilder {
    with_plans(with_profile(builder, session), session)
}

/// Opens the engine off the async runtime, with the stored profile and plans of its devices, and says what was changed.
pub(crate) async fn open(builder: EngineBuilder, session: &Session) -> Result<Engine, Failure> {
    open_as_is(with_stored(builder, session), session).await
}

/// As [`open`], with the builder's own profile and plans.
pub(crate) async fn open_as_is(
    builder: EngineBuilder,
    session: &Session,
) -> Result<Engine, Failure> {
    let engine = builder.build().await?;
    requant::note(engine.requantized(), session);
    AttentionChanges::of(&engine).note(session);
    engine.notes().iter().for_each(|note| session.note(note));
    for note in &engine.packed_weights().notes {
        session.note(&format!(
            "{note} (--no-packed-cache disables this cache, LAPWING_CACHE names another folder)"
        ));
    }
    Ok(engine)
}
