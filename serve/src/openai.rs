//! OpenAI's interface.

mod calls;
pub(super) mod chat;
mod chunks;
pub(super) mod completions;
pub(super) mod embeddings;
pub(super) mod logprobs;
pub(super) mod messages;
pub(super) mod models;
mod prompt_scores;
mod token_ids;

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::answer::{Answers, Usage};
use super::app::unix_seconds;
use super::error::ApiError;
use super::fields::Fields;
use super::ids::new_id;
use lapwing_engine::Prompt;
use lapwing_engine::PromptProgress;

/// What clients may compare to see whether the server has changed.
pub(super) const FINGERPRINT: &str = concat!("lapwing-", env!("CARGO_PKG_VERSION"));

/// The first fields of an answer.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Head {
    id: String,
    object: &'static str,
    created: u64,
    model: String,
    system_fingerprint: &'static str,
}

impl Head {
    /// Those of a new answer, whose id begins with `prefix`.
    pub(super) fn new(prefix: &str, object: &'static str, answers: &Answers) -> Head {
        Head {
            id: new_id(prefix),
            object,
            created: unix_seconds(SystemTime::now()),
            model: answers.lease().name().to_owned(),
            system_fingerprint: FINGERPRINT,
        }
    }
}

/// Numbers of tokens.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct UsageJson {
    prompt_tokens: usize,
    completion_tokens: usize,
    total_tokens: usize,
    prompt_tokens_details: PromptDetails,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct PromptDetails {
    cached_tokens: usize,
}

impl From<Usage> for UsageJson {
    fn from(usage: Usage) -> UsageJson {
        UsageJson {
            prompt_tokens: usage.prompt,
            completion_tokens: usage.generated,
            total_tokens: usage.prompt + usage.generated,
            prompt_tokens_details: PromptDetails { cached_tokens: usage.cached },
        }
    }
}

/// Times as llama.cpp's server reports them.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct TimingsJson {
    cache_n: usize,
    prompt_n: usize,
    prompt_ms: f64,
    prompt_per_second: Option<f64>,
    predicted_n: usize,
    predicted_ms: f64,
    predicted_per_second: Option<f64>,
    queued_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    draft_n: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    draft_n_accepted: Option<usize>,
}

impl TimingsJson {
    /// Those of the first choice.
    pub(super) fn of(answers: &Answers) -> TimingsJson {
        let (usage, times) = (answers.usage(), answers.times());
        let rate = |tokens: usize, seconds: f64| (seconds > 0.0).then(|| tokens as f64 / seconds);
        let prompt_n = usage.prompt - usage.cached.min(usage.prompt);
        let (prefill, decode) = (times.prefill.as_secs_f64(), times.decode.as_secs_f64());
        TimingsJson {
            cache_n: usage.cached,
            prompt_n,
            prompt_ms: prefill * 1e3,
            prompt_per_second: rate(prompt_n, prefill),
            predicted_n: usage.generated,
            predicted_ms: decode * 1e3,
            predicted_per_second: rate(usage.generated.saturating_sub(1), decode),
            queued_ms: times.queued.as_secs_f64() * 1e3,
            draft_n: times.drafts.map(|(drafted, _)| drafted),
            draft_n_accepted: times.drafts.map(|(_, accepted)| accepted),
        }
    }
}

/// How much of a prompt is computed, as llama.cpp's server reports it.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct ProgressJson {
    /// Tokens of the prompt.
    total: usize,
    /// Those that the prefix cache had.
    cache: usize,
    /// Those that are computed, with the cached ones.
    processed: usize,
    /// Time since the request was admitted.
    time_ms: u64,
}

impl From<PromptProgress> for ProgressJson {
    fn from(progress: PromptProgress) -> ProgressJson {
        ProgressJson {
            total: progress.tokens,
            cache: progress.cached,
            processed: progress.computed,
            time_ms: u64::try_from(progress.elapsed.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// A text, token ids, or several of them.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Inputs {
    Text(String),
    Texts(Vec<String>),
    Ids(Vec<u32>),
    ManyIds(Vec<Vec<u32>>),
}

impl Inputs {
    /// A prompt for each, in their order.
    pub(super) fn into_prompts(self) -> Vec<Prompt> {
        match self {
            Inputs::Text(text) => vec![Prompt::Text(text)],
            Inputs::Texts(texts) => texts.into_iter().map(Prompt::Text).collect(),
            Inputs::Ids(ids) => vec![Prompt::Ids(ids)],
            Inputs::ManyIds(many) => many.into_iter().map(Prompt::Ids).collect(),
        }
    }
}

/// What a stream is to contain.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StreamOptions {
    /// Whether the answer is streamed.
    pub(super) stream: bool,
    /// Numbers of tokens in a last chunk of their own.
    pub(super) include_usage: bool,
    /// Numbers of tokens in every chunk.
    pub(super) continuous_usage: bool,
    /// How much of the prompt is computed, in chunks of their own before the first token.
    pub(super) prompt_progress: bool,
}

impl StreamOptions {
    /// Takes them from a request.
    ///
    /// # Errors
    /// When a field has the wrong type.
    pub(super) fn take(fields: &mut Fields) -> Result<StreamOptions, ApiError> {
        let mut options = fields.object("stream_options", "stream_options.")?;
        let stream = fields.take("stream")?.unwrap_or(false);
        // It has an effect on streams only.
        let progress = if stream { fields.take("return_progress")? } else { None };
        let taken = StreamOptions {
            stream,
            prompt_progress: progress.unwrap_or(false),
            include_usage: options.take("include_usage")?.unwrap_or(false),
            continuous_usage: options.take("continuous_usage_stats")?.unwrap_or(false),
        };
        // Nothing is added to the chunks to hide their sizes.
        options.drop_if("include_obfuscation", &[false.into()]);
        fields.name_ignored(options.rest());
        Ok(taken)
    }
}
