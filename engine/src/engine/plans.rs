//! Plans that were solved ahead, and what a user should know where there are none.

use std::sync::Arc;

use lapwing_kernels::cpu::Activations;
use lapwing_plan::plans::{Planned, PlansSubject};
use lapwing_plan::strategy::Strategy;

use super::draft_model;
use super::opened::Opened;
use crate::config::{Chosen, Settings, StrategyChoice};
use crate::devices::build::Built;
use crate::error::Error;
use crate::placement::Placement;

/// What the plans of an engine depend on.
pub(super) fn subject(opened: &Opened) -> PlansSubject {
    let Opened { settings, chosen, .. } = opened;
    let identity = opened.identity();
    let strategy = match &settings.strategy {
        StrategyChoice::Suitable => "the default for the devices",
        StrategyChoice::Named(name) => name,
        StrategyChoice::Own(own) => own.name(),
    };
    let solving = (strategy, &settings.options, &settings.places, chosen.permits);
    let measured = (&identity.machine, identity.chunk_rows, &identity.devices);
    let beside = beside_target(settings, chosen).map(|draft| format!(" beside {draft}"));
    let passed_on = if settings.draft.is_predictor() { " with rows passed on" } else { "" };
    let text = settings.profile.as_ref().and_then(|profile| profile.to_json().ok());
    PlansSubject {
        program: identity.program.clone(),
        model: identity.model.clone(),
        settings: format!("{measured:?} {solving:?}{}{passed_on}", beside.unwrap_or_default()),
        profile: text.map(|text| crc32fast::hash(text.as_bytes())),
    }
}

/// The draft model and its device, where that has a memory of its own, so that fewer layers of the target may fit.
fn beside_target(settings: &Settings, chosen: &Chosen) -> Option<String> {
    let device = draft_model::device(settings.draft.draft_model()?, chosen).ok()?;
    let (spec, _) = chosen.devices.get(device)?;
    spec.has_memory().then(|| format!("{} on {}", settings.draft.name(), spec.name))
}

/// The strategy, which takes its routes from the settings' plans where these have them.
///
/// # Errors
/// When the plans are for something else.
pub(super) fn with_plans(
    strategy: Arc<dyn Strategy>,
    opened: &Opened,
) -> Result<Arc<dyn Strategy>, Error> {
    let Some(plans) = &opened.settings.plans else { return Ok(strategy) };
    plans.check_subject(&subject(opened))?;
    Ok(Arc::new(Planned { inner: strategy, plans: Arc::clone(plans) }))
}

/// A note on a device that could take prepared graphs from disk, if nothing was prepared for the engine. `meanwhile`:
/// whether other devices compute until its graphs are ready.
pub(super) fn unprepared(
    settings: &Settings,
    devices: &[Built],
    placement: &Placement,
    meanwhile: bool,
) -> Option<String> {
    if settings.plans.is_some() {
        return None;
    }
    let is_used = |name: &str| {
        let mut parts = placement.stages.iter().flat_map(|stage| &stage.parts);
        parts.any(|part| part.device == name)
    };
    let keeps = |built: &Built| built.device.device.preparer().is_some_and(|it| it.keeps_graphs());
    let device = devices.iter().find(|built| keeps(built) && is_used(&built.info.name))?;
    let name = &device.info.name;
    let specs: Vec<String> = settings.devices.iter().map(ToString::to_string).collect();
    let strategy = match &settings.strategy {
        StrategyChoice::Named(name) => format!(" --strategy {name}"),
        StrategyChoice::Suitable | StrategyChoice::Own(_) => String::new(),
    };
    let until = match (meanwhile, settings.activations) {
        (false, _) => "the first prompts wait for plans and graphs",
        (true, Activations::F32) => {
            "other devices compute the first prompts; its graphs are made while there is no request"
        }
        (true, _) => {
            "other devices compute the first prompts, whose answers can differ a little, as they round activations (--exact \
             avoids that); its graphs are made while there is no request"
        }
    };
    let note = format!(
        "nothing was prepared for '{name}': {until}; prepare them ahead with `lapwing prepare -m {} --device {}{strategy}` \
         and the other options of this engine",
        in_shell(&settings.model.display().to_string()),
        in_shell(&specs.join("+"))
    );
    tracing::info!(device = %name, "{note}");
    Some(note)
}

/// A word of a shell's command.
fn in_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-+=,.:/@%".contains(c);
    match word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests;
