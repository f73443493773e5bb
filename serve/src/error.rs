//! Errors as each interface writes them.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use serde_json::json;

use lapwing_engine::error::{Error, ErrorKind, RunError};

/// An interface, which decides the form of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// OpenAI's, and that of llama.cpp's server.
    OpenAi,
    /// Ollama's.
    Ollama,
    /// Anthropic's.
    Anthropic,
}

impl Dialect {
    /// That of a path.
    pub(crate) fn of_path(path: &str) -> Dialect {
        match path {
            "/v1/messages" | "/v1/messages/count_tokens" => Dialect::Anthropic,
            path if path.starts_with("/api/") => Dialect::Ollama,
            _ => Dialect::OpenAi,
        }
    }
}

/// Why a request is refused or fails. Clients get the message; what only concerns the one who runs the server, such as
/// paths of files, goes to the log.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", log.as_ref().unwrap_or(message))]
pub(crate) struct ApiError {
    /// Status of the answer, if it has not begun.
    pub(crate) status: StatusCode,
    /// Short name for programs.
    pub(crate) code: &'static str,
    /// What is wrong, and what to do.
    pub(crate) message: String,
    /// What the log says instead of the message.
    pub(crate) log: Option<String>,
    /// Field of the request that is wrong.
    pub(crate) param: Option<String>,
    /// Time after which the request may succeed.
    pub(crate) retry_after: Option<Duration>,
}

impl ApiError {
    /// An error with a status and a code.
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        message: impl Into<String>,
    ) -> ApiError {
        let message = message.into();
        ApiError { status, code, message, log: None, param: None, retry_after: None }
    }

    /// An invalid request.
    pub(crate) fn invalid(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "invalid_request", message)
    }

    /// An invalid field.
    pub(crate) fn field(param: &str, message: impl Into<String>) -> ApiError {
        ApiError { param: Some(param.to_owned()), ..ApiError::invalid(message) }
    }

    /// The same error with more in the log.
    pub(crate) fn logged(self, log: impl Into<String>) -> ApiError {
        ApiError { log: Some(log.into()), ..self }
    }

    /// A limit is reached; the same request may succeed later.
    pub(crate) fn busy(
        code: &'static str,
        message: impl Into<String>,
        after: Duration,
    ) -> ApiError {
        let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, code, message);
        ApiError { retry_after: Some(after), ..error }
    }

    /// The server is about to stop.
    pub(crate) fn stopping() -> ApiError {
        let message =
            "the server is shutting down; send the request again to another one, or later";
        let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", message);
        ApiError { retry_after: Some(Duration::from_secs(1)), ..error }
    }

    /// Kind of error, as OpenAI and Anthropic name it.
    fn kind(&self, dialect: Dialect) -> &'static str {
        match (self.status.as_u16(), dialect) {
            (401, _) => "authentication_error",
            (403, _) => "permission_error",
            (404, Dialect::Anthropic) => "not_found_error",
            (429, _) => "rate_limit_error",
            (503, Dialect::Anthropic) => "overloaded_error",
            (503, _) => "service_unavailable",
            (500.., Dialect::Anthropic) => "api_error",
            (500.., _) => "server_error",
            _ => "invalid_request_error",
        }
    }

    /// The body of the answer, or the last object of a stream.
    pub(crate) fn json(&self, dialect: Dialect) -> serde_json::Value {
        let kind = self.kind(dialect);
        match dialect {
            Dialect::OpenAi => json!({ "error": {
                "message": self.message,
                "type": kind,
                "param": self.param,
                "code": self.code,
            } }),
            Dialect::Ollama => json!({ "error": self.message }),
            Dialect::Anthropic => json!({
                "type": "error",
                "error": { "type": kind, "message": self.message },
            }),
        }
    }

    /// The whole answer.
    pub(crate) fn response(&self, dialect: Dialect) -> Response<Body> {
        let mut response = Response::new(Body::from(self.json(dialect).to_string()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(after) = self.retry_after {
            let seconds = after.as_secs_f64().ceil().max(1.0) as u64;
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl IntoResponse for ApiError {
    /// A response that carries the error; the gate writes it in the form of the request's interface.
    fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self.status;
        response.extensions_mut().insert(self);
        response
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> ApiError {
        let (whole, message) = (error.to_string(), error.for_clients());
        let log = (whole != message).then_some(whole);
        let status =
            StatusCode::from_u16(error.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let (status, code, retry_after) = match error.run_error() {
            _ if error.is_prompt_too_long() => (status, "context_length_exceeded", None),
            Some(RunError::RateLimited { retry_after, .. }) => {
                (status, "rate_limit_exceeded", Some(*retry_after))
            }
            Some(RunError::QueueFull { .. }) => {
                (status, "queue_full", Some(Duration::from_secs(1)))
            }
            Some(RunError::ShuttingDown) => return ApiError::stopping(),
            _ => match error.kind() {
                ErrorKind::Request => (status, "invalid_request", None),
                ErrorKind::Model | ErrorKind::Fetch | ErrorKind::Config => {
                    (status, "model_not_loaded", None)
                }
                _ => (status, "engine_failed", None),
            },
        };
        ApiError { status, code, message, log, param: None, retry_after }
    }
}
