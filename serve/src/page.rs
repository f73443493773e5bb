//! `GET /`: the page of the server.

use std::sync::LazyLock;

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use lapwing_traces::html::BASE_STYLE;

/// The page, with all of its style and script.
static PAGE: LazyLock<String> = LazyLock::new(|| {
    let style = [BASE_STYLE, include_str!("page/style.css")].concat();
    let script = [
        include_str!("page/markdown.js"),
        include_str!("page/chat.js"),
        include_str!("page/server.js"),
    ]
    .concat();
    include_str!("page/page.html").replace("{{style}}", &style).replace("{{script}}", &script)
});

/// Sends the page to browsers. Others get the sentence by which clients of Ollama know that a server runs.
pub(crate) async fn page(headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    if !accept.is_some_and(|accept| accept.contains("text/html")) {
        return "Ollama is running".into_response();
    }
    let mut response = PAGE.as_str().into_response();
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, kind);
    // The page loads nothing and is shown in no other page. Its empty icon is in the page.
    let policy = HeaderValue::from_static(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
         connect-src 'self'; frame-ancestors 'none'",
    );
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    headers.insert(header::VARY, HeaderValue::from_static("accept"));
    response
}
