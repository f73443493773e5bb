//! Stores and finds plans, and prepares graphs.

mod others;

use std::path::PathBuf;

use lapwing_engine::EngineBuilder;
use lapwing_engine::models::ModelCache;
use lapwing_engine::prepare::{Plans, PlansSubject, Preparation, PrepareOptions};

use super::background::until_signal;
use super::failure::Failure;
use super::session::Session;

/// Path of the stored plans of the builder's engine.
pub(crate) fn plans_file(builder: &EngineBuilder) -> Result<PathBuf, Failure> {
    file_of(&builder.plans_subject()?)
}

fn file_of(here: &PlansSubject) -> Result<PathBuf, Failure> {
    let cache = ModelCache::open(None)?;
    Ok(cache.dir().join("plans").join(here.file_name()))
}

/// The builder with the stored plans of its devices and model, if there are usable ones. A note says why stored plans are not
/// used.
pub(crate) fn with_plans(builder: EngineBuilder, session: &Session) -> EngineBuilder {
    // Errors of the model or the settings are reported when the engine is built.
    let Ok(here) = builder.plans_subject() else { return builder };
    let Ok(file) = file_of(&here) else { return builder };
    if !file.exists() {
        if let Some(difference) = others::difference(&here, &file) {
            session.note(&format!(
                "the plans of `lapwing prepare` are not used: {difference}; prepare with the options of this command"
            ));
        }
        return builder;
    }
    let usable = Plans::load(&file).map_err(|error| error.to_string()).and_then(|plans| {
        plans.check_subject(&here).map_err(|error| error.to_string())?;
        Ok(plans)
    });
    match usable {
        Ok(plans) => builder.plans(plans),
        Err(why) => {
            session.note(&format!("the stored plans are not used: {why}"));
            builder
        }
    }
}

/// Prepares on a separate thread; a signal ends the preparation before the next graph.
pub(crate) async fn prepare(
    builder: EngineBuilder,
    options: PrepareOptions,
    session: &Session,
) -> Result<Preparation, Failure> {
    let bar = session.bar("{msg:.bold} {bar:40.cyan/dim} {pos}/{len}, {eta} left");
    let prepared = until_signal("preparation", bar, session, move |step| {
        builder.prepare_blocking(&options, &mut |at| {
            step(at.done, at.of, format_args!("{}: graphs", at.device))
        })
    });
    prepared.await
}
