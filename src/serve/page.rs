//! `GET /`: the page of the server.

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};

/// The page, with all of its style and script.
const PAGE: &str = include_str!("page.html");

/// Sends the page to browsers. Others get the sentence by which clients of Ollama know that a server runs.
pub(crate) async fn page(headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    if !accept.is_some_and(|accept| accept.contains("text/html")) {
        return "Ollama is running".into_response();
    }
    let mut response = PAGE.into_response();
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, kind);
    // The page loads nothing and is shown in no other page.
    let policy = HeaderValue::from_static(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; \
         frame-ancestors 'none'",
    );
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    headers.insert(header::VARY, HeaderValue::from_static("accept"));
    response
}
