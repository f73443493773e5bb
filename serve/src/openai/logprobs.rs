//! Log-probabilities of tokens.

use lapwing_actors::sample::TokenLogprob;
use serde::Serialize;

use lapwing_engine::Token;
use lapwing_engine::tokenizer::Tokenizer;

/// Most alternatives of a token.
pub(crate) const TOP_MAX: usize = 20;

/// A token, as chats report it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TokenJson {
    token: String,
    logprob: f32,
    bytes: Vec<u8>,
    top_logprobs: Vec<AlternativeJson>,
}

#[derive(Clone, Debug, Serialize)]
struct AlternativeJson {
    token: String,
    logprob: f32,
    bytes: Vec<u8>,
}

/// The tokens of a part of a chat's answer.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LogprobsJson {
    content: Vec<TokenJson>,
    refusal: Option<()>,
}

impl LogprobsJson {
    /// Those of `tokens`.
    pub(crate) fn of<'a>(
        tokens: impl IntoIterator<Item = &'a Token>,
        tokenizer: &Tokenizer,
    ) -> LogprobsJson {
        let content = tokens.into_iter().map(|token| TokenJson::of(token, tokenizer)).collect();
        LogprobsJson { content, refusal: None }
    }
}

impl TokenJson {
    fn of(token: &Token, tokenizer: &Tokenizer) -> TokenJson {
        let alternative = |other: &TokenLogprob| {
            let (token, bytes) = text_of(other.id, tokenizer);
            AlternativeJson { token, logprob: finite(other.logprob), bytes }
        };
        let (text, bytes) = text_of(token.id, tokenizer);
        TokenJson {
            token: text,
            logprob: finite(token.logprob),
            bytes,
            top_logprobs: token.top_logprobs.iter().map(alternative).collect(),
        }
    }
}

/// A token's text and bytes. Bytes that are no whole characters have stand-ins in the text.
pub(crate) fn text_of(id: u32, tokenizer: &Tokenizer) -> (String, Vec<u8>) {
    let bytes = tokenizer.token_bytes(id).unwrap_or_default().into_owned();
    (String::from_utf8_lossy(&bytes).into_owned(), bytes)
}

/// A log-probability that JSON can hold: that of an impossible token is as low as OpenAI's interface has it.
pub(crate) fn finite(logprob: f32) -> f32 {
    if logprob.is_finite() { logprob } else { -9999.0 }
}
