//! BPE by ranks on pieces.

use super::*;

/// Pieces with merges in which the rank of a pair, not its text, decides.
pub(super) fn ranked(model: &str, pre: &str) -> Vocabulary {
    let mut vocabulary = Vocabulary {
        model: model.into(),
        pre: Some(pre.into()),
        merges: ["b c", "▁ a", "a b", "▁a b", "\n \n", "a a", "aa aa"].map(String::from).to_vec(),
        ..Vocabulary::default()
    };
    let mut add = |text: &str, kind| {
        vocabulary.tokens.push(text.into());
        vocabulary.kinds.push(kind);
    };
    add("<bos>", TokenKind::Control);
    for byte in 0..=255 {
        add(&format!("<0x{byte:02X}>"), TokenKind::Byte);
    }
    for text in ["▁", "a", "b", "c", "bc", "▁a", "ab", "▁ab", "aa", "aaaa", "\n", "\n\n", "\n\n\n"]
    {
        add(text, TokenKind::Normal);
    }
    vocabulary.roles.bos = Some(0);
    vocabulary
}

fn plain(vocabulary: Vocabulary, text: &str) -> Vec<String> {
    let tokenizer = Tokenizer::new(vocabulary).unwrap();
    let ids = tokenizer.encode(text, Special::Plain, false);
    assert_eq!(tokenizer.decode(&ids).trim_start(), text.trim_start());
    texts(&tokenizer, &ids)
}

#[test]
fn pieces_join_by_the_rank_of_their_merge() {
    let gemma = || ranked("gemma4", "default");
    assert_eq!(plain(gemma(), "abc"), ["a", "bc"]);
    assert_eq!(plain(gemma(), "ab ab"), ["ab", "▁ab"]);
    // Of equal ranks the left one is first.
    assert_eq!(plain(gemma(), "aaaaa"), ["aaaa", "a"]);
}

#[test]
fn text_without_a_piece_becomes_bytes_again() {
    assert_eq!(plain(ranked("gemma4", ""), "aé"), ["a", "<0xC3>", "<0xA9>"]);
    assert_eq!(plain(ranked("gemma4", ""), "\t"), ["<0x09>"]);
}

#[test]
fn line_feeds_are_taken_whole_where_the_rules_say_so() {
    assert_eq!(plain(ranked("gemma4", ""), "a\n\n\nb"), ["a", "\n\n\n", "b"]);
    assert_eq!(plain(ranked("gpt2", "mmbert"), "a\n\n\n"), ["▁a", "\n\n\n"]);
    assert_eq!(plain(ranked("gpt2", "sarvam-moe"), "a\n\n\nb"), ["a", "\n\n", "\n", "b"]);
}

#[test]
fn lines_start_with_a_space_where_the_rules_say_so() {
    assert_eq!(plain(ranked("gpt2", "mmbert"), "ab\n ab"), ["▁ab", "\n", "▁ab"]);
    assert_eq!(plain(ranked("gpt2", "gemma4"), "ab\n ab"), ["ab", "\n", "▁ab"]);
}

#[test]
fn the_begin_token_is_added_also_if_the_file_denies_it() {
    let tokenizer = |pre: &str| {
        let vocabulary = Vocabulary { add_bos: Some(false), ..ranked("gpt2", pre) };
        Tokenizer::new(vocabulary).unwrap()
    };
    assert!(tokenizer("gemma4").adds_bos());
    assert!(!tokenizer("sarvam-moe").adds_bos());
    let none = Vocabulary { merges: Vec::new(), ..ranked("gemma4", "") };
    assert!(matches!(Tokenizer::new(none).unwrap_err(), TokenizerError::NoMerges));
}

/// Anything quadratic takes minutes.
#[test]
fn a_long_line_takes_near_linear_time() {
    for pre in ["gemma4", "mmbert"] {
        let tokenizer = Tokenizer::new(ranked("gpt2", pre)).unwrap();
        for run in ["a", "ab", " ", "\n", "é"] {
            let text = run.repeat(100_000);
            let ids = tokenizer.encode(&text, Special::Plain, false);
            assert!(tokenizer.tokens_at_least(&text) <= ids.len(), "{pre} {run:?}");
            assert!(ids.len() <= text.len() + 1, "{pre} {run:?}");
        }
    }
}
