//! Measures, stores and finds profiles.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lapwing::EngineBuilder;
use lapwing::models::ModelCache;
use lapwing::profile::{Limits, Profile, Trust};

use super::attention::AttentionChanges;
use super::failure::Failure;
use super::requant;
use super::session::Session;
use super::signals::Signal;

/// Measures on a separate thread; a signal ends the measurement before the next op.
pub(crate) async fn measure(
    builder: EngineBuilder,
    limits: Limits,
    session: &Session,
) -> Result<Profile, Failure> {
    requant::note(builder.requantized()?.as_ref(), session);
    AttentionChanges::of_builder(&builder)?.note(session);
    let bar = session.bar("{msg:.bold} {bar:40.cyan/dim} {pos}/{len}, {eta} left");
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, shown) = (Arc::clone(&stop), bar.clone());
    if bar.is_none() {
        session.note("measuring every op on every device");
    }
    let work = tokio::task::spawn_blocking(move || {
        builder.measure_blocking(limits, &mut |step| {
            if let Some(bar) = &shown {
                bar.set_length(step.of as u64);
                bar.set_position(step.done as u64);
                bar.set_message(format!("{}: {}", step.device, step.what));
            }
            match stopped.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })
    });
    tokio::pin!(work);
    let claim = session.interrupts.claim();
    let mut received = Signal::Interrupt;
    let ended = tokio::select! {
        biased;
        signal = claim.interrupted() => {
            received = signal;
            stop.store(true, Ordering::Relaxed);
            session.restore_after_interrupt();
            (&mut work).await
        }
        ended = &mut work => ended,
    };
    bar.iter().for_each(indicatif::ProgressBar::finish_and_clear);
    match ended {
        Ok(Ok(profile)) => Ok(profile),
        Ok(Err(error)) if error.is_cancelled() => Err(Failure::Interrupted(received)),
        Ok(Err(error)) => Err(error.into()),
        Err(error) => Err(Failure::failed(format!("the measurement ended early: {error}"))),
    }
}

/// Path of the stored profile of the builder's engine.
pub(crate) fn profile_file(builder: &EngineBuilder) -> Result<PathBuf, Failure> {
    let cache = ModelCache::open(None)?;
    Ok(cache.dir().join("profiles").join(builder.identity()?.file_name()))
}

/// The builder with the stored profile of its devices and model, if there is a usable one. A note says
/// why a stored profile is not used, or that its predictions are doubtful.
pub(crate) fn with_stored(builder: EngineBuilder, session: &Session) -> EngineBuilder {
    // Errors of the model or the settings are reported when the engine is built.
    let Ok(file) = profile_file(&builder) else { return builder };
    if !file.exists() {
        return builder;
    }
    let unused = |why: &str| {
        session.note(&format!(
            "the stored profile is not used: {why}; times are predicted from the devices' own models \
             (`lapwing profile` measures again, `lapwing profile --list` shows stored profiles)"
        ));
    };
    let profile = match usable(&builder, &file) {
        Ok(profile) => profile,
        Err(why) => {
            unused(&why);
            return builder;
        }
    };
    let fitted = match builder.fit(&profile) {
        Ok(fitted) => fitted,
        // The model cannot be read, which building the engine reports.
        Err(_) => return builder,
    };
    match fitted.trust() {
        Trust::Unusable { why } => {
            unused(why);
            return builder;
        }
        Trust::Doubtful { why } => session.note(&format!("warning: {why}")),
        Trust::Good => {}
    }
    builder.profile(profile)
}

/// The profile in a file, if it is of this machine, model and devices.
fn usable(builder: &EngineBuilder, file: &Path) -> Result<Profile, String> {
    let profile = Profile::load(file).map_err(|error| error.to_string())?;
    let here = builder.identity().map_err(|error| error.to_string())?;
    profile.check_identity(&here).map_err(|error| error.to_string())?;
    Ok(profile)
}
