//! Vocabularies as `tokenizer.json`, read by the library itself.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use lapwing_kernels::weights::WeightFile;
use serde_json::{Value, json};

use super::super::words::Spelling;
use super::*;

/// Texts on which rules differ.
fn texts() -> Vec<String> {
    let runs = (1..20).flat_map(|count| {
        [" ", "\n", "1", "a", "ab", "9a", "A", " \n"].map(|run| run.repeat(count))
    });
    let others = [
        "",
        "I'm IT'S we'LL",
        "Hello, World!  x\n\n y \n",
        "a1b22 333 4444 55555 666666 7777777",
        "1,234.5 ①Ⅷ ½",
        "٣٤٥٦٧ 12٣",
        "camelCase PascalCaseXY ÉCOLE éa İı ǅa",
        "日本語のテキスト。한국어 ไทย",
        "e\u{301}\u{300} क्षत्रिय",
        "👩🏿‍🚀 🇫🇷",
        "\u{a0}x\u{3000}y\u{85}z\u{2028}",
        "\t\tif (x) {\r\n\r\n}\r",
        "!?… --- ==> 'quoted' “c”",
        "IMGIMGABZ <sentinel:12>",
        "a \u{301}b",
        "1st 2nd 1234567th 12a",
        "x\u{200d}1\u{200d}2",
        "▁ ▁▁ a▁b",
        "ĠaĊ",
        "aab bab abab baab ab ab  ab",
        "[USER]hello<|im_end|> <|im_start|>",
        "<s>ab</s>a<unk>",
        "\u{0}\u{1}\u{7f}",
        "(a)\n(b)\n",
        "a\n b\n\n  c",
        "ﬁ",
        "E\u{301}e\u{301}",
        "$x$ +y <z> ^~|`",
        "http://a.b/c?d=e",
        "1 000 000",
        "a.\n.b",
        " ,x ،y",
        "ΑΒΓ αβγ",
        "ab12cd345ef6789",
    ];
    runs.chain(others.map(str::to_owned)).collect()
}

/// The library's tokenizer.
fn library(vocabulary: &Vocabulary) -> tokenizers::Tokenizer {
    let tokenizer = Tokenizer::new(vocabulary.clone()).unwrap();
    let bytes = tokenizer.to_json(vocabulary).unwrap().bytes;
    tokenizers::Tokenizer::from_str(&String::from_utf8(bytes).unwrap()).unwrap()
}

/// Checks that both give the same ids, with and without ends.
fn same(vocabulary: &Vocabulary, texts: &[String], what: &str) {
    let (tokenizer, library) = (Tokenizer::new(vocabulary.clone()).unwrap(), library(vocabulary));
    for text in texts {
        for ends in [true, false] {
            let found = library.encode(text.as_str(), ends).unwrap();
            assert_eq!(
                found.get_ids(),
                tokenizer.encode(text, Special::Parse, ends),
                "{what}: {text:?}"
            );
        }
    }
}

fn parsed(vocabulary: &Vocabulary) -> Value {
    let tokenizer = Tokenizer::new(vocabulary.clone()).unwrap();
    serde_json::from_slice(&tokenizer.to_json(vocabulary).unwrap().bytes).unwrap()
}

fn refused(vocabulary: &Vocabulary) -> String {
    Tokenizer::new(vocabulary.clone()).unwrap().to_json(vocabulary).err().unwrap().to_string()
}

/// Byte-level BPE in which any two bytes of the texts are a token, so that ids tell where words begin.
fn all_pairs(pre: &str, texts: &[String]) -> Vocabulary {
    let mut vocabulary = byte_pairs(pre);
    let bytes: std::collections::BTreeSet<u8> =
        texts.iter().flat_map(|text| text.bytes()).collect();
    for (first, second) in
        bytes.iter().flat_map(|first| bytes.iter().map(move |second| (*first, *second)))
    {
        let (first, second) = (byte_alphabet::char_of(first), byte_alphabet::char_of(second));
        let joined = format!("{first}{second}");
        if !vocabulary.tokens.contains(&joined) {
            vocabulary.merges.push(format!("{first} {second}"));
            vocabulary.tokens.push(joined);
            vocabulary.kinds.push(TokenKind::Normal);
        }
    }
    vocabulary
}

/// The folder of llama.cpp's vocabularies, as in the tests of the repository.
fn vocabularies() -> PathBuf {
    let folder = std::env::var_os("LAPWING_TEST_WORK").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/llama.cpp-sources"),
        PathBuf::from,
    );
    folder.join("llama.cpp/models")
}

#[test]
#[ignore = "long: sh tests/all.sh runs it"]
fn real_vocabularies_give_the_same_ids() {
    let folder = vocabularies();
    if !folder.exists() {
        assert!(std::env::var_os("LAPWING_TEST").is_none(), "{}", folder.display());
        eprintln!("skipped: llama.cpp's vocabularies are missing; sh tests/all.sh fetches them");
        return;
    }
    let strings =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tokenizer/strings.json");
    let strings = std::fs::read(strings).expect("strings");
    let strings: Vec<String> = serde_json::from_slice(&strings).expect("strings");
    let names = [
        "aquila",
        "baichuan",
        "bert-bge",
        "command-r",
        "deepseek-coder",
        "deepseek-llm",
        "falcon",
        "gemma-4",
        "gpt-2",
        "gpt-neox",
        "llama-bpe",
        "llama-spm",
        "mpt",
        "phi-3",
        "qwen2",
        "qwen35",
        "refact",
        "starcoder",
    ];
    for name in names {
        let file = WeightFile::open(&folder.join(format!("ggml-vocab-{name}.gguf"))).expect(name);
        same(&Vocabulary::from_metadata(file.metadata()).expect(name), &strings, name);
    }
    let refused_file =
        WeightFile::open(&folder.join("ggml-vocab-nomic-bert-moe.gguf")).expect("a file");
    let error = refused(&Vocabulary::from_metadata(refused_file.metadata()).expect("a vocabulary"));
    assert!(error.contains("map of characters"), "{error}");
}

