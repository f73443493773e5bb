//! The span of an HTTP request for subscribers of `tracing`, with the fields of OpenTelemetry's conventions for servers.

use std::time::Duration;

use axum::extract::MatchedPath;
use axum::http::{Request, Response, StatusCode};
use tower_http::classify::{ServerErrorsAsFailures, SharedClassifier};
use tower_http::trace::{MakeSpan, OnResponse, TraceLayer};
use tracing::Span;
use tracing::field::Empty;

use super::trace_parent::{Adopt, TraceParent};

/// Handles each request in a span, from its headers to the end of its answer.
pub(crate) type HttpSpans = TraceLayer<Classifier, Make, (), Answered, (), (), ()>;

/// What the layer asks for failures.
type Classifier = SharedClassifier<ServerErrorsAsFailures>;

/// Spans of requests; those that have a place in a caller's trace go through `adopt`.
pub(crate) fn http_spans(adopt: Adopt) -> HttpSpans {
    TraceLayer::new_for_http()
        .make_span_with(Make(adopt))
        .on_request(())
        .on_response(Answered)
        .on_body_chunk(())
        .on_eos(())
        .on_failure(())
}

/// Makes the span of a request.
#[derive(Clone, Debug)]
pub(crate) struct Make(Adopt);

impl<B> MakeSpan<B> for Make {
    fn make_span(&mut self, request: &Request<B>) -> Span {
        let parent = TraceParent::of(request.headers());
        let matched = request.extensions().get::<MatchedPath>();
        let route = matched.map(MatchedPath::as_str);
        let span = tracing::info_span!(
            "http",
            otel.kind = "server",
            otel.name = route.map(|route| format!("{} {route}", request.method())),
            http.request.method = request.method().as_str(),
            http.route = route,
            url.path = request.uri().path(),
            http.response.status_code = Empty,
            request_id = Empty,
            trace_id = parent.as_ref().map(TraceParent::trace_id),
            parent_id = parent.as_ref().map(TraceParent::parent_id),
            trace_sampled = parent.as_ref().map(TraceParent::is_sampled),
            "error.type" = Empty,
            otel.status_code = Empty,
        );
        if let (Some(parent), Some(adopt)) = (parent, &self.0.0) {
            adopt(&span, &parent);
        }
        span
    }
}

/// Records how a request was answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered;

impl<B> OnResponse<B> for Answered {
    fn on_response(self, response: &Response<B>, _latency: Duration, span: &Span) {
        record_status(span, response.status());
    }
}

fn record_status(span: &Span, status: StatusCode) {
    span.record("http.response.status_code", status.as_u16());
    if status.is_server_error() {
        span.record("error.type", status.as_str());
        span.record("otel.status_code", "ERROR");
    }
}
