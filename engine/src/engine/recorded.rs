//! What a recording says of the engine.

use super::opened::Opened;
use crate::placement::Placement;

/// Writes the recording's metadata: model, devices, strategy and settings.
pub(super) fn record_facts(opened: &Opened, placement: &Placement) {
    let Opened { settings, config, chosen, recorder, .. } = opened;
    let path = &settings.model;
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy();
    let threads: usize = chosen.devices.iter().map(|(_, threads)| threads.count).sum();
    let devices: Vec<String> = chosen.devices.iter().map(|(spec, _)| spec.to_string()).collect();
    recorder.set_meta("program", concat!("lapwing ", env!("CARGO_PKG_VERSION")));
    recorder.set_meta("clock", "monotonic");
    recorder.set_meta("model", &name);
    recorder.set_meta("model path", &path.to_string_lossy());
    recorder.set_meta("architecture", config.arch.name());
    recorder.set_meta("strategy", &placement.strategy);
    recorder.set_meta("devices", &devices.join(" + "));
    if let Some(requantized) = &opened.requantized {
        recorder.set_meta("weights", &requantized.to_string());
    }
    recorder.set_meta("isa", chosen.isa.name());
    recorder.set_meta("threads", &threads.to_string());
    let cores = chosen.devices.iter().filter_map(|(_, threads)| threads.cores.as_ref());
    let cores: Vec<String> = cores.map(ToString::to_string).collect();
    if !cores.is_empty() {
        recorder.set_meta("cores", &cores.join(" + "));
    }
    recorder.set_meta("context", &chosen.context.to_string());
    recorder.set_meta("chunk rows", &chosen.chunk_rows.to_string());
    recorder.set_meta("policy", settings.policy.name());
    recorder.set_meta("draft", settings.draft.name());
    if let Some(rules) = opened.attention() {
        let rules: Vec<String> = rules.iter().map(ToString::to_string).collect();
        recorder.set_meta("attention", &rules.join(" "));
    }
    if let Some(sharing) = &settings.share_kv {
        recorder.set_meta("share_kv", &sharing.to_string());
    }
}
