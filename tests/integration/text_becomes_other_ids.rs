//! Tokenizers compared with llama.cpp's ids of awkward strings, for every vocabulary.

use std::path::PathBuf;
use std::sync::LazyLock;

use lapwing::tokenizer::{Special, Tokenizer, Vocabulary};
use lapwing_kernels::weights::WeightFile;
use serde_json::Value;

use crate::support::{GEMMA3, SMOLLM2, ids, model, needs, reference, vocabularies};

const VOCABULARIES: [&str; 17] = [
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
    "gemma-4",
    "nomic-bert-moe",
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

/// Ids of strings under one of the word rules, and the vocabulary, as in `tests/reference/word_rules.py`.
struct Rules<'a> {
    vocabulary: &'a Vocabulary,
    /// The ids of each string that `group` does not name.
    others: Vec<Vec<u32>>,
    group: &'a Value,
}

impl Rules<'_> {
    /// The differences from llama.cpp under the rules `name`.
    fn failures(&self, name: &str, strings: &[&str]) -> Vec<String> {
        let (model, pre) = ("gpt2".to_owned(), Some(name.to_owned()));
        let vocabulary = Vocabulary { model, pre, ..self.vocabulary.clone() };
        let tokenizer = Tokenizer::new(vocabulary).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(self.group["add_bos"], tokenizer.adds_bos(), "{name}");
        let left_out = ids(&self.group["left_out"]);
        let mut failures = Vec::new();
        for (index, string) in strings.iter().enumerate() {
            let differs = self.group["differ"].get(index.to_string()).map(ids);
            let wanted = differs.as_ref().unwrap_or(&self.others[index]);
            let found = tokenizer.encode(string, Special::Plain, false);
            if found != *wanted && !left_out.contains(&(index as u32)) {
                failures.push(format!("{name} {string:?}: {found:?} for {wanted:?}"));
            }
        }
        failures
    }
}

fn vocabulary(path: PathBuf) -> Vocabulary {
    let file = WeightFile::open(&path).unwrap_or_else(|e| panic!("{e}"));
    Vocabulary::from_metadata(file.metadata()).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn every_word_rule_gives_llama_cpps_ids() {
    let files = vocabularies(&["llama-bpe", "gemma-4"]);
    let files: Vec<Vocabulary> = files.into_iter().map(|(_, path)| vocabulary(path)).collect();
    let [bytes, pieces] = &files[..] else { return };
    let all = reference("tokenizer/word_rules.json");
    let length = |key: &str| all[key].as_u64().expect("a length") as usize;
    let mut bytes = bytes.clone();
    bytes.tokens.truncate(length("tokens"));
    bytes.merges.truncate(length("merges"));
    let strings = reference("tokenizer/strings.json");
    let strings: Vec<&str> =
        strings.as_array().expect("strings").iter().map(|s| s.as_str().expect("text")).collect();
    let of_pieces = reference("tokenizer/gemma-4.json");
    let of_pieces = of_pieces["ids"].as_array().expect("rows").iter();
    let of_pieces: Vec<Vec<u32>> = of_pieces.map(|row| ids(&row["plain"])[1..].to_vec()).collect();
    let of_bytes = all["default"].as_array().expect("rows").iter();
    let of_bytes: Vec<Vec<u32>> = of_bytes.map(ids).collect();
    let (mut names, mut failures) = (0, Vec::new());
    for group in all["rules"].as_array().expect("rules") {
        let rules = match group["pieces"] == true {
            true => Rules { vocabulary: pieces, others: of_pieces.clone(), group },
            false => Rules { vocabulary: &bytes, others: of_bytes.clone(), group },
        };
        for name in group["names"].as_array().expect("names").iter().filter_map(Value::as_str) {
            failures.extend(rules.failures(name, &strings));
            names += 1;
        }
    }
    let first = &failures[..failures.len().min(10)];
    assert!(failures.is_empty(), "{} differ: {first:#?}", failures.len());
    assert!(names >= 90, "{names} names");
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
