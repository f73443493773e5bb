//! Metadata that no model can run with: refused when the model is opened, with the key named.

use std::path::Path;

use lapwing_kernels::model::{Model, ModelError};
use lapwing_kernels::weights::parse_header;

/// A tiny model in which the bytes at an offset after a text are replaced.
fn changed(model: &str, after: &str, offset: usize, with: &[u8]) -> Result<Model, ModelError> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny").join(model);
    let mut bytes = std::fs::read(path).expect("a model");
    let found = bytes.windows(after.len()).position(|window| window == after.as_bytes());
    let at = found.unwrap_or_else(|| panic!("{after} is not in {model}")) + after.len() + offset;
    bytes[at..at + with.len()].copy_from_slice(with);
    Model::from_header(&parse_header(&bytes).expect("a header"))
}

/// The value of an f32 follows its type, a u32.
fn with_f32(model: &str, key: &str, value: f32) -> Result<Model, ModelError> {
    changed(model, key, 4, &value.to_le_bytes())
}

#[track_caller]
fn assert_refused(model: Result<Model, ModelError>, key: &str, says: &str) {
    let error = model.expect_err("a wrong value");
    let ModelError::BadValue { key: named, .. } = &error else { panic!("{error}") };
    assert_eq!(named, key, "{error}");
    assert!(error.to_string().contains(says), "{error}");
}

#[test]
fn an_epsilon_or_a_rotary_base_that_no_op_can_use_is_refused() {
    let epsilon = "llama.attention.layer_norm_rms_epsilon";
    for value in [-1e-5, f32::NAN, f32::INFINITY] {
        assert_refused(with_f32("llama.gguf", epsilon, value), epsilon, "not negative");
    }
    let base = "llama.rope.freq_base";
    assert_refused(with_f32("llama.gguf", base, 0.0), base, "above 0");
    assert_refused(with_f32("llama.gguf", base, -1.0), base, "not negative");
    assert!(with_f32("llama.gguf", base, 500.0).is_ok());
}

#[test]
fn a_vocabulary_of_more_tokens_than_embeddings_is_refused() {
    let key = "token_embd.weight";
    let header = |rows: u64| changed("llama-tied.gguf", key, 4 + 8, &rows.to_le_bytes());
    let rows = header(1).err().map(|error| error.to_string()).expect("one row");
    assert!(rows.contains("has only 1 rows"), "{rows}");
    assert_refused(header(255), "tokenizer.ggml.tokens", "token_embd.weight");
}
