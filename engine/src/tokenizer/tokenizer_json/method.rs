//! What each method by which text becomes ids is in the terms of the `tokenizers` library.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::error::Inexpressible;
use super::file::{Ids, Model, Parts};
use super::scored_merges::scored_merges;
use crate::tokenizer::build::word_rules;
use crate::tokenizer::byte_pairs::split_merge;
use crate::tokenizer::ranked_pieces::RankedPieces;
use crate::tokenizer::sentence_pieces::SPACE;
use crate::tokenizer::token_table::TokenTable;
use crate::tokenizer::vocabulary::{TokenKind, Vocabulary};
use crate::tokenizer::word_pieces::{self, CONTINUES, WORD_CHARS_MAX};
use crate::tokenizer::words::{Spelling, Whole, WordRules};
use crate::tokenizer::{Tokenizer, byte_alphabet};

/// BPE over bytes.
pub(super) fn byte_pairs<'a>(
    tokenizer: &'a Tokenizer,
    vocabulary: &'a Vocabulary,
) -> Result<Parts<'a>, Inexpressible> {
    let table = &tokenizer.inner.table;
    let rules = rules(vocabulary)?;
    let mut steps = splits(rules);
    steps.push(json!({
        "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false
    }));
    steps.extend(missing_bytes(table));
    let ignore_merges = rules.whole == Whole::Always;
    Ok(Parts {
        normalizer: Value::Null,
        pre_tokenizer: json!({"type": "Sequence", "pretokenizers": steps}),
        decoder: json!({
            "type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true
        }),
        model: Model::Bpe {
            dropout: (),
            unk_token: None,
            continuing_subword_prefix: (),
            end_of_word_suffix: (),
            fuse_unk: false,
            byte_fallback: false,
            ignore_merges,
            vocab: ids(table),
            merges: ranked_merges(table, &vocabulary.merges),
        },
    })
}

/// BPE by ranks over pieces.
pub(super) fn ranked_pieces<'a>(
    tokenizer: &'a Tokenizer,
    vocabulary: &'a Vocabulary,
    pieces: &RankedPieces,
) -> Result<Parts<'a>, Inexpressible> {
    let table = &tokenizer.inner.table;
    let rules = rules(vocabulary)?;
    let without = match rules.whole {
        Whole::LineFeeds => pieces.line_feeds_without_merges(table),
        Whole::Never | Whole::Always => None,
    };
    if let Some(id) = without {
        return Err(Inexpressible::LineFeeds { id, count: table.text(id).len() });
    }
    let after_space = rules.spelling == Spelling::PiecesAfterSpace;
    let mut normalizers = vec![replace(json!({"String": " "}), SPACE)];
    if after_space {
        // Before every line that starts neither with a space nor with a line feed.
        let starts = format!(r"(?<![^\n])(?=[^\n{SPACE}])");
        normalizers.push(replace(json!({"Regex": starts}), SPACE));
    }
    let merges = ranked_merges(table, &vocabulary.merges);
    Ok(Parts {
        normalizer: sequence(normalizers),
        pre_tokenizer: json!({"type": "Sequence", "pretokenizers": splits(rules)}),
        decoder: piece_decoder(after_space),
        model: joined(table, merges, rules.whole == Whole::Always)?,
    })
}

/// BPE by the scores of pieces.
pub(super) fn sentence_pieces(tokenizer: &Tokenizer) -> Result<Parts<'_>, Inexpressible> {
    let inner = &*tokenizer.inner;
    let space = inner.add_space_prefix.then(|| json!({"type": "Prepend", "prepend": SPACE}));
    let normalizers = space.into_iter().chain([replace(json!({"String": " "}), SPACE)]);
    Ok(Parts {
        normalizer: sequence(normalizers.collect()),
        pre_tokenizer: Value::Null,
        decoder: piece_decoder(inner.add_space_prefix),
        model: joined(&inner.table, scored_merges(inner)?, false)?,
    })
}

/// Unigram.
pub(super) fn unigram<'a>(
    tokenizer: &'a Tokenizer,
    vocabulary: &Vocabulary,
) -> Result<Parts<'a>, Inexpressible> {
    let table = &tokenizer.inner.table;
    if !vocabulary.char_map.is_empty() {
        return Err(Inexpressible::CharMap);
    }
    let kind = |id: u32| vocabulary.kinds.get(id as usize).copied().unwrap_or(TokenKind::Normal);
    let worst = (0..table.len()).filter(|id| kind(*id) == TokenKind::Normal);
    let worst = worst.map(|id| table.score(id)).fold(f32::MAX, f32::min);
    let score = |id: u32| match kind(id) {
        TokenKind::Normal | TokenKind::Unused => table.score(id),
        TokenKind::UserDefined => 0.0,
        // They are no pieces, and must not count for the score of unknown text.
        _ => table.score(id).max(worst),
    };
    let unknown = tokenizer.unknown().ok_or(Inexpressible::NoUnknown)?;
    let mut normalizers = Vec::new();
    if vocabulary.remove_extra_whitespaces.unwrap_or(false) {
        normalizers.push(replace(json!({"Regex": r"\A +| +\z"}), ""));
        normalizers.push(replace(json!({"Regex": " +"}), SPACE));
        normalizers.push(json!({"type": "Prepend", "prepend": SPACE}));
    } else {
        if vocabulary.add_space_prefix.unwrap_or(false) {
            normalizers.push(replace(json!({"Regex": r"\A(?= *[^ ])"}), SPACE));
        }
        normalizers.push(replace(json!({"String": " "}), SPACE));
    }
    Ok(Parts {
        normalizer: sequence(normalizers),
        pre_tokenizer: Value::Null,
        decoder: piece_decoder(tokenizer.adds_space_prefix()),
        model: Model::Unigram {
            unk_id: unknown,
            vocab: (0..table.len()).map(|id| (table.text(id), f64::from(score(id)))).collect(),
            byte_fallback: false,
        },
    })
}

