//! The span of a request for subscribers of `tracing`, with the fields of OpenTelemetry's conventions for generative AI.

use std::borrow::Cow;
use std::path::Path;

use lapwing_traces::RequestTimes;
use tracing::Span;
use tracing::field::Empty;

use crate::embedding::EmbedRequest;
use crate::error::{Error, ErrorKind};
use crate::request::{Prompt, Request};

/// The span of a request, from the call to the end of its answer. What the request took is recorded when it ends, or else
/// when this is dropped; then it counts as cancelled. Empty if no subscriber asks for it.
#[derive(Debug, Default)]
pub(crate) struct RequestSpan(Option<Open>);

/// A request that has not ended.
#[derive(Debug)]
struct Open {
    span: Span,
    /// Why it ends if it goes on no further.
    reason: &'static str,
    times: RequestTimes,
}

/// What a span says of a request from its begin.
struct Asked<'a> {
    operation: &'static str,
    model: &'a Path,
    client: Option<&'a str>,
    tokens_max: Option<usize>,
    is_marked: bool,
}

impl RequestSpan {
    /// The span of a request for tokens, below the present span of this thread.
    pub(crate) fn of_generation(model: &Path, request: &Request) -> RequestSpan {
        RequestSpan::new(&Asked {
            operation: match request.prompt {
                Prompt::Chat(_) => "chat",
                Prompt::Text(_) | Prompt::Ids(_) => "text_completion",
            },
            model,
            client: request.client.as_deref(),
            tokens_max: request.max_tokens,
            is_marked: request.traced,
        })
    }

    /// The span of a request for an embedding, below the present span of this thread.
    pub(crate) fn of_embedding(model: &Path, request: &EmbedRequest) -> RequestSpan {
        RequestSpan::new(&Asked {
            operation: "embeddings",
            model,
            client: request.client.as_deref(),
            tokens_max: None,
            is_marked: request.traced,
        })
    }

    /// The span of a request for scores, below the present span of this thread.
    pub(crate) fn of_scores(model: &Path) -> RequestSpan {
        let (operation, client, tokens_max, is_marked) = ("score", None, None, false);
        RequestSpan::new(&Asked { operation, model, client, tokens_max, is_marked })
    }

    fn new(asked: &Asked<'_>) -> RequestSpan {
        let span = tracing::info_span!(
            "request",
            gen_ai.operation.name = asked.operation,
            gen_ai.provider.name = "lapwing",
            gen_ai.request.model = &*name_of(asked.model),
            gen_ai.request.max_tokens = asked.tokens_max,
            gen_ai.response.finish_reasons = Empty,
            gen_ai.response.time_to_first_chunk = Empty,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            gen_ai.usage.cache_read.input_tokens = Empty,
            client = asked.client.unwrap_or("anonymous"),
            id = Empty,
            marked = asked.is_marked,
            "error.type" = Empty,
            otel.status_code = Empty,
            otel.status_description = Empty,
        );
        if span.is_disabled() {
            return RequestSpan::default();
        }
        let (reason, times) = ("cancelled", RequestTimes::default());
        RequestSpan(Some(Open { span, reason, times }))
    }

    /// A handle for the engine's actors, which tell more below it.
    pub(crate) fn handle(&self) -> Span {
        self.0.as_ref().map_or_else(Span::none, |open| open.span.clone())
    }

    /// The span of what was begun, or the end of the span.
    ///
    /// # Errors
    /// That of `begun`.
    pub(crate) fn with<T>(mut self, begun: Result<T, Error>) -> Result<(T, RequestSpan), Error> {
        match begun {
            Ok(begun) => Ok((begun, self)),
            Err(error) => Err(self.fail(error)),
        }
    }

    /// Notes how far the request has come, as the caller sees it.
    pub(crate) fn reach(&mut self, times: &RequestTimes) {
        if let Some(open) = &mut self.0 {
            open.times = *times;
        }
    }

    /// Notes that nothing but the end is to come, for this reason.
    pub(crate) fn complete(&mut self, reason: &'static str) {
        if let Some(open) = &mut self.0 {
            open.reason = reason;
        }
    }

    /// Ends the span of a request that has ended for this reason.
    pub(crate) fn end(&mut self, reason: &'static str, times: &RequestTimes) {
        self.reach(times);
        self.complete(reason);
        self.close();
    }

    /// Ends the span of a request that has failed. Returns the error.
    pub(crate) fn fail(&mut self, error: Error) -> Error {
        if let Some(Open { span, reason, .. }) = &mut self.0 {
            *reason = "error";
            span.record("error.type", kind_of(&error));
            span.record("otel.status_code", "ERROR");
            span.record("otel.status_description", tracing::field::display(&error));
        }
        self.close();
        error
    }

    /// Records what the request took.
    fn close(&mut self) {
        let Some(Open { span, reason, times }) = self.0.take() else { return };
        span.record("gen_ai.response.finish_reasons", reason);
        span.record("gen_ai.usage.input_tokens", times.prompt_tokens);
        span.record("gen_ai.usage.output_tokens", times.generated_tokens);
        span.record("gen_ai.usage.cache_read.input_tokens", times.cached_tokens);
        if times.generated_tokens > 0 {
            let first = times.ttft().as_secs_f64();
            span.record("gen_ai.response.time_to_first_chunk", first);
        }
    }
}

impl Drop for RequestSpan {
    fn drop(&mut self) {
        self.close();
    }
}

/// The name of a model: that of its file, as in recordings.
fn name_of(model: &Path) -> Cow<'_, str> {
    model.file_stem().unwrap_or(model.as_os_str()).to_string_lossy()
}

/// The kind of an error, as `error.type` has it.
fn kind_of(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::Model => "model",
        ErrorKind::Fetch => "fetch",
        ErrorKind::Config => "config",
        ErrorKind::Request => "request",
        ErrorKind::Busy => "busy",
        ErrorKind::Answer => "answer",
        ErrorKind::Engine => "engine",
    }
}
