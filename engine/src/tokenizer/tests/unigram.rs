//! Unigram.

use tokenizers::Model;
use tokenizers::models::unigram::Unigram;

use super::*;

/// Pieces with scores, of which the longest are not always the best.
const PIECES: [(&str, f32); 12] = [
    ("▁", -4.0),
    ("a", -3.0),
    ("b", -3.5),
    ("e", -4.5),
    ("é", -4.25),
    ("ab", -4.0),
    ("▁a", -5.5),
    ("▁ab", -10.0),
    ("ba", -6.75),
    ("abab", -7.0),
    ("fi", -5.0),
    ("E", -6.0),
];

pub(super) fn vocabulary() -> Vocabulary {
    let mut vocabulary = Vocabulary {
        model: "t5".into(),
        add_space_prefix: Some(true),
        remove_extra_whitespaces: Some(true),
        ..Vocabulary::default()
    };
    let mut add = |text: &str, kind, score| {
        vocabulary.tokens.push(text.into());
        vocabulary.kinds.push(kind);
        vocabulary.scores.push(score);
    };
    add("<pad>", TokenKind::Control, 0.0);
    add("</s>", TokenKind::Control, 0.0);
    add("<unk>", TokenKind::Unknown, 0.0);
    PIECES.iter().for_each(|(text, score)| add(text, TokenKind::Normal, *score));
    vocabulary
}

fn plain(vocabulary: Vocabulary, text: &str) -> Vec<String> {
    let tokenizer = Tokenizer::new(vocabulary).unwrap();
    texts(&tokenizer, &tokenizer.encode(text, Special::Plain, false))
}

/// A map of characters as in files, in which each node of the trie has a block of 256 units of its own.
pub(super) fn char_map(entries: &[(&str, &str)]) -> Vec<u8> {
    let block = |node: usize| 256 * (node + 1);
    let mut nodes: Vec<Vec<u8>> = vec![Vec::new()];
    for (text, _) in entries {
        for end in 1..=text.len() {
            let beginning = text.as_bytes()[..end].to_vec();
            if !nodes.contains(&beginning) {
                nodes.push(beginning);
            }
        }
    }
    let mut units = vec![0_u32; block(nodes.len())];
    units[0] = (block(0) as u32) << 10;
    let mut replacements = Vec::new();
    for (node, beginning) in nodes.iter().enumerate().skip(1) {
        let (last, before) = beginning.split_last().unwrap();
        let parent = nodes.iter().position(|other| other == before).unwrap();
        let at = block(parent) ^ usize::from(*last);
        units[at] = ((at ^ block(node)) as u32) << 10 | u32::from(*last);
        if let Some((_, replacement)) = entries.iter().find(|entry| entry.0.as_bytes() == beginning)
        {
            units[at] |= 1 << 8;
            units[block(node)] = 1 << 31 | replacements.len() as u32;
            replacements.extend_from_slice(replacement.as_bytes());
            replacements.push(0);
        }
    }
    let mut map = ((4 * units.len()) as u32).to_le_bytes().to_vec();
    map.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
    map.extend(replacements);
    map
}

#[test]
fn the_pieces_are_those_with_the_best_sum() {
    assert_eq!(plain(vocabulary(), "ab"), ["▁", "ab"]);
    assert_eq!(plain(vocabulary(), "a"), ["▁a"]);
    assert_eq!(plain(vocabulary(), "baba"), ["▁", "b", "ab", "a"]);
    assert_eq!(plain(vocabulary(), "abab"), ["▁", "abab"]);
}

#[test]
fn ids_equal_those_of_the_reference() {
    let vocabulary = vocabulary();
    let pieces = vocabulary.tokens.iter().zip(&vocabulary.scores);
    let pieces = pieces.enumerate().map(|(id, (text, score))| {
        // The reference reads control tokens in texts.
        let text = if id < 3 { format!("\u{1}{id}") } else { text.clone() };
        (text, f64::from(if id < 3 { -5.0 } else { *score }))
    });
    let reference = Unigram::from(pieces.collect(), Some(2), false).unwrap();
    let tokenizer = Tokenizer::new(vocabulary).unwrap();
    let mut state = 1_u64;
    for _ in 0..2000 {
        let mut random = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        let chars: Vec<char> = "abéfix ".chars().collect();
        let length = random(20);
        let text: String = (0..length).map(|_| chars[random(7) as usize]).collect();
        let words: Vec<String> = text.split_whitespace().map(|word| format!("▁{word}")).collect();
        let wanted = reference.tokenize(&words.concat()).unwrap();
        let wanted: Vec<u32> = wanted.iter().map(|token| token.id).collect();
        assert_eq!(tokenizer.encode(&text, Special::Plain, false), wanted, "{text:?}");
        assert!(tokenizer.tokens_at_least(&text) <= wanted.len(), "{text:?}");
    }
}

#[test]
fn neighbours_without_a_piece_are_one_unknown_token() {
    assert_eq!(plain(vocabulary(), "axyzb日"), ["▁a", "<unk>", "b", "<unk>"]);
    assert_eq!(plain(vocabulary(), "x x"), ["▁", "<unk>", "▁", "<unk>"]);
}

#[test]
fn spaces_count_once_or_as_they_are() {
    assert_eq!(plain(vocabulary(), "  a   a  "), ["▁a", "▁a"]);
    assert_eq!(plain(vocabulary(), "   "), [""; 0]);
    let kept = Vocabulary { remove_extra_whitespaces: None, ..vocabulary() };
    assert_eq!(plain(kept, "a  b "), ["▁a", "▁", "▁", "b", "▁"]);
    let none =
        Vocabulary { remove_extra_whitespaces: None, add_space_prefix: None, ..vocabulary() };
    assert_eq!(plain(none, "ab a"), ["ab", "▁a"]);
}

