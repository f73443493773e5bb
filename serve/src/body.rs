//! The body of a request, and what the answer says of its fields.

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use super::app::Call;
use super::error::ApiError;
use super::fields::Fields;

/// Header of a response that names the fields of the request that had no effect.
const IGNORED: HeaderName = HeaderName::from_static("x-ignored-fields");

/// Longest time from the headers of a request to the end of its body.
const BODY_TIME: std::time::Duration = std::time::Duration::from_secs(60);

/// The fields of a request's body.
#[derive(Debug)]
pub(crate) struct JsonBody(pub(crate) Fields);

impl<S: Send + Sync> FromRequest<S> for JsonBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<JsonBody, ApiError> {
        let read = tokio::time::timeout(BODY_TIME, Bytes::from_request(request, state)).await;
        let fields = match read {
            Ok(Ok(body)) => Fields::of_body(&body),
            Ok(Err(rejection)) => Err(body_error(rejection.into_response().status())),
            Err(_) => Err(ApiError::new(
                StatusCode::REQUEST_TIMEOUT,
                "body_timeout",
                "the body did not arrive within 60 s",
            )),
        };
        fields.map(JsonBody)
    }
}

fn body_error(status: StatusCode) -> ApiError {
    match status {
        StatusCode::PAYLOAD_TOO_LARGE => {
            let message = "the body is larger than the server accepts";
            ApiError::new(status, "body_too_large", message)
        }
        _ => ApiError::invalid("the body cannot be read"),
    }
}

/// Names the fields that had no effect in the response and in the log.
pub(crate) fn name_ignored(call: &Call, response: &mut Response<Body>, ignored: &[String]) {
    if ignored.is_empty() {
        return;
    }
    let names: Vec<String> =
        ignored.iter().take(32).map(|name| name.escape_default().to_string()).collect();
    let names = names.join(", ");
    tracing::warn!(
        id = &*call.id,
        path = call.path,
        fields = names,
        "fields of the request have no effect"
    );
    if let Ok(value) = HeaderValue::from_str(&names) {
        response.headers_mut().insert(IGNORED, value);
    }
}
