//! Log-probabilities of tokens.

use lapwing_actors::sample::TokenLogprob;
use serde::Serialize;

use super::token_ids::TokenNames;
use lapwing_engine::Token;

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
    pub(super) fn of<'a>(
        tokens: impl IntoIterator<Item = &'a Token>,
        names: TokenNames<'_>,
    ) -> LogprobsJson {
        let content = tokens.into_iter().map(|token| TokenJson::of(token, names)).collect();
        LogprobsJson { content, refusal: None }
    }
}

impl TokenJson {
    fn of(token: &Token, names: TokenNames<'_>) -> TokenJson {
        let alternative = |other: &TokenLogprob| AlternativeJson {
            token: names.name(other.id),
            logprob: finite(other.logprob),
            bytes: names.bytes(other.id),
        };
        TokenJson {
            token: names.name(token.id),
            logprob: finite(token.logprob),
            bytes: names.bytes(token.id),
            top_logprobs: token.top_logprobs.iter().map(alternative).collect(),
        }
    }
}

/// A log-probability that JSON can hold: that of an impossible token is as low as OpenAI's interface has it.
pub(crate) fn finite(logprob: f32) -> f32 {
    if logprob.is_finite() { logprob } else { -9999.0 }
}
