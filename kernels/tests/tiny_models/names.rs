//! Names of the models.

use super::{folder, is_emulated, reference};

/// Models that bring every kernel with code for an instruction set into use, beside those in each weight format.
const EMULATED: [&str; 16] = [
    "apertus",
    "arcee",
    "bloom",
    "exaone4-windows",
    "gemma2",
    "gemma3",
    "gemma3n",
    "gemma4",
    "gpt-oss",
    "granite",
    "llama",
    "llama-rope-yarn",
    "olmo",
    "phi2",
    "qwen2moe",
    "stablelm",
];

/// Those that are tried.
pub(super) fn names() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .expect("tests/reference/tiny")
        .filter_map(|entry| entry.expect("an entry").file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".json").map(str::to_owned))
        .collect();
    names.retain(|name| {
        !is_emulated() || name.starts_with("format-") || EMULATED.contains(&name.as_str())
    });
    names.sort();
    assert!(names.len() >= 21, "only {} reference models", names.len());
    names
}

/// Of those, models with results in double precision: their layers have only ops that are fused, and no joined matrices.
pub(super) fn exact_names() -> Vec<String> {
    let names = names().into_iter();
    let exact: Vec<String> = names.filter(|name| reference(name).get("exact").is_some()).collect();
    assert!(exact.len() >= 21, "only {} exact models", exact.len());
    exact
}
