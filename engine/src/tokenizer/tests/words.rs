//! Word rules.

use super::super::words::{Spelling, WordRules, WordSplitter};
use super::*;

/// The words of a text under the rules `name`.
fn words<'t>(name: &str, text: &'t str) -> Vec<&'t str> {
    let splitter = WordSplitter::new(WordRules::named(name).unwrap()).unwrap();
    splitter.split(text).into_iter().map(|range| &text[range]).collect()
}

/// One name of each row of the table.
pub(super) fn rows() -> Vec<(String, &'static WordRules)> {
    let names = WordRules::named("no such rules").unwrap_err().to_string();
    let names = names.split("supported are: ").nth(1).unwrap();
    let mut rows: Vec<(String, &'static WordRules)> = Vec::new();
    for name in names.split(", ") {
        let rules = WordRules::named(name).unwrap();
        if !rows.iter().any(|row| std::ptr::eq(row.1, rules)) {
            rows.push((name.to_owned(), rules));
        }
    }
    rows
}

#[test]
fn words_are_split_by_the_named_rules() {
    let cut = |pre: &str, text: &str| {
        let tokenizer = Tokenizer::new(byte_pairs(pre)).unwrap();
        tokens(&tokenizer, text, Special::Plain)
    };
    assert_eq!(cut("gpt-2", "123"), ["123"]);
    assert_eq!(cut("smollm", "123"), ["1", "2", "3"]);
    assert_eq!(cut("deepseek-v3", "1231"), ["123", "1"]);
    assert_eq!(cut("gpt-2", "  hello"), ["Ġ", "Ġhello"]);
}

#[test]
fn every_row_compiles_and_covers_the_text() {
    let text = "I'll  pay\t1234 €\u{3000}für 日本語!\r\n\n \u{85}x  ";
    let rows = rows();
    assert!(rows.len() >= 30, "{} rows", rows.len());
    for (name, rules) in rows {
        assert_eq!(words(&name, text).concat(), text, "{name}");
        if rules.spelling == Spelling::Bytes {
            let tokenizer = Tokenizer::new(byte_pairs(&name)).unwrap();
            let ids = tokenizer.encode(text, Special::Plain, false);
            assert_eq!(tokenizer.decode(&ids), text, "{name}");
        }
    }
}

/// Anything quadratic takes minutes.
#[test]
fn every_row_splits_long_runs_in_near_linear_time() {
    let runs =
        ["a", "A", "aA", " ", "\n", " \n", "1", "1a", "1 ", "a ", "!", "'s", "é", "中", "\u{301}"];
    for (name, rules) in rows() {
        let splitter = WordSplitter::new(rules).unwrap();
        for run in runs {
            let text = format!("{}x", run.repeat(20_000));
            let ranges = splitter.split(&text);
            assert_eq!(ranges.last().map(|range| range.end), Some(text.len()), "{name} {run:?}");
        }
    }
}

#[test]
fn the_last_space_before_a_word_stays_with_the_others() {
    assert_eq!(words("gpt-2", "a   b"), ["a", "  ", " b"]);
    assert_eq!(words("gpt-2", "a \n\u{3000}b"), ["a", " \n", "\u{3000}", "b"]);
    assert_eq!(words("gpt-2", "a   "), ["a", "   "]);
    assert_eq!(words("gpt-2", "a \t"), ["a", " \t"]);
}

#[test]
fn white_space_is_cut_into_powers_of_two() {
    let lengths =
        |text: &str| -> Vec<usize> { words("jais-2", text).iter().map(|w| w.len()).collect() };
    assert_eq!(lengths(&" ".repeat(1000)), [512, 256, 128, 64, 32, 8]);
    assert_eq!(lengths(&format!("{}b", " ".repeat(8))), [4, 2, 1, 2]);
    assert_eq!(lengths("  1"), [1, 1, 1]);
    assert_eq!(words("jais-2", "a  \n\n   "), ["a", "  \n\n", "  ", " "]);
}

/// U+A7CB is a letter since Unicode 16.
#[test]
fn letters_newer_than_unicode_15_1_split_words() {
    assert_eq!(words("deepseek-v3", " a\u{A7CB}b"), [" a", "\u{A7CB}b"]);
    assert_eq!(words("deepseek-v3", " a\u{A7CA}b").len(), 1);
}

#[test]
fn capitals_start_a_word_behind_small_letters_in_every_alphabet() {
    for name in ["gpt-4o", "tekken", "youtu", "kimi-k2", "tiny_aya", "granite-embed-multi-97m"] {
        assert_eq!(words(name, "camelCase HTTPServer"), ["camel", "Case", " HTTPServer"], "{name}");
        assert_eq!(words(name, "écoleÉcole"), ["école", "École"], "{name}");
        assert_eq!(words(name, "ПРИВЕТпривет"), ["ПРИВЕТпривет"], "{name}");
        assert_eq!(words(name, "नमस्ते"), ["नमस्ते"], "{name}");
    }
    assert_eq!(words("gpt-4o", "Don't IT'S"), ["Don't", " IT'S"]);
    assert_eq!(words("tekken", "Don't"), ["Don", "'t"]);
}

#[test]
fn digits_are_grouped_as_each_rule_says() {
    assert_eq!(words("gpt-4o", "1234567"), ["123", "456", "7"]);
    assert_eq!(words("tekken", "123"), ["1", "2", "3"]);
    for name in ["tiny_aya", "superbpe", "afmoe"] {
        assert_eq!(words(name, "1234567"), ["1", "234", "567"], "{name}");
        assert_eq!(words(name, "123456"), ["123", "456"], "{name}");
        assert_eq!(words(name, "१२३४"), ["१", "२३४"], "{name}");
    }
    // Before a letter they are no number.
    assert_eq!(words("tiny_aya", "1234x 1234"), ["123", "4", "x", " ", "1", "234"]);
    assert_eq!(words("afmoe", "1234x"), ["1", "234", "x"]);
}

#[test]
fn scripts_without_spaces_are_words_of_their_own() {
    assert_eq!(words("kimi-k2", "中文English混合かな"), ["中文", "English", "混合", "かな"]);
    assert_eq!(words("youtu", "한국어，中文"), ["한국어", "，", "中文"]);
    assert_eq!(
        words("afmoe", "a\u{E40}\u{F900}b\u{E000}"),
        ["a", "\u{E40}\u{F900}", "b", "\u{E000}"]
    );
    assert_eq!(words("deepseek-v3", "a中b"), ["a", "中", "b"]);
}

#[test]
fn the_other_rules_split_as_their_tokenizers_do() {
    assert_eq!(words("exaone-moe", "a b c 1/\n"), ["a b c", " ", "1", "/\n"]);
    assert_eq!(words("laguna", "a\n\n b"), ["a", "\n\n", " b"]);
    assert_eq!(words("spark2_5", "!a ?!\n\n1234"), ["!a", " ?!", "\n", "\n", "1", "2", "3", "4"]);
    assert_eq!(
        words("chameleon", "<sentinel:12>IMGIMGABZ    x!"),
        ["<", "sentinel", ":", "1", "2", ">", "IMGIMGABZ", "    ", "x", "!"]
    );
    assert_eq!(words("mmbert", "▁▁a▁b\n\nc"), ["▁", "▁a", "▁b", "\n\n", "c"]);
}
