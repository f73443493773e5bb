//! Settings and results in words, with units, for the axes of plots.

use super::scenario::Scenario;

const SETTINGS: [(&str, &str); 6] = [
    ("prompt", "prompt length (tokens)"),
    ("decode", "decode steps"),
    ("chunk", "chunk size (tokens)"),
    ("permits", "chunks in flight"),
    ("verify", "rows per decode step"),
    ("seed", "seed of the noise"),
];

const FIGURES: [(&str, &str); 17] = [
    ("prefill_ms", "time to first token (ms)"),
    ("prefill_tokens_per_second", "prefill speed (tokens/s)"),
    ("decode_ms", "decode time (ms)"),
    ("decode_tokens_per_second", "decode speed (tokens/s)"),
    ("makespan_ms", "makespan (ms)"),
    ("lower_bound_ms", "lower bound of the makespan (ms)"),
    ("preparation_ms", "graph preparation (ms)"),
    ("energy_j", "energy (J)"),
    ("power_w", "mean power (W)"),
    ("prefill_j", "energy of prefill (J)"),
    ("prefill_w", "mean power of prefill (W)"),
    ("decode_j", "energy of decode (J)"),
    ("decode_w", "mean power of decode (W)"),
    ("decode_gb_per_s", "memory traffic in decode (GB/s)"),
    ("overlap", "overlap (share of busy time)"),
    ("syncs", "synchronisations"),
    ("frames_per_second", "frame rate of the game (frames/s)"),
];

/// A setting, or a number of the scenario's processors with its unit.
pub(crate) fn setting_label(key: &str, base: &Scenario) -> String {
    if let Some((_, label)) = SETTINGS.iter().find(|(name, _)| *name == key) {
        return (*label).to_owned();
    }
    let numbers = base.processors().numbers();
    let unit = numbers.iter().find(|(name, _)| name == key).map(|(_, number)| &*number.unit);
    match unit.filter(|unit| !unit.is_empty()) {
        Some(unit) => format!("{} ({unit})", key.replace(['.', '_'], " ")),
        None => key.replace(['.', '_'], " "),
    }
}

/// A number of which multiples are compared.
pub(crate) fn multiple_label(key: &str) -> String {
    format!("{} (multiple of its value)", key.replace(['.', '_'], " "))
}

/// A result of a run.
pub(crate) fn figure_label(name: &str) -> &str {
    FIGURES.iter().find(|(known, _)| *known == name).map_or(name, |(_, label)| label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_axis_has_words_and_a_unit() {
        let base = Scenario::new("sd8gen3").expect("a preset");
        for (name, _) in crate::simulate::FIGURES {
            assert_ne!(figure_label(name), *name, "{name}");
        }
        assert_eq!(setting_label("prompt", &base), "prompt length (tokens)");
        assert_eq!(setting_label("gpu.bandwidth", &base), "gpu bandwidth (GB/s)");
        assert_eq!(setting_label("gpu.small_rate", &base), "gpu small rate (TFLOP/s)");
    }
}
