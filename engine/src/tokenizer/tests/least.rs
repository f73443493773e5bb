//! The number of tokens that a text has at least, by which prompts that are far too long are refused
//! before they are tokenised.

use super::*;

/// A vocabulary without the tokens with these texts.
fn without(mut vocabulary: Vocabulary, texts: &[&str]) -> Vocabulary {
    let keeps: Vec<bool> = vocabulary.tokens.iter().map(|t| !texts.contains(&&**t)).collect();
    assert_eq!(keeps.iter().filter(|keep| !**keep).count(), texts.len());
    fn kept<T>(list: &mut Vec<T>, keeps: &[bool]) {
        let mut keeps = keeps.iter();
        list.retain(|_| keeps.next().is_some_and(|keep| *keep));
    }
    kept(&mut vocabulary.kinds, &keeps);
    kept(&mut vocabulary.tokens, &keeps);
    if !vocabulary.scores.is_empty() {
        kept(&mut vocabulary.scores, &keeps);
    }
    vocabulary
}

fn vocabularies() -> Vec<(&'static str, Vocabulary)> {
    vec![
        ("byte pairs", byte_pairs("smollm")),
        // Real files lack bytes, too: those that are not in UTF-8, and rare ones.
        ("byte pairs without bytes", without(byte_pairs("smollm"), &["\u{ff}", "Ã", "b", "Ġ"])),
        ("pieces", pieces()),
        ("pieces without bytes", without(pieces(), &["<0x62>", "<0xC3>", "<0x96>"])),
        ("ranked pieces", ranked_pieces::ranked("gpt2", "mmbert")),
        ("unigram", unigram::vocabulary()),
        ("stripping", Vocabulary { name: Some("phi-3".to_owned()), ..pieces() }),
    ]
}

#[test]
fn a_text_has_at_least_the_tokens_that_its_bytes_say() {
    let texts =
        ["", "hello", "aaaa aaaa", "b b b", "é é", " \n </s>  \n a", "[USER] <|im_end|>", "ab ÿ"];
    for (what, vocabulary) in vocabularies() {
        let tokenizer = Tokenizer::new(vocabulary).unwrap();
        for text in texts {
            for special in [Special::Parse, Special::Plain] {
                let found = tokenizer.encode(text, special, false).len();
                let least = tokenizer.tokens_at_least(text);
                assert!(least <= found, "{what}: {text:?} has {found} tokens, not {least}");
            }
        }
    }
}

#[test]
fn a_long_text_has_many_tokens_at_least_also_if_the_vocabulary_lacks_bytes() {
    for (what, vocabulary) in vocabularies() {
        let longest = vocabulary.tokens.iter().map(String::len).max().unwrap();
        let tokenizer = Tokenizer::new(vocabulary).unwrap();
        let least = tokenizer.tokens_at_least(&"ab".repeat(10_000));
        assert!(least >= 10_000 / longest, "{what}: {least}");
    }
}