#[test]
fn the_longest_text_of_the_map_is_replaced() {
    let map = char_map(&[
        ("ﬁ", "fi"),
        ("e\u{301}", "é"),
        ("e", "E"),
        ("\u{3000}", " "),
        ("\u{200b}", ""),
    ]);
    let mapped = || Vocabulary { char_map: map.clone(), ..vocabulary() };
    assert_eq!(plain(mapped(), "ﬁ"), ["▁", "fi"]);
    assert_eq!(plain(mapped(), "e\u{301}e"), ["▁", "é", "E"]);
    assert_eq!(plain(mapped(), "a\u{3000}\u{200b}a"), ["▁a", "▁a"]);
    assert_eq!(plain(mapped(), "a\u{200b}b\0"), ["▁", "ab", "<unk>"]);
    // Of "e" nothing is certain, as it has a text of its own in the map.
    let tokenizer = Tokenizer::new(mapped()).unwrap();
    assert_eq!(tokenizer.tokens_at_least(&"e".repeat(1000)), 0);
    assert!(tokenizer.tokens_at_least(&"a".repeat(1000)) > 0);
}

#[test]
fn a_damaged_map_is_refused() {
    let good = char_map(&[("a", "b")]);
    let damaged: [(&str, Vec<u8>); 6] = [
        ("no length", vec![1, 2, 3]),
        ("longer than the map", good[..100].to_vec()),
        ("inside a number", vec![3, 0, 0, 0, 1, 2, 3]),
        ("not UTF-8", [&good[..], &[0xFF]].concat()),
        (
            "no position",
            [&4_u32.to_le_bytes()[..], &(1_u32 << 31 | 9).to_le_bytes(), b"a\0"].concat(),
        ),
        ("longer than 256", [&good[..], &[b'a'; 300]].concat()),
    ];
    for (what, char_map) in damaged {
        let error = Tokenizer::new(Vocabulary { char_map, ..vocabulary() }).unwrap_err();
        assert!(matches!(error, TokenizerError::CharMap { .. }), "{error}");
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[test]
fn control_tokens_in_untrusted_text_are_text() {
    let mut with_user = vocabulary();
    with_user.tokens.push("[a]".into());
    with_user.kinds.push(TokenKind::UserDefined);
    with_user.scores.push(-100.0);
    with_user.char_map = char_map(&[("｟a", "[a]")]);
    let tokenizer = Tokenizer::new(with_user).unwrap();
    let read = |special| texts(&tokenizer, &tokenizer.encode("a</s>[a]a", special, false));
    assert_eq!(read(Special::Parse), ["▁a", "</s>", "[a]", "▁a"]);
    assert_eq!(read(Special::Plain), ["▁a", "<unk>", "[a]", "▁a"]);
    // A text that becomes one of the author's tokens is that token, whatever its score.
    let mapped = tokenizer.encode("｟a", Special::Plain, false);
    assert_eq!(texts(&tokenizer, &mapped), ["▁", "[a]"]);
}

#[test]
fn ends_are_those_of_t5_unless_the_file_says_otherwise() {
    let tokenizer = Tokenizer::new(vocabulary()).unwrap();
    assert_eq!(tokens(&tokenizer, "a", Special::Plain), ["▁a", "</s>"]);
    assert_eq!(tokenizer.decode(&tokenizer.encode("a ab", Special::Plain, true)), "a ab");
    let roles = RoleIds { bos: Some(0), eos: Some(1), ..RoleIds::default() };
    let both = Vocabulary { add_bos: Some(true), add_eos: Some(false), roles, ..vocabulary() };
    let tokenizer = Tokenizer::new(both).unwrap();
    assert_eq!(tokens(&tokenizer, "a", Special::Plain), ["<pad>", "▁a"]);
    let mut short = vocabulary();
    short.tokens.truncate(2);
    assert!(matches!(Tokenizer::new(short).unwrap_err(), TokenizerError::NoRole { role: "<unk>" }));
}

#[test]
fn the_mask_absorbs_spaces_before_it_in_architectures_that_say_so() {
    let mut masked = vocabulary();
    masked.tokens.push("<mask>".into());
    masked.kinds.push(TokenKind::Control);
    masked.scores.push(0.0);
    let read = |architecture: &str| {
        let architecture = Some(architecture.to_owned());
        let tokenizer = Tokenizer::new(Vocabulary { architecture, ..masked.clone() }).unwrap();
        tokenizer.encode("a  <mask>", Special::Parse, false).len()
    };
    assert_eq!([read("nomic-bert-moe"), read("t5")], [2, 2]);
    let kept = |architecture: &str| {
        let architecture = Some(architecture.to_owned());
        let kept = Vocabulary { remove_extra_whitespaces: None, architecture, ..masked.clone() };
        Tokenizer::new(kept).unwrap().encode("a  <mask>", Special::Parse, false).len()
    };
    assert_eq!([kept("nomic-bert-moe"), kept("t5")], [2, 4]);
}

/// Anything quadratic takes minutes.
#[test]
fn a_long_text_takes_linear_time() {
    let tokenizer = Tokenizer::new(vocabulary()).unwrap();
    for run in ["a", "ab", " ", "x", "a ", "日"] {
        let text = run.repeat(100_000);
        let ids = tokenizer.encode(&text, Special::Plain, false);
        assert!(tokenizer.tokens_at_least(&text) <= ids.len(), "{run:?}");
        assert!(ids.len() <= text.len() + 1, "{run:?}");
    }
    let mut long = vocabulary();
    long.tokens[5] = "b".repeat(257);
    assert!(matches!(
        Tokenizer::new(long).unwrap_err(),
        TokenizerError::PieceTooLong { id: 5, length: 257, most: 256 }
    ));
}
