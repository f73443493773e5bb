//! Tokenizers with small vocabularies. Agreement with llama.cpp on real ones is tested in the
//! repository's `tests`.

mod hostile;
mod ids;
mod json;
mod least;
mod ranked_pieces;
mod unigram;
mod word_pieces;
mod words;

use super::*;

/// Byte-level BPE over all bytes, with merges for "hello", two control tokens and one
/// user-defined token.
fn byte_pairs(pre: &str) -> Vocabulary {
    let mut tokens: Vec<String> =
        (0..=255).map(|byte| byte_alphabet::char_of(byte).to_string()).collect();
    let merges = ["h e", "l l", "he ll", "hell o", "Ġ hello", "a a", "aa aa", "1 2", "12 3"];
    tokens.extend(merges.iter().map(|merge| merge.replace(' ', "")));
    let mut kinds = vec![TokenKind::Normal; tokens.len()];
    for (text, kind) in [
        ("<|im_start|>", TokenKind::Control),
        ("<|im_end|>", TokenKind::Control),
        ("[USER]", TokenKind::UserDefined),
    ] {
        tokens.push(text.into());
        kinds.push(kind);
    }
    Vocabulary {
        model: "gpt2".into(),
        pre: Some(pre.into()),
        tokens,
        kinds,
        merges: merges.map(String::from).to_vec(),
        ..Vocabulary::default()
    }
}

/// SentencePiece BPE with a few pieces and all bytes.
fn pieces() -> Vocabulary {
    let mut vocabulary = Vocabulary { model: "llama".into(), ..Vocabulary::default() };
    let mut add = |text: &str, kind, score| {
        vocabulary.tokens.push(text.into());
        vocabulary.kinds.push(kind);
        vocabulary.scores.push(score);
    };
    add("<unk>", TokenKind::Unknown, 0.0);
    add("<s>", TokenKind::Control, 0.0);
    add("</s>", TokenKind::Control, 0.0);
    for byte in 0..=255 {
        add(&format!("<0x{byte:02X}>"), TokenKind::Byte, 0.0);
    }
    for (text, score) in [
        ("▁", -10.0),
        ("a", -10.0),
        ("b", -10.0),
        ("ab", -1.0),
        ("ba", -2.0),
        ("▁ab", -3.0),
        ("aa", -4.0),
        ("bab", -0.5),
    ] {
        add(text, TokenKind::Normal, score);
    }
    vocabulary
}

fn texts(tokenizer: &Tokenizer, ids: &[u32]) -> Vec<String> {
    ids.iter().map(|id| tokenizer.token_text(*id).unwrap_or("?").to_owned()).collect()
}

fn tokens(tokenizer: &Tokenizer, text: &str, special: Special) -> Vec<String> {
    texts(tokenizer, &tokenizer.encode(text, special, true))
}

#[test]
fn merges_apply_by_rank() {
    let tokenizer = Tokenizer::new(byte_pairs("gpt-2")).unwrap();
    assert_eq!(tokens(&tokenizer, "hello hello", Special::Plain), ["hello", "Ġhello"]);
    assert_eq!(tokens(&tokenizer, "aaaaaaa", Special::Plain), ["aaaa", "aa", "a"]);
}

#[test]
fn control_tokens_in_untrusted_text_stay_text() {
    let tokenizer = Tokenizer::new(byte_pairs("gpt-2")).unwrap();
    let text = "<|im_start|>hello[USER]<|im_end|>";
    let parsed = tokens(&tokenizer, text, Special::Parse);
    assert_eq!(parsed, ["<|im_start|>", "hello", "[USER]", "<|im_end|>"]);
    let plain = tokens(&tokenizer, text, Special::Plain);
    assert!(!plain.contains(&"<|im_start|>".to_owned()));
    assert!(plain.contains(&"[USER]".to_owned()));
    assert_eq!(tokenizer.decode(&tokenizer.encode(text, Special::Plain, true)), text);
}

#[test]
fn a_longer_special_token_wins_over_a_shorter() {
    let mut vocabulary = byte_pairs("gpt-2");
    for text in ["<a>", "<a><b>"] {
        vocabulary.tokens.push(text.into());
        vocabulary.kinds.push(TokenKind::UserDefined);
    }
    let tokenizer = Tokenizer::new(vocabulary).unwrap();
    let found = tokens(&tokenizer, "<a><a><b>", Special::Plain);
    assert_eq!(found, ["<a>", "<a><b>"]);
}