/// WordPiece.
pub(super) fn word_pieces<'a>(
    tokenizer: &'a Tokenizer,
    vocabulary: &'a Vocabulary,
) -> Result<Parts<'a>, Inexpressible> {
    let texts: Vec<String> = word_pieces::spelled(vocabulary).collect();
    let mut seen = HashMap::with_capacity(texts.len());
    for (text, second) in texts.iter().zip(0_u32..) {
        if let Some(first) = seen.insert(text.as_str(), second) {
            return Err(Inexpressible::SameSpelling { text: text.clone(), first, second });
        }
    }
    let respelled = |token: &&super::AddedToken<'_>| seen.get(token.content) != Some(&token.id);
    if let Some(token) = tokenizer.added_tokens().iter().find(respelled) {
        return Err(Inexpressible::Respelled { text: token.content.to_owned() });
    }
    let unknown = tokenizer.unknown().ok_or(Inexpressible::NoUnknown)?;
    let unk_token = texts.get(unknown as usize).cloned().ok_or(Inexpressible::NoUnknown)?;
    Ok(Parts {
        normalizer: serde_json::to_value(word_pieces::normalizer(vocabulary))
            .map_err(|source| Inexpressible::Json { source })?,
        pre_tokenizer: json!({"type": "BertPreTokenizer"}),
        decoder: json!({"type": "WordPiece", "prefix": CONTINUES, "cleanup": true}),
        model: Model::WordPiece {
            unk_token,
            continuing_subword_prefix: CONTINUES,
            max_input_chars_per_word: WORD_CHARS_MAX,
            vocab: Ids(texts),
        },
    })
}

/// BPE over pieces, in which unknown text is written byte by byte, and a word that is a token is taken whole if
/// `ignore_merges` says so.
fn joined<'a>(
    table: &'a TokenTable,
    merges: Vec<[&'a str; 2]>,
    ignore_merges: bool,
) -> Result<Model<'a>, Inexpressible> {
    let has_token = |byte: &u8| table.id(&format!("<0x{byte:02X}>")).is_some();
    if let Some(byte) = (0..=u8::MAX).find(|byte| !has_token(byte)) {
        return Err(Inexpressible::NoByte { byte });
    }
    Ok(Model::Bpe {
        dropout: (),
        unk_token: None,
        continuing_subword_prefix: (),
        end_of_word_suffix: (),
        fuse_unk: true,
        byte_fallback: true,
        ignore_merges,
        vocab: ids(table),
        merges,
    })
}

/// The word rules, which the tokenizer was built with.
fn rules(vocabulary: &Vocabulary) -> Result<&'static WordRules, Inexpressible> {
    word_rules(vocabulary).map_err(|_| Inexpressible::NoTokenizer)
}

/// The tokens with their ids.
fn ids(table: &TokenTable) -> Ids<&str> {
    Ids((0..table.len()).map(|id| table.text(id)).collect())
}

/// The merges whose parts and results are tokens, each once.
fn ranked_merges<'a>(table: &TokenTable, merges: &'a [String]) -> Vec<[&'a str; 2]> {
    let mut seen = HashSet::with_capacity(merges.len());
    let pairs = merges.iter().filter_map(|merge| split_merge(merge).map(|pair| [pair.0, pair.1]));
    pairs
        .filter(|[left, right]| {
            let joined = [*left, *right].concat();
            [left, right, joined.as_str()].iter().all(|text| table.id(text).is_some())
                && seen.insert([*left, *right])
        })
        .collect()
}

/// The steps of word rules.
fn splits(rules: &WordRules) -> Vec<Value> {
    let split = |pattern: String| json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false});
    rules.steps.iter().map(|step| split(step.portable())).collect()
}

/// What leaves out characters of bytes that are not tokens, and splits words there. No text has the bytes C0, C1 and those
/// from F5 on.
fn missing_bytes(table: &TokenTable) -> Option<Value> {
    let bytes = (0..=0xF4).filter(|byte| !matches!(byte, 0xC0 | 0xC1));
    let chars = bytes.map(byte_alphabet::char_of);
    let missing: Vec<String> = chars
        .filter(|char| table.id(char.encode_utf8(&mut [0; 4])).is_none())
        .map(|char| match char.is_ascii_punctuation() {
            true => format!("\\{char}"),
            false => char.to_string(),
        })
        .collect();
    (!missing.is_empty()).then(|| {
        let pattern = missing.join("|");
        json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Removed", "invert": false})
    })
}

fn replace(pattern: Value, content: &str) -> Value {
    json!({"type": "Replace", "pattern": pattern, "content": content})
}

fn sequence(normalizers: Vec<Value>) -> Value {
    json!({"type": "Sequence", "normalizers": normalizers})
}

/// How pieces become text; `drops_space` for those that start with a space of encoding.
fn piece_decoder(drops_space: bool) -> Value {
    let mut decoders = vec![
        replace(json!({"String": SPACE}), " "),
        json!({"type": "ByteFallback"}),
        json!({"type": "Fuse"}),
    ];
    if drops_space {
        decoders.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
    }
    json!({"type": "Sequence", "decoders": decoders})
}
