//! A vocabulary from a hostile file ends in an error or in ids that decode, soon and in bounded memory.

use super::*;

/// A change of a good vocabulary.
type Damage = (&'static str, fn(&mut Vocabulary));

/// Adds a token.
fn add(vocabulary: &mut Vocabulary, text: &str, kind: TokenKind, score: f32) {
    vocabulary.tokens.push(text.to_owned());
    vocabulary.kinds.push(kind);
    if !vocabulary.scores.is_empty() {
        vocabulary.scores.push(score);
    }
}

fn add_all(vocabulary: &mut Vocabulary, kind: TokenKind, texts: impl Iterator<Item = String>) {
    texts.for_each(|text| add(vocabulary, &text, kind, 1.0));
}

/// Changes that concern all models.
const ALL: [Damage; 18] = [
    ("a token of a megabyte", |v| add(v, &"a".repeat(1 << 20), TokenKind::Normal, 9.0)),
    ("a control token of a megabyte", |v| add(v, &"a".repeat(1 << 20), TokenKind::Control, 0.0)),
    ("an own token for each letter", |v| {
        add_all(v, TokenKind::UserDefined, ('a'..='z').map(String::from));
    }),
    ("own tokens that begin alike", |v| {
        add_all(v, TokenKind::UserDefined, (2..1500).map(|n| "a".repeat(n) + "b"));
    }),
    ("control tokens that end alike", |v| {
        add_all(v, TokenKind::Control, (2..1500).map(|n| "<".repeat(n)));
    }),
    ("control tokens of which many end in each other", |v| {
        add_all(v, TokenKind::Control, (1..500).map(|n| "<".repeat(n)));
        add_all(v, TokenKind::Control, (0..1000).map(|n| format!("{n}{}", "<".repeat(500))));
    }),
    ("control tokens that begin differently", |v| {
        add_all(v, TokenKind::Control, (0..60_000).map(|n| format!("{n:05}").repeat(10)));
    }),
    ("tokens of all lengths", |v| {
        add_all(v, TokenKind::Normal, (2..1500).map(|n| "a".repeat(n)));
    }),
    ("100 000 equal tokens", |v| {
        add_all(v, TokenKind::Normal, (0..100_000).map(|_| "a".to_owned()));
    }),
    ("100 000 empty tokens", |v| {
        add_all(v, TokenKind::Control, (0..100_000).map(|_| String::new()));
    }),
    ("a control token of white space", |v| add(v, " \n", TokenKind::Control, 0.0)),
    ("a control token of NUL", |v| add(v, "\0", TokenKind::Control, 0.0)),
    ("roles beyond the list", |v| {
        let far = Some(u32::MAX);
        v.roles = RoleIds { bos: far, eos: far, eot: far, unk: far, ..RoleIds::default() };
        v.add_bos = Some(true);
        v.add_eos = Some(true);
    }),
    ("begin and end without a token", |v| {
        v.roles = RoleIds::default();
        v.add_bos = Some(true);
        v.add_eos = Some(true);
    }),
    ("every token a control token", |v| v.kinds.fill(TokenKind::Control)),
    ("every token a byte", |v| v.kinds.fill(TokenKind::Byte)),
    ("every token unused", |v| v.kinds.fill(TokenKind::Unused)),
    ("a list of kinds that is too short", |v| v.kinds.truncate(1)),
];

/// Changes of a SentencePiece vocabulary.
const PIECES: [Damage; 6] = [
    ("scores that are no numbers", |v| v.scores.fill(f32::NAN)),
    ("infinite scores", |v| v.scores.fill(f32::INFINITY)),
    ("scores from both infinities", |v| {
        let sign = |i: usize| if i.is_multiple_of(2) { f32::INFINITY } else { f32::NEG_INFINITY };
        v.scores.iter_mut().enumerate().for_each(|(i, score)| *score = sign(i));
    }),
    ("no bytes", |v| v.kinds.iter_mut().for_each(|kind| *kind = TokenKind::Normal)),
    ("bytes twice", |v| {
        add_all(v, TokenKind::Byte, (0..=255).map(|byte: u8| format!("<0x{byte:02X}>")));
    }),
    ("bytes that are no bytes", |v| {
        add_all(
            v,
            TokenKind::Byte,
            ["<0xZZ>", "<0x", "<0x123>", "é"].map(String::from).into_iter(),
        );
    }),
];

/// Changes of a vocabulary of byte pairs.
const PAIRS: [Damage; 6] = [
    ("merges that double", |v| {
        let runs = (0..16).map(|n| "a".repeat(1 << n));
        v.merges = runs.clone().map(|run| format!("{run} {run}")).collect();
        add_all(v, TokenKind::Normal, runs.map(|run| run.repeat(2)));
    }),
    ("200 000 equal merges", |v| v.merges.resize(200_000, "a a".to_owned())),
    ("merges without a right part", |v| v.merges.extend(["a", "a ", " a", " "].map(String::from))),
    ("merges of unknown parts", |v| v.merges.insert(0, "no such".to_owned())),
    ("no letters", |v| v.tokens.iter_mut().for_each(|text| text.push('x'))),
    ("unknown word rules", |v| v.pre = Some("\u{0}".repeat(1 << 16))),
];

/// Changes of a vocabulary of Unigram.
const UNIGRAM: [Damage; 8] = [
    ("scores that are no numbers", |v| v.scores.fill(f32::NAN)),
    ("infinite scores", |v| v.scores.fill(f32::INFINITY)),
    ("scores without a sum", |v| v.scores.fill(f32::MIN)),
    ("scores of which all are impossible", |v| v.scores.fill(f32::NEG_INFINITY)),
    ("long pieces of all lengths", |v| {
        add_all(v, TokenKind::Normal, (2..=256).map(|n| "a".repeat(n)));
    }),
    ("a map of characters without a trie", |v| v.char_map = vec![0xFF; 3]),
    ("a map whose trie is too long", |v| v.char_map = vec![0xFF; 1 << 16]),
    ("a map whose trie leads anywhere", |v| {
        v.char_map = [&1024_u32.to_le_bytes()[..], &[0x61; 1024], b"a\0"].concat();
    }),
];

/// Texts whose time would show a loop that is quadratic.
fn hostile_texts() -> Vec<String> {
    vec![
        "a".repeat(50_000),
        "<".repeat(50_000),
        "ab".repeat(25_000),
        " \n\0é\u{10ffff}<0x41><s>".repeat(2_000),
    ]
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test reports how long each takes")]
fn a_hostile_vocabulary_is_an_error_or_gives_ids_that_decode() {
    let texts = hostile_texts();
    let good = [
        (pieces(), &PIECES[..]),
        (byte_pairs("gpt-2"), &PAIRS[..]),
        (ranked_pieces::ranked("gemma4", ""), &PAIRS[..5]),
        (unigram::vocabulary(), &UNIGRAM[..]),
    ];
    let (mut refused, mut answered) = (0, 0);
    for (vocabulary, own) in good {
        for (what, damage) in ALL.iter().chain(own) {
            let since = std::time::Instant::now();
            let mut vocabulary = vocabulary.clone();
            damage(&mut vocabulary);
            let count = vocabulary.tokens.len();
            match Tokenizer::new(vocabulary) {
                Err(error) => {
                    assert!(!error.to_string().is_empty(), "{what}");
                    refused += 1;
                }
                Ok(tokenizer) => {
                    for text in &texts {
                        let ids = tokenizer.encode(text, Special::Parse, true);
                        assert!(ids.len() <= 4 * text.len() + 2, "{what}");
                        let _ = tokenizer.decode(&ids);
                        assert!(tokenizer.control_positions(text).len() <= text.len(), "{what}");
                    }
                    answered += 1;
                }
            }
            println!("{:>9.1?}  {what}, {count} tokens", since.elapsed());
        }
    }
    assert!(refused >= 4 && answered >= 20, "{refused} refused, {answered} answered");
}