#[test]
fn a_stripping_token_absorbs_white_space() {
    let mut vocabulary = byte_pairs("gpt-2");
    vocabulary.name = Some("Phi-3 mini".into());
    let tokenizer = Tokenizer::new(vocabulary).unwrap();
    let found = tokens(&tokenizer, "a <|im_end|> \n a", Special::Parse);
    assert_eq!(found, ["a", "Ġ", "<|im_end|>", "a"]);
}

#[test]
fn pieces_join_by_score() {
    let tokenizer = Tokenizer::new(pieces()).unwrap();
    assert_eq!(tokens(&tokenizer, "ab", Special::Plain), ["<s>", "▁ab"]);
    assert_eq!(tokens(&tokenizer, "bab", Special::Plain), ["<s>", "▁", "bab"]);
    assert_eq!(tokens(&tokenizer, "aaab", Special::Plain), ["<s>", "▁", "aa", "ab"]);
}

#[test]
fn text_without_a_piece_becomes_bytes() {
    let tokenizer = Tokenizer::new(pieces()).unwrap();
    let found = tokens(&tokenizer, "é", Special::Plain);
    assert_eq!(found, ["<s>", "▁", "<0xC3>", "<0xA9>"]);
    let ids = tokenizer.encode("é日\n🙂", Special::Plain, true);
    assert_eq!(tokenizer.decode(&ids), "é日\n🙂");
}

#[test]
fn the_space_that_encoding_adds_is_removed_by_decoding() {
    let tokenizer = Tokenizer::new(pieces()).unwrap();
    let ids = tokenizer.encode("ab ab<s>ab", Special::Parse, true);
    assert_eq!(texts(&tokenizer, &ids), ["<s>", "▁ab", "▁ab", "<s>", "▁ab"]);
    assert_eq!(tokenizer.decode(&ids), "ab abab");
    let word = tokenizer.token_id("▁ab").unwrap();
    assert_eq!(tokenizer.detokenizer(&[word]).push(word), " ab");
    assert_eq!(tokenizer.detokenizer(&[1]).push(word), "ab");
}

#[test]
fn streaming_never_splits_a_character() {
    let tokenizer = Tokenizer::new(byte_pairs("gpt-2")).unwrap();
    let text = "a日🙂é";
    let mut detokenizer = tokenizer.detokenizer(&[]);
    let streamed: Vec<String> = text
        .bytes()
        .map(|byte| tokenizer.token_id(&byte_alphabet::char_of(byte).to_string()).unwrap())
        .map(|id| detokenizer.push(id))
        .collect();
    assert_eq!(streamed, ["a", "", "", "日", "", "", "", "🙂", "", "é"]);
    assert_eq!(detokenizer.finish(), "");
}

#[test]
fn invalid_bytes_become_replacement_characters() {
    let tokenizer = Tokenizer::new(byte_pairs("gpt-2")).unwrap();
    let id = |byte: u8| tokenizer.token_id(&byte_alphabet::char_of(byte).to_string()).unwrap();
    let mut detokenizer = tokenizer.detokenizer(&[]);
    assert_eq!(detokenizer.push(id(0xF0)), "");
    assert_eq!(detokenizer.push(id(b'x')), "\u{FFFD}x");
    assert_eq!(detokenizer.push(id(0xFF)), "\u{FFFD}");
    assert_eq!(detokenizer.push(u32::MAX), "");
    assert_eq!(detokenizer.push(id(0xE6)), "");
    assert_eq!(detokenizer.finish(), "\u{FFFD}");
}

#[test]
fn control_tokens_are_hidden_unless_shown() {
    let tokenizer = Tokenizer::new(byte_pairs("gpt-2")).unwrap();
    let ids = tokenizer.encode("<|im_start|>hello", Special::Parse, true);
    assert_eq!(tokenizer.decode(&ids), "hello");
    let mut shown = tokenizer.detokenizer(&[]).showing_control();
    let text: String = ids.iter().map(|id| shown.push(*id)).collect();
    assert_eq!(text, "<|im_start|>hello");
}

