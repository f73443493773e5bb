//! The SentencePiece vocabulary of a file older than GGUF.

use super::error::LegacyError;
use super::format::LegacyVersion;
use super::source::Reader;
use crate::weights::Fault;
use crate::weights::write::GgufWriter;

/// Largest accepted number of tokens; llama has 32 000.
const TOKENS_MAX: u64 = 1 << 20;
/// Largest accepted number of bytes of all tokens.
const TEXT_MAX: u64 = 64 << 20;
/// Ids of unknown, begin and end of text.
const SPECIAL: [(&str, i32); 3] = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)];
/// Ids of the single bytes.
const BYTES: std::ops::Range<usize> = 3..259;

/// Values of `tokenizer.ggml.token_type`.
const NORMAL: i32 = 1;
const UNKNOWN: i32 = 2;
const CONTROL: i32 = 3;
const BYTE: i32 = 6;

/// A token: its bytes, with a space as such, and its score.
#[derive(Debug)]
pub(super) struct Piece {
    bytes: Vec<u8>,
    score: f32,
}

impl Piece {
    /// Whether bytes and score are the same, bit by bit.
    pub(super) fn is_same(&self, other: &Piece) -> bool {
        self.bytes == other.bytes && self.score.to_bits() == other.score.to_bits()
    }
}

/// Reads the tokens. Without scores in the file, a token's score falls with its id, as in llama's
/// vocabulary.
pub(super) fn read(
    reader: &mut Reader<'_>,
    version: LegacyVersion,
    count: u32,
) -> Result<Vec<Piece>, LegacyError> {
    let at = reader.at();
    if u64::from(count) > TOKENS_MAX {
        let fault = Fault::AboveLimit { found: count.into(), limit: TOKENS_MAX };
        return Err(reader.bad(at, format_args!("number of tokens"), fault));
    }
    let mut pieces = Vec::new();
    let mut total = 0;
    for id in 0..count {
        let at = reader.at();
        let len = u64::from(reader.u32(format_args!("token {id}: length"))?);
        total += len;
        if total > TEXT_MAX {
            let fault = Fault::AboveLimit { found: total, limit: TEXT_MAX };
            return Err(reader.bad(at, format_args!("bytes of tokens 0 to {id}"), fault));
        }
        let bytes = reader.bytes(len, format_args!("token {id}"))?;
        let score = match version.has_scores() {
            true => f32::from_bits(reader.u32(format_args!("token {id}: score"))?),
            false => 0.0 - rank(id),
        };
        pieces.push(Piece { bytes, score });
    }
    Ok(pieces)
}

/// Number of tokens between the last byte and a token.
fn rank(id: u32) -> f32 {
    (id as usize).saturating_sub(BYTES.end) as f32
}

/// Adds the vocabulary to a GGUF file, with the token types that llama.cpp's converter gives.
pub(super) fn add(pieces: &[Piece], writer: &mut GgufWriter) -> Result<(), LegacyError> {
    let mut texts = Vec::with_capacity(pieces.len());
    let mut kinds = Vec::with_capacity(pieces.len());
    for (id, piece) in pieces.iter().enumerate() {
        let (text, kind) = match (SPECIAL.get(id), &*piece.bytes) {
            (Some((text, kind)), _) => ((*text).to_owned(), *kind),
            (None, []) => (String::new(), CONTROL),
            (None, [byte]) if BYTES.contains(&id) => (format!("<0x{byte:02X}>"), BYTE),
            (None, bytes) => {
                let text = std::str::from_utf8(bytes).map_err(|_| LegacyError::Token { id })?;
                (text.replace(' ', "\u{2581}"), NORMAL)
            }
        };
        texts.push(text);
        kinds.push(kind);
    }
    let scores: Vec<f32> = pieces.iter().map(|piece| piece.score).collect();
    writer
        .meta("tokenizer.ggml.model", "llama")
        .meta("tokenizer.ggml.tokens", texts)
        .meta("tokenizer.ggml.scores", scores)
        .meta("tokenizer.ggml.token_type", crate::weights::MetaValue::I32s(kinds))
        .meta("tokenizer.ggml.unknown_token_id", 0u32)
        .meta("tokenizer.ggml.bos_token_id", 1u32)
        .meta("tokenizer.ggml.eos_token_id", 2u32)
        .meta("tokenizer.ggml.add_bos_token", true);
    Ok(())
}
