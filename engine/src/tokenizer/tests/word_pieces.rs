//! WordPiece. The wanted ids are those of the Python package `tokenizers` 0.23.3, made of a
//! `BertNormalizer`, a `BertPreTokenizer` and a `WordPiece` model with the same vocabulary.

use super::*;

/// A vocabulary of BERT, as in weight files: U+2581 before tokens that begin a word.
pub(super) fn word_pieces() -> Vocabulary {
    let tokens = "[PAD] [UNK] [CLS] [SEP] [MASK] ▁the ▁boat ▁un aff able s ing ▁cafe ▁a b ▁, ▁! ▁' ▁- ▁中 ▁文 \
                  ▁ss ▁x x ▁é ▁É ▁Boat ▁^ ▁$ ▁ı ı ▁i ▁1 2 ▁😀 中";
    let tokens: Vec<String> = tokens.split_whitespace().map(str::to_owned).collect();
    let kind = |text: &String| match text.starts_with('[') {
        true => TokenKind::Control,
        false => TokenKind::Normal,
    };
    let kinds = tokens.iter().map(kind).collect();
    Vocabulary { model: "bert".into(), tokens, kinds, ..Vocabulary::default() }
}

#[test]
fn ids_equal_those_of_the_reference() {
    let long = ("x".repeat(100), "x".repeat(101));
    let long_ids = [&[22][..], &[23; 99]].concat();
    let cases: [(&str, &[u32], &[u32]); 19] = [
        ("The boats", &[5, 6, 10], &[1, 6, 10]),
        ("unaffable!", &[7, 8, 9, 16], &[7, 8, 9, 16]),
        ("café CAFÉ cafe\u{301}", &[12, 12, 12], &[1, 1, 1]),
        ("boat,boat-the 'a'", &[6, 15, 6, 18, 5, 17, 13, 17], &[6, 15, 6, 18, 5, 17, 13, 17]),
        ("中文boat", &[19, 20, 6], &[19, 20, 6]),
        ("boat中", &[6, 19], &[6, 19]),
        ("xxxx", &[22, 23, 23, 23], &[22, 23, 23, 23]),
        (&long.0, &long_ids, &long_ids),
        (&long.1, &[1], &[1]),
        ("the zzz boat", &[5, 1, 6], &[5, 1, 6]),
        ("the\u{a0}boat\u{200b}\u{7}s", &[5, 6, 10], &[5, 6, 10]),
        ("[CLS] the [SEP]", &[1, 1, 1, 5, 1, 1, 1], &[1, 1, 1, 5, 1, 1, 1]),
        ("😀", &[34], &[34]),
        ("", &[], &[]),
        ("  \t\n", &[], &[]),
        ("12 1 2", &[32, 33, 32, 1], &[32, 33, 32, 1]),
        ("ab aab", &[13, 14, 1], &[13, 14, 1]),
        ("\u{fffd}the", &[5], &[5]),
        ("$^,boat\u{3000}the", &[28, 27, 15, 6, 5], &[28, 27, 15, 6, 5]),
    ];
    let lower = Tokenizer::new(word_pieces()).unwrap();
    let cased = Vocabulary { lowercase: Some(false), ..word_pieces() };
    let cased = Tokenizer::new(cased).unwrap();
    for (text, in_lower_case, as_written) in cases {
        assert_eq!(lower.encode(text, Special::Plain, false), in_lower_case, "{text:?}");
        assert_eq!(cased.encode(text, Special::Plain, false), as_written, "{text:?}");
        let ends = [&[2][..], in_lower_case, &[3]].concat();
        assert_eq!(lower.encode(text, Special::Plain, true), ends, "{text:?}");
        assert!(lower.tokens_at_least(text) <= in_lower_case.len(), "{text:?}");
    }
}

#[test]
fn accents_are_kept_if_the_file_says_so() {
    let vocabulary = Vocabulary { strip_accents: Some(false), ..word_pieces() };
    let tokenizer = Tokenizer::new(vocabulary).unwrap();
    assert_eq!(tokenizer.encode("É é", Special::Plain, false), [24, 24]);
}

#[test]
fn control_tokens_are_read_only_on_request() {
    let tokenizer = Tokenizer::new(word_pieces()).unwrap();
    assert_eq!(tokenizer.encode("the [SEP] boat", Special::Parse, false), [5, 3, 6]);
    assert_eq!(tokenizer.decode(&[2, 5, 6, 10, 3]), "the boats");
}

#[test]
fn the_ends_are_those_that_the_file_states() {
    let roles = RoleIds { class: Some(5), separator: Some(6), ..RoleIds::default() };
    let tokenizer = Tokenizer::new(Vocabulary { roles, ..word_pieces() }).unwrap();
    assert_eq!(tokenizer.encode("a", Special::Plain, true), [5, 13, 6]);
    for role in ["[CLS]", "[SEP]", "[UNK]"] {
        let mut vocabulary = word_pieces();
        let at = vocabulary.tokens.iter().position(|text| text == role).unwrap();
        vocabulary.tokens[at] = "other".into();
        let error = Tokenizer::new(vocabulary).unwrap_err();
        assert!(matches!(error, TokenizerError::NoRole { role: found } if found == role));
        assert!(error.to_string().contains(role), "{error}");
    }
}

#[test]
fn a_long_text_has_at_least_its_words() {
    let tokenizer = Tokenizer::new(word_pieces()).unwrap();
    assert_eq!(tokenizer.tokens_at_least(&"the boat, ".repeat(1000)), 3000);
    assert_eq!(tokenizer.tokens_at_least(&"é\u{301}\u{200b}".repeat(1000)), 0);
    assert_eq!(tokenizer.tokens_at_least("a\u{301}b aéb"), 2);
}
