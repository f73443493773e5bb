//! Measures, stores and finds profiles.

use std::path::{Path, PathBuf};

use lapwing_engine::EngineBuilder;
use lapwing_engine::models::ModelCache;
use lapwing_engine::profile::{Identity, Limits, Profile, Trust};

use super::attention::AttentionChanges;
use super::background::until_signal;
use super::failure::Failure;
use super::requant;
use super::session::Session;

/// Measures on a separate thread; a signal ends the measurement before the next op.
pub(crate) async fn measure(
    builder: EngineBuilder,
    limits: Limits,
    session: &Session,
) -> Result<Profile, Failure> {
    requant::note(builder.requantized()?.as_ref(), session);
    AttentionChanges::of_builder(&builder)?.note(session);
    let bar = session.bar("{msg:.bold} {bar:40.cyan/dim} {pos}/{len}, {eta} left");
    if bar.is_none() {
        session.note("measuring every op on every device");
    }
    let measured = until_signal("measurement", bar, session, move |step| {
        builder.measure_blocking(limits, &mut |at| {
            step(at.done, at.of, format_args!("{}: {}", at.device, at.what))
        })
    });
    measured.await
}

/// Path of the stored profile of the builder's engine.
pub(crate) fn profile_file(builder: &EngineBuilder) -> Result<PathBuf, Failure> {
    file_of(&builder.identity()?)
}

fn file_of(here: &Identity) -> Result<PathBuf, Failure> {
    let cache = ModelCache::open(None)?;
    Ok(cache.dir().join("profiles").join(here.file_name()))
}

/// The builder with the profile in a file, if there is a path. The engine checks that it is of its devices and model.
pub(crate) fn with_given(
    builder: EngineBuilder,
    path: Option<&Path>,
) -> Result<EngineBuilder, Failure> {
    let Some(path) = path else { return Ok(builder) };
    let profile = Profile::load(path).map_err(|error| Failure::failed(error.to_string()))?;
    Ok(builder.profile(profile))
}

/// The builder with the stored profile of its devices and model, if it has none and there is a usable one. A note says
/// why a stored profile is not used, or that its predictions are doubtful.
pub(crate) fn with_profile(builder: EngineBuilder, session: &Session) -> EngineBuilder {
    if builder.has_profile() {
        return builder;
    }
    match stored(&builder, session) {
        Some(profile) => builder.profile(profile),
        None => builder,
    }
}

/// Whether there is a stored profile of the builder's devices and model, reliable or not.
pub(crate) fn is_stored(builder: &EngineBuilder) -> Result<bool, Failure> {
    let here = builder.identity()?;
    Ok(usable(&here, &file_of(&here)?).is_ok())
}

/// The stored profile of the builder's devices and model, with notes as those of [`with_profile`].
pub(crate) fn stored(builder: &EngineBuilder, session: &Session) -> Option<Profile> {
    // Errors of the model or the settings are reported when the engine is built.
    let here = builder.identity().ok()?;
    let file = file_of(&here).ok().filter(|file| file.exists())?;
    let unused = |why: &str| {
        session.note(&format!(
            "the stored profile is not used: {why}; times are predicted from the devices' own models \
             (`lapwing profile` measures again, `lapwing profile --list` shows stored profiles)"
        ));
    };
    let profile = usable(&here, &file).map_err(|why| unused(&why)).ok()?;
    // A model that cannot be read is reported when the engine is built.
    let fitted = builder.fit(&profile).ok()?;
    match fitted.trust() {
        Trust::Unusable { why } => {
            unused(why);
            return None;
        }
        Trust::Doubtful { why } => session.note(&format!("warning: {why}")),
        Trust::Good => {}
    }
    Some(profile)
}

/// The profile in a file, if it is of the machine, model and devices of `here`.
fn usable(here: &Identity, file: &Path) -> Result<Profile, String> {
    let profile = Profile::load(file).map_err(|error| error.to_string())?;
    profile.check_identity(here).map_err(|error| error.to_string())?;
    Ok(profile)
}
