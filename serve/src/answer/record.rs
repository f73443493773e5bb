//! What an answer took.

use std::time::{Duration, Instant};

use axum::http::StatusCode;

use crate::app::Call;
use crate::clients::ClientPermit;
use crate::error::ApiError;
use crate::metrics::{AnswerMetrics, Taken};
use crate::models::ModelLease;
use lapwing_engine::{Summary, Token};

/// What an answer took, counted and logged when it is dropped.
pub(super) struct Record {
    pub(super) call: Call,
    pub(super) lease: ModelLease,
    pub(super) client: String,
    pub(super) _permit: ClientPermit,
    pub(super) metrics: AnswerMetrics,
    pub(super) last: Instant,
    pub(super) tokens: usize,
    pub(super) usage: Usage,
    pub(super) ttft: Duration,
    pub(super) times: Taken,
    /// Choices that are not complete.
    pub(super) open: usize,
    pub(super) reason: &'static str,
    /// The prompt and the answers, if they are to be logged.
    pub(super) texts: Option<Texts>,
}

/// Numbers of tokens of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) prompt: usize,
    pub(crate) cached: usize,
    pub(crate) generated: usize,
}

/// The prompt and the text of each choice so far.
#[derive(Debug, Default)]
pub(super) struct Texts {
    pub(super) prompt: String,
    pub(super) answers: Vec<String>,
}

impl Record {
    /// A choice has a token more.
    pub(super) fn token(&mut self, choice: usize, token: &Token) {
        if let Some(texts) = &mut self.texts {
            if texts.answers.len() <= choice {
                texts.answers.resize_with(choice + 1, String::new);
            }
            texts.answers[choice].push_str(&token.text);
        }
        let now = Instant::now();
        let after = now - self.last;
        self.metrics.token(after, self.tokens == 0);
        if self.tokens == 0 {
            self.ttft = now - self.call.received;
        }
        self.last = now;
        self.tokens += 1;
    }

    pub(super) fn end(&mut self, summary: &Summary) {
        self.open -= 1;
        let times = &summary.times;
        if self.times.prompt_tokens == 0 {
            self.usage.cached = times.cached_tokens;
            self.times = Taken {
                queued: times.queued(),
                prefill: times.prefill(),
                decode: times.decode(),
                prompt_tokens: times.prompt_tokens,
                recomputed_tokens: times.recomputed_tokens,
                drafts: summary.drafts.as_ref().map(|drafts| (drafts.drafted, drafts.accepted)),
                ..Taken::default()
            };
        }
        if self.open == 0 {
            self.reason = summary.reason.name();
        }
    }

    pub(super) fn fail(&mut self, error: ApiError) -> ApiError {
        self.reason = "error";
        let status = error.status;
        if status.is_server_error() && status != StatusCode::SERVICE_UNAVAILABLE {
            tracing::error!(id = &*self.call.id, %error, "request failed");
        }
        error
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let call = &self.call;
        let taken = Taken {
            whole: call.received.elapsed(),
            prompt_tokens: self.usage.prompt,
            cached_tokens: self.usage.cached,
            generated_tokens: self.tokens,
            ..self.times
        };
        call.app.metrics.end(self.lease.name(), self.reason, &taken);
        tracing::info!(
            id = &*call.id,
            client = self.client,
            path = call.path,
            model = self.lease.name(),
            reason = self.reason,
            prompt_tokens = taken.prompt_tokens as u64,
            cached_tokens = taken.cached_tokens as u64,
            recomputed_tokens = taken.recomputed_tokens as u64,
            generated_tokens = taken.generated_tokens as u64,
            queued_ms = millis(taken.queued),
            ttft_ms = millis(self.ttft),
            total_ms = millis(taken.whole),
            "request ended"
        );
        if let Some(Texts { prompt, answers }) = &self.texts {
            tracing::info!(id = &*call.id, prompt, ?answers, "texts of the request");
        }
    }
}

/// Milliseconds with three digits after the point.
fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
