//! `config.json` and `generation_config.json`: sizes of the model, ids that end an answer, and the settings of sampling that
//! the file recommends.

use lapwing_kernels::weights::{Metadata, MetadataError};
use serde_json::{Map, Value, json};

use super::architectures;
use super::error::HfError;
use crate::tokenizer::Tokenizer;

/// Numbers of `config.json`, and the ends of their keys in the weight file.
const COUNTS: [(&str, &str); 8] = [
    ("max_position_embeddings", "context_length"),
    ("hidden_size", "embedding_length"),
    ("intermediate_size", "feed_forward_length"),
    ("num_hidden_layers", "block_count"),
    ("num_attention_heads", "attention.head_count"),
    ("num_key_value_heads", "attention.head_count_kv"),
    ("head_dim", "attention.key_length"),
    ("sliding_window", "attention.sliding_window"),
];

/// The same of numbers with a fraction.
const FRACTIONS: [(&str, &str); 3] = [
    ("rms_norm_eps", "attention.layer_norm_rms_epsilon"),
    ("layer_norm_eps", "attention.layer_norm_epsilon"),
    ("rope_theta", "rope.freq_base"),
];

/// `config.json`.
///
/// # Errors
/// If the architecture is not known, or a key has the wrong type.
pub(super) fn config(metadata: &Metadata, tokenizer: &Tokenizer) -> Result<Value, HfError> {
    let arch = metadata.str("general.architecture")?;
    let named = architectures::known(arch)
        .ok_or_else(|| HfError::UnknownArchitecture { found: arch.to_owned() })?;
    let mut config = Map::new();
    config.insert("architectures".to_owned(), json!([named.class]));
    config.insert("model_type".to_owned(), json!(named.model_type));
    config.insert("vocab_size".to_owned(), json!(tokenizer.vocab_size()));
    for (name, key) in COUNTS {
        // A number of each layer has no place here.
        if let Ok(Some(count)) = metadata.opt_u64(&format!("{arch}.{key}")) {
            config.insert(name.to_owned(), json!(count));
        }
    }
    for (name, key) in FRACTIONS {
        if let Ok(Some(number)) = metadata.opt_f32(&format!("{arch}.{key}")) {
            config.insert(name.to_owned(), decimal(number));
        }
    }
    let mut ends = ends(metadata, tokenizer)?;
    // Some classes of configurations allow no list.
    if let Some(Value::Array(ids)) = ends.get("eos_token_id")
        && let [id] = &ids[..]
    {
        let id = id.clone();
        ends.insert("eos_token_id".to_owned(), id);
    }
    config.extend(ends);
    Ok(Value::Object(config))
}

/// `generation_config.json`.
pub(super) fn generation_config(
    metadata: &Metadata,
    tokenizer: &Tokenizer,
) -> Result<Value, MetadataError> {
    let mut config = ends(metadata, tokenizer)?;
    let key = |name: &str| format!("general.sampling.{name}");
    let mut sampling = Map::new();
    if let Some(count) = metadata.opt_u32(&key("top_k"))? {
        sampling.insert("top_k".to_owned(), json!(count));
    }
    let fractions = [
        ("temperature", "temp"),
        ("top_p", "top_p"),
        ("min_p", "min_p"),
        ("repetition_penalty", "penalty_repeat"),
    ];
    for (name, stored) in fractions {
        if let Some(number) = metadata.opt_f32(&key(stored))? {
            sampling.insert(name.to_owned(), decimal(number));
        }
    }
    if !sampling.is_empty() {
        let is_greedy = sampling.get("temperature").and_then(Value::as_f64) == Some(0.0);
        config.insert("do_sample".to_owned(), json!(!is_greedy));
        config.extend(sampling);
    }
    Ok(Value::Object(config))
}

/// Ids that begin and end texts.
fn ends(metadata: &Metadata, tokenizer: &Tokenizer) -> Result<Map<String, Value>, MetadataError> {
    let mut ids = Map::new();
    if let Some(bos) = tokenizer.bos() {
        ids.insert("bos_token_id".to_owned(), json!(bos));
    }
    // The one that the file states stands first: programs that know only one take it.
    let stated = tokenizer.eos().filter(|id| tokenizer.is_end(*id));
    let others = tokenizer.eos_ids().filter(|id| Some(*id) != stated);
    let ends: Vec<u32> = stated.into_iter().chain(others).collect();
    if !ends.is_empty() {
        ids.insert("eos_token_id".to_owned(), json!(ends));
    }
    if let Some(pad) = metadata.opt_u32("tokenizer.ggml.padding_token_id")? {
        ids.insert("pad_token_id".to_owned(), json!(pad));
    }
    Ok(ids)
}

/// The number with as few digits as its 32 bits need.
fn decimal(number: f32) -> Value {
    number.to_string().parse::<f64>().map_or(Value::Null, |number| json!(number))
}
