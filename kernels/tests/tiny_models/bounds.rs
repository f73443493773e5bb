//! How far results may be from those of a reference.

use serde_json::Value;

use super::{floats, folder, reference};

/// Largest distance of llama.cpp's results from each other under different settings, and from results
/// in double precision: the noise of activations rounded to 8 bits and of an f16 KV cache.
pub(super) fn noise(reference: &Value) -> f32 {
    let differences = reference["max_abs_difference"].as_object().expect("differences");
    differences.values().map(|v| v.as_f64().expect("a number") as f32).fold(0.0, f32::max)
}

/// Standard deviation of all logits of that kind.
fn spread(reference: &Value, kind: &str) -> f32 {
    let rows = reference[kind].as_array().expect("rows");
    let all: Vec<f32> = rows.iter().flat_map(floats).collect();
    let mean = all.iter().sum::<f32>() / all.len() as f32;
    (all.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / all.len() as f32).sqrt()
}

/// How far results may be from llama.cpp's with its default settings, and from the rows with the least rounding.
pub(super) struct Bounds {
    pub(super) default_max: f32,
    /// The kind of the rows with the least rounding.
    pub(super) exact: &'static str,
    pub(super) exact_max: f32,
}

/// How much further the results of a model of that name may be with products of pairs of bfloat16 in attention: as far as such a
/// rounding moves llama.cpp's results of this model, as with 8-bit activations, or as its noise with weights in BF16. On average it is
/// llama.cpp's, but a row that attends to two keys almost equally may be three times as far away.
pub(super) fn of_pairs(name: &str) -> f32 {
    let text = std::fs::read_to_string(folder().join("../kv_bf16.json")).expect("distances");
    let distances: Value = serde_json::from_str(&text).expect("JSON");
    let distance = distances[name].as_f64().unwrap_or_else(|| panic!("run kv_bf16.py for {name}"));
    (1.25 * distance as f32).max(noise(&reference("format-bf16")))
}

impl Bounds {
    /// Those of a reference to a model whose weights are floats, or else quantised.
    pub(super) fn of(reference: &Value, is_float: bool) -> Bounds {
        let noise = noise(reference);
        let default_max = 1.1 * noise + 0.003;
        if reference.get("exact").is_some() {
            // With float weights, only the f16 KV cache differs from exact arithmetic; with quantised
            // weights, results have the noise of 8-bit activations, as llama.cpp's do.
            let exact_max = if is_float { 0.008 } else { 1.25 * noise };
            return Bounds { default_max, exact: "exact", exact_max };
        }
        // llama.cpp keeps keys and values in F32 for these rows; its noise is that of an f16 KV cache.
        let share = reference["tolerance"].as_f64().expect("a tolerance") as f32;
        let exact_max = 1.25 * noise + share * spread(reference, "precise");
        Bounds { default_max, exact: "precise", exact_max }
    }
}
