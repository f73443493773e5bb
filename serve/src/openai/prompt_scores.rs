//! Tokens of texts with their log-probabilities: of an answer, and of a prompt that is echoed.

use lapwing_actors::sample::TokenLogprob;

use super::logprobs::finite;
use super::token_ids::{IdOptions, TokenNames};
use crate::app::{Call, blocking};
use crate::error::ApiError;
use lapwing_engine::Engine;
use lapwing_engine::Prompt;
use lapwing_engine::Token;

/// The tokens of a text.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces(pub(super) Vec<Piece>);

/// A token of a text.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) text: String,
    /// Its name among log-probabilities, if that is not its text.
    pub(super) name: Option<String>,
    /// `None` for the first token of a prompt, which nothing precedes.
    pub(super) logprob: Option<f32>,
    /// The most likely tokens at its position.
    pub(super) top: Option<Vec<(String, f32)>>,
}

impl Pieces {
    /// Those of generated tokens.
    pub(super) fn of(tokens: &[Token], names: TokenNames<'_>) -> Pieces {
        let piece = |token: &Token| Piece {
            text: names.text(token.id),
            name: names.of_id(token.id),
            logprob: Some(finite(token.logprob)),
            top: Some(named(&token.top_logprobs, names)),
        };
        Pieces(tokens.iter().map(piece).collect())
    }

    /// The text.
    pub(super) fn text(&self) -> String {
        self.0.iter().map(|piece| piece.text.as_str()).collect()
    }
}

fn named(top: &[TokenLogprob], names: TokenNames<'_>) -> Vec<(String, f32)> {
    top.iter().map(|other| (names.name(other.id), finite(other.logprob))).collect()
}

/// The tokens of prompts, with `top` alternatives each if log-probabilities are asked for, which name tokens as `options` say.
///
/// # Errors
/// When a prompt is too long, or the time of the request is over.
pub(super) async fn prompt_pieces(
    call: &Call,
    engine: &Engine,
    prompts: &[Prompt],
    top: Option<usize>,
    options: IdOptions,
) -> Result<Vec<Pieces>, ApiError> {
    let mut all = Vec::with_capacity(prompts.len());
    for prompt in prompts {
        let (of, text) = (engine.clone(), prompt.clone());
        let ids = blocking(move || of.prompt_ids(&text)).await??;
        let tokenizer = engine.tokenizer();
        let names = options.names(tokenizer);
        let piece = |id: &u32| Piece {
            text: names.text(*id),
            name: names.of_id(*id),
            logprob: None,
            top: None,
        };
        let mut pieces: Vec<Piece> = ids.iter().map(piece).collect();
        // The begin token that the tokenizer adds is no part of the text.
        let has_begin = matches!(prompt, Prompt::Text(_))
            && tokenizer.adds_bos()
            && ids.first() == tokenizer.bos().as_ref();
        if let (Some(top), true) = (top, ids.len() > 1) {
            let scored = tokio::select! {
                scored = engine.score_top(ids, 1, top) => scored?,
                error = call.clone().interrupted() => return Err(error),
            };
            for (piece, scored) in pieces.iter_mut().skip(1).zip(scored) {
                piece.logprob = Some(finite(scored.logprob));
                piece.top = Some(named(&scored.top, names));
            }
        }
        if has_begin {
            pieces.remove(0);
        }
        // Nor is the space that some tokenizers put before it.
        if let (Prompt::Text(text), Some(first)) = (prompt, pieces.first_mut())
            && !text.starts_with(' ')
            && first.text.starts_with(' ')
        {
            first.text.remove(0);
        }
        all.push(Pieces(pieces));
    }
    Ok(all)
}