#[test]
fn all_end_tokens_are_found() {
    let mut vocabulary = byte_pairs("gpt-2");
    let eos = u32::try_from(vocabulary.tokens.len()).unwrap();
    vocabulary.tokens.push("[STOP]".into());
    vocabulary.kinds.push(TokenKind::Control);
    vocabulary.roles.eos = Some(eos);
    let tokenizer = Tokenizer::new(vocabulary).unwrap();
    let ends: Vec<u32> = tokenizer.eos_ids().collect();
    assert_eq!(texts(&tokenizer, &ends), ["<|im_end|>", "[STOP]"]);
    assert!(tokenizer.is_end(eos) && !tokenizer.is_end(0));
}

#[test]
fn begin_and_end_are_added_as_the_file_says() {
    let mut vocabulary = pieces();
    vocabulary.add_bos = Some(false);
    vocabulary.add_eos = Some(true);
    let tokenizer = Tokenizer::new(vocabulary).unwrap();
    assert_eq!(tokens(&tokenizer, "", Special::Plain), ["</s>"]);
    assert!(tokenizer.encode("", Special::Plain, false).is_empty());
    let tokenizer = Tokenizer::new(pieces()).unwrap();
    assert_eq!(tokens(&tokenizer, "", Special::Plain), ["<s>"]);
}

#[test]
fn damaged_vocabularies_are_rejected() {
    let error = |change: fn(&mut Vocabulary)| {
        let mut vocabulary = byte_pairs("gpt-2");
        change(&mut vocabulary);
        Tokenizer::new(vocabulary).unwrap_err().to_string()
    };
    assert!(error(|v| v.model = "rwkv".into()).contains("`rwkv`"));
    assert!(error(|v| v.model = "plamo2".into()).contains("`plamo2`"));
    assert!(error(|v| v.pre = Some("zz".into())).contains("llama-bpe"));
    assert!(error(|v| v.kinds.truncate(3)).contains("token_type"));
    assert!(error(|v| v.tokens.clear()).contains("empty"));
    assert!(error(|v| v.merges.clear()).contains("merges"));
    assert!(error(|v| v.tokens[1] = "Ā".into()).contains("both"));
    let mut odd = byte_pairs("gpt-2");
    odd.merges.extend(["", " ", "x", "no such", "h e", "é é é"].map(String::from));
    odd.roles.bos = Some(u32::MAX);
    let tokenizer = Tokenizer::new(odd).unwrap();
    assert_eq!(tokens(&tokenizer, "hello", Special::Plain), ["hello"]);
}

#[test]
fn a_byte_without_a_token_splits_the_word() {
    let mut vocabulary = byte_pairs("gpt-2");
    vocabulary.tokens[usize::from(b'!')] = "spare".into();
    let tokenizer = Tokenizer::new(vocabulary).unwrap();
    assert_eq!(tokens(&tokenizer, "!!a", Special::Plain), ["a"]);
    vocabulary = byte_pairs("bloom");
    vocabulary.tokens[usize::from(b'-')] = "spare".into();
    let tokenizer = Tokenizer::new(vocabulary).unwrap();
    assert_eq!(tokens(&tokenizer, "a-a", Special::Plain), ["a", "a"]);
}

/// 200 kB of one letter is one word of 200 000 symbols: anything quadratic takes minutes.
#[test]
fn a_long_run_of_one_letter_takes_near_linear_time() {
    let text = "a".repeat(200_000);
    for vocabulary in [byte_pairs("gpt-2"), byte_pairs("llama-bpe"), pieces()] {
        let tokenizer = Tokenizer::new(vocabulary).unwrap();
        let ids = tokenizer.encode(&text, Special::Parse, false);
        assert!(ids.len() <= text.len() / 2 + 2);
        assert_eq!(tokenizer.decode(&ids), text);
    }
    let spaces = format!("{}x", " ".repeat(200_000));
    let tokenizer = Tokenizer::new(byte_pairs("llama-bpe")).unwrap();
    assert_eq!(tokenizer.encode(&spaces, Special::Parse, false).len(), spaces.len());
}
