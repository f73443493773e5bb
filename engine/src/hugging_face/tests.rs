//! Folders of small files. Ids of real vocabularies are compared in the repository's `tests/hugging_face`.

use std::path::Path;

use lapwing_kernels::weights::{GgufWriter, WeightFile};
use serde_json::json;

use super::*;

/// A file with the metadata of a small model, and more.
fn file(folder: &Path, more: impl FnOnce(&mut GgufWriter)) -> WeightFile {
    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny/llama.gguf");
    let tiny = WeightFile::open(&tiny).expect("a model");
    let mut writer = GgufWriter::new();
    for (key, value) in tiny.metadata().iter() {
        writer.meta_of(key, value);
    }
    more(&mut writer);
    let (path, mut bytes) = (folder.join("model.gguf"), Vec::new());
    writer.write_to(&mut bytes).expect("written");
    fs::write(&path, bytes).expect("written");
    WeightFile::open(&path).expect("a file")
}

fn parsed(folder: &HfFolder, name: &str) -> Value {
    let file = folder.files().iter().find(|file| file.name == name).expect(name);
    serde_json::from_slice(&file.bytes).expect("JSON")
}

#[test]
fn the_files_say_what_the_model_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = file(folder.path(), |writer| {
        writer
            .meta("general.sampling.temp", 0.7f32)
            .meta("general.sampling.top_k", 40)
            .meta("general.sampling.penalty_repeat", 1.1f32);
    });
    let exported = HfFolder::new(file.metadata()).expect("a folder");
    let config = parsed(&exported, "config.json");
    assert_eq!(config["architectures"], json!(["LlamaForCausalLM"]));
    assert_eq!((&config["model_type"], &config["vocab_size"]), (&json!("llama"), &json!(288)));
    assert_eq!(
        (&config["max_position_embeddings"], &config["eos_token_id"]),
        (&json!(256), &json!(2))
    );
    let generation = parsed(&exported, "generation_config.json");
    let wanted = json!({
        "bos_token_id": 1, "eos_token_id": [2], "do_sample": true, "top_k": 40, "temperature": 0.7, "repetition_penalty": 1.1,
    });
    assert_eq!(generation, wanted);
    let tokenizer = parsed(&exported, "tokenizer_config.json");
    assert_eq!(tokenizer["added_tokens_decoder"]["1"]["content"], "<s>");
    assert_eq!(parsed(&exported, "special_tokens_map.json")["bos_token"], "<s>");
    assert!(tokenizer.get("chat_template").is_none());
    assert!(exported.template_fault().expect("a fault").contains("no chat template"));
}

#[test]
fn templates_make_whole_prompts() {
    let folder = tempfile::tempdir().expect("a folder");
    let template = |text: &str, more: &[(&str, &str)]| {
        let file = file(folder.path(), |writer| {
            writer.meta("tokenizer.chat_template", text);
            for (name, text) in more {
                writer.meta(&format!("tokenizer.chat_template.{name}"), *text);
            }
        });
        let exported = HfFolder::new(file.metadata()).expect("a folder");
        assert_eq!(exported.template_fault(), None);
        parsed(&exported, "tokenizer_config.json")["chat_template"].clone()
    };
    // Encoding adds a begin token to a prompt that has none.
    let own = "{{ bos_token }}{{ messages[0].content }}";
    assert_eq!(template(own, &[]), own);
    let without = "{{ messages[0].content }}";
    assert_eq!(template(without, &[]), r#"{{ "<s>" }}{{ messages[0].content }}"#);
    let named = template(own, &[("tool_use", own), ("rerank", "x")]);
    let row = |name: &str| json!({"name": name, "template": own});
    assert_eq!(named, json!([row("default"), row("tool_use")]));
}

#[test]
fn files_that_exist_stay_unless_they_are_to_be_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = file(folder.path(), |_| {});
    let exported = HfFolder::new(file.metadata()).expect("a folder");
    let into = folder.path().join("new");
    exported.write(&into, Existing::Keep).expect("written");
    fs::write(into.join("config.json"), "mine").expect("written");
    fs::write(into.join("other"), "mine").expect("written");
    fs::remove_file(into.join("tokenizer.json")).expect("removed");
    let error = exported.write(&into, Existing::Keep).expect_err("a file exists").to_string();
    assert!(error.contains("tokenizer_config.json exists"), "{error}");
    assert!(!into.join("tokenizer.json").exists());
    exported.write(&into, Existing::Replace).expect("written");
    assert_ne!(fs::read_to_string(into.join("config.json")).expect("a file"), "mine");
    assert_eq!(fs::read_to_string(into.join("other")).expect("a file"), "mine");
    let nowhere = exported.write(&folder.path().join("a/b"), Existing::Keep);
    assert!(matches!(nowhere, Err(HfError::Write { .. })));
    let file = exported.write(&into.join("other"), Existing::Replace).expect_err("a file");
    assert!(file.to_string().contains("other"), "{file}");
}

#[test]
fn unknown_architectures_are_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bytes = Vec::new();
    GgufWriter::new()
        .meta("general.architecture", "mamba9")
        .meta("tokenizer.ggml.model", "bert")
        .meta("tokenizer.ggml.tokens", ["[UNK]", "[CLS]", "[SEP]"].map(String::from).to_vec())
        .meta("tokenizer.ggml.unknown_token_id", 0u32)
        .write_to(&mut bytes)
        .expect("written");
    let path = folder.path().join("model.gguf");
    fs::write(&path, bytes).expect("written");
    let file = WeightFile::open(&path).expect("a file");
    let error = HfFolder::new(file.metadata()).expect_err("unknown").to_string();
    assert!(error.contains("'mamba9'"), "{error}");
}
