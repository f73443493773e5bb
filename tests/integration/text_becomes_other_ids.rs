//! Tokenizers compared with llama.cpp's ids of awkward strings, for every vocabulary.

use std::path::PathBuf;
use std::sync::LazyLock;

use lapwing::tokenizer::{Special, Tokenizer};
use lapwing_kernels::weights::WeightFile;
use serde_json::Value;

use crate::support::{GEMMA3, SMOLLM2, ids, model, needs, reference, vocabularies};

const VOCABULARIES: [&str; 15] = [
    "llama-bpe",
    "llama-spm",
    "qwen2",
    "phi-3",
    "gpt-2",
    "deepseek-llm",
    "deepseek-coder",
    "starcoder",
    "refact",
    "command-r",
    "falcon",
    "mpt",
    "qwen35",
    "baichuan",
    "gpt-neox",
];

fn tokenizer(path: PathBuf) -> Tokenizer {
    let file = WeightFile::open(&path).unwrap_or_else(|e| panic!("{e}"));
    Tokenizer::from_metadata(file.metadata()).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The vocabularies of two models and [`VOCABULARIES`]. Reading one takes longer than a test of it.
static ALL: LazyLock<Vec<(String, Tokenizer)>> = LazyLock::new(|| {
    let models = [("smollm2", SMOLLM2), ("gemma3", GEMMA3)];
    let models = models.map(|(name, id)| (name.to_owned(), tokenizer(model(id))));
    let others = vocabularies(&VOCABULARIES);
    let others = others.into_iter().map(|(name, path)| (name.to_owned(), tokenizer(path)));
    models.into_iter().chain(others).collect()
});

#[test]
fn every_string_gives_llama_cpps_ids() {
    needs!(SMOLLM2, GEMMA3);
    let strings = reference("tokenizer/strings.json");
    let strings: Vec<&str> =
        strings.as_array().expect("strings").iter().map(|s| s.as_str().expect("text")).collect();
    assert!(strings.len() >= 200);
    let mut failures = Vec::new();
    for (name, tokenizer) in ALL.iter() {
        let wanted = reference(&format!("tokenizer/{name}.json"));
        let rows = wanted["ids"].as_array().expect("rows");
        assert_eq!(rows.len(), strings.len(), "{name}");
        for (string, row) in strings.iter().zip(rows) {
            for (special, key) in [(Special::Parse, "special"), (Special::Plain, "plain")] {
                let found = tokenizer.encode(string, special, true);
                let wanted = ids(&row[key]);
                if found != wanted {
                    failures.push(format!("{name} {key} {string:?}: {found:?} for {wanted:?}"));
                }
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} differ: {:#?}",
        failures.len(),
        &failures[..failures.len().min(10)]
    );
}

#[test]
fn text_survives_decoding_and_is_never_split_inside_a_character() {
    needs!(SMOLLM2, GEMMA3);
    let strings = reference("tokenizer/strings.json");
    for (name, tokenizer) in ALL.iter() {
        for string in strings.as_array().expect("strings").iter().filter_map(Value::as_str) {
            let ids = tokenizer.encode(string, Special::Plain, false);
            let mut detokenizer = tokenizer.detokenizer(&[]);
            let mut text: String = ids.iter().map(|id| detokenizer.push(*id)).collect();
            text.push_str(&detokenizer.finish());
            assert_eq!(text, tokenizer.decode(&ids), "{name} {string:?}");
            // Only vocabularies with tokens for all bytes keep every character.
            let lossless = ["smollm2", "llama-bpe", "qwen2", "gpt-2"].contains(&name.as_str());
            if lossless && !ids.iter().any(|id| tokenizer.is_control(*id)) {
                assert_eq!(text, *string, "{name}");
            }
        }
    }
}

#[test]
fn pieces_are_llama_cpps_bytes() {
    needs!(SMOLLM2, GEMMA3);
    // Command-R has a token without bytes; llama.cpp prints an error text for it.
    for (name, tokenizer) in ALL.iter().filter(|(name, _)| name != "command-r") {
        let wanted = reference(&format!("tokenizer/pieces/{name}.json"));
        for pair in wanted["pieces"].as_array().expect("pieces") {
            let id = pair[0].as_u64().expect("an id") as u32;
            let hex: String = tokenizer
                .token_bytes(id)
                .unwrap_or_else(|| panic!("{name}: no token {id}"))
                .iter()
                .map(|b| format!("{b:02x}"))
                .collect();
            assert_eq!(hex, pair[1].as_str().expect("hex"), "{name}: token {id}");
        }
    }
}
