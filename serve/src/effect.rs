//! Settings that would have no effect are errors.

use super::config::ServeConfig;
use super::models::{Offer, Source};
use super::start_error::ServeError;

/// A setting, and whether it has another value than the default.
type Setting = (&'static str, bool);

/// Refuses settings of sockets where a program has them.
///
/// # Errors
/// When there is one.
pub(crate) fn check_sockets(config: &ServeConfig) -> Result<(), ServeError> {
    let default = ServeConfig::default();
    let settings: [Setting; 3] = [
        ("listen", config.listen != default.listen),
        ("connections_max", config.connections_max != default.connections_max),
        ("stalled_s", config.stalled_s != default.stalled_s),
    ];
    refuse(&settings, "the program that mounts the server has the sockets")
}

/// Refuses settings of engines that run already.
///
/// # Errors
/// When there is one.
pub(crate) fn check_engines(config: &ServeConfig, offers: &[Offer]) -> Result<(), ServeError> {
    let is_running = |offer: &&Offer| matches!(offer.source, Source::Running(_));
    let running = offers.iter().filter(is_running).count();
    if running == 0 {
        return Ok(());
    }
    let default = ServeConfig::default();
    let mut clients = config.clients.values();
    let limited = clients.clone().any(|client| client.requests_per_minute.is_some());
    let events = [0, default.timeline_events];
    let settings: [Setting; 6] = [
        ("policy", config.policy != default.policy),
        ("requests_max", config.requests_max != default.requests_max),
        ("sequences_max", config.sequences_max != default.sequences_max),
        ("clients.NAME.weight", clients.any(|client| client.weight.is_some())),
        ("clients.NAME.requests_per_minute", limited),
        ("timeline_events", !events.contains(&config.timeline_events)),
    ];
    refuse(&settings, "an engine that runs already keeps the settings that it was built with")?;
    if running < offers.len() {
        return Ok(());
    }
    let settings: [Setting; 2] = [
        ("keep_alive_s", config.keep_alive_s != default.keep_alive_s),
        ("memory_bytes", config.memory_bytes != default.memory_bytes),
    ];
    refuse(&settings, "an engine that the program runs is never unloaded")
}

fn refuse(settings: &[Setting], reason: &'static str) -> Result<(), ServeError> {
    let set = settings.iter().find(|setting| setting.1);
    set.map_or(Ok(()), |setting| Err(ServeError::NoEffect { setting: setting.0, reason }))
}