#[test]
fn every_row_of_word_rules_gives_the_same_ids() {
    let texts = texts();
    let mut bytes = all_pairs("default", &texts);
    for (name, rules) in words::rows() {
        if rules.spelling == Spelling::Bytes {
            bytes.pre = Some(name.clone());
            same(&bytes, &texts, &name);
        } else {
            // Rules that take words of line feeds whole need a merge for each of these.
            let mut vocabulary = ranked_pieces::ranked("gpt2", &name);
            vocabulary.merges.push("\n\n \n".into());
            same(&vocabulary, &texts, &name);
        }
    }
}

#[test]
fn pieces_with_scores_become_merges() {
    for add_space_prefix in [true, false] {
        let vocabulary = Vocabulary { add_space_prefix: Some(add_space_prefix), ..pieces() };
        same(&vocabulary, &texts(), "llama");
    }
    let file = parsed(&pieces());
    assert_eq!(file["model"]["type"], "BPE");
    assert_eq!(file["model"]["byte_fallback"], true);
    assert_eq!(file["model"]["merges"][0], json!(["ba", "b"]));
    assert_eq!(file["model"]["merges"][1], json!(["b", "ab"]));
    assert_eq!(file["normalizer"]["normalizers"][0], json!({"type": "Prepend", "prepend": "▁"}));
    assert_eq!(file["post_processor"]["single"][0]["SpecialToken"]["id"], "<s>");
    let unk = &file["added_tokens"][0];
    assert_eq!(
        (&unk["content"], &unk["special"], &unk["normalized"]),
        (&json!("<unk>"), &json!(true), &json!(false))
    );
}

#[test]
fn runs_of_one_score_join_from_the_left() {
    for lengths in [vec![2, 3, 4, 5, 6, 7, 8], vec![2, 4, 8], vec![2, 3], vec![2, 3, 6]] {
        let mut vocabulary = pieces();
        for length in lengths {
            for run in ["▁", "a"] {
                let text = run.repeat(length);
                if !vocabulary.tokens.contains(&text) {
                    vocabulary.tokens.push(text);
                    vocabulary.kinds.push(TokenKind::Normal);
                    vocabulary.scores.push(-100.0);
                }
            }
        }
        same(&vocabulary, &texts(), "runs");
    }
}

#[test]
fn unigram_and_word_pieces_give_the_same_ids() {
    let rows = [(Some(true), Some(true)), (Some(true), None), (None, None), (None, Some(true))];
    for (add_space_prefix, remove_extra_whitespaces) in rows {
        let vocabulary =
            Vocabulary { add_space_prefix, remove_extra_whitespaces, ..unigram::vocabulary() };
        same(&vocabulary, &texts(), "t5");
    }
    for lowercase in [Some(true), Some(false)] {
        same(&Vocabulary { lowercase, ..word_pieces::word_pieces() }, &texts(), "bert");
    }
    let file = parsed(&word_pieces::word_pieces());
    assert_eq!(file["model"]["vocab"]["##able"], 9);
    assert_eq!(file["post_processor"]["single"][2]["SpecialToken"]["id"], "[SEP]");
}

#[test]
fn missing_bytes_part_words() {
    let mut vocabulary = byte_pairs("gpt-2");
    for char in ["o", "Ċ", "Ã", "]", "\\"] {
        let at = vocabulary.tokens.iter().position(|token| token == char).unwrap();
        vocabulary.tokens[at] = format!("[gone {at}]");
    }
    same(&vocabulary, &texts(), "missing bytes");
}

#[test]
fn what_the_library_cannot_compute_is_refused_by_name() {
    let without_byte = |byte: &str| {
        let mut vocabulary = pieces();
        let at = vocabulary.tokens.iter().position(|token| token == byte).unwrap();
        vocabulary.tokens[at] = "gone".into();
        vocabulary
    };
    let with = |texts: &[(&str, f32)], kind| {
        let mut vocabulary = pieces();
        for (text, score) in texts {
            vocabulary.tokens.push((*text).into());
            vocabulary.kinds.push(kind);
            vocabulary.scores.push(*score);
        }
        vocabulary
    };
    let mut tied = pieces();
    let at = tied.tokens.iter().position(|token| token == "ba").unwrap();
    tied.scores[at] = -1.0;
    let mut respelled = word_pieces::word_pieces();
    respelled.tokens.push("##able".into());
    respelled.kinds.push(TokenKind::Unused);
    let none =
        Vocabulary { model: "none".into(), tokens: vec!["0".into()], ..Vocabulary::default() };
    let rows: [(Vocabulary, &[&str]); 8] = [
        (none, &["no tokenizer"]),
        (without_byte("<0x41>"), &["byte 0x41"]),
        (with(&[("zé", -1.0)], TokenKind::Normal), &["`zé`", "joined from `z`"]),
        (tied, &["`ab`", "`ba`", "same score"]),
        (
            with(&[("<x", 0.0), ("x>y>", 0.0)], TokenKind::UserDefined),
            &["`<x`", "`x>y>`", "overlap"],
        ),
        (ranked_pieces::ranked("gemma4", ""), &["3 line feeds"]),
        (
            Vocabulary { char_map: unigram::char_map(&[("ﬁ", "fi")]), ..unigram::vocabulary() },
            &["map of characters"],
        ),
        (respelled, &["`##able`", "9 and 36"]),
    ];
    for (vocabulary, parts) in rows {
        let error = refused(&vocabulary);
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
}
