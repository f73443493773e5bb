//! The router of a server.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::middleware::from_fn_with_state;
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::app::App;
use super::gate::gate;
use super::http_span::http_spans;
use super::routes::ROUTES;
use super::trace_parent::TRACEPARENT;

/// The router of a server.
pub(crate) fn router(app: &Arc<App>) -> Router {
    let mut router = Router::new();
    for route in &ROUTES {
        router = router.route(route.path, (route.make)());
    }
    router
        .fallback(|| async { axum::http::StatusCode::NOT_FOUND })
        .layer(DefaultBodyLimit::max(app.config.body_bytes_max))
        .layer(from_fn_with_state(Arc::clone(app), gate))
        .layer(cors(&app.config.cors))
        .layer(http_spans(app.adopt.clone()))
}

/// What browsers may do from other origins: nothing unless origins are named.
fn cors(origins: &[String]) -> CorsLayer {
    let layer = CorsLayer::new();
    if origins.is_empty() {
        return layer;
    }
    let allowed = match origins.iter().any(|origin| origin == "*") {
        true => AllowOrigin::any(),
        false => {
            let values = origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok());
            AllowOrigin::list(values.collect::<Vec<_>>())
        }
    };
    layer.allow_origin(allowed).allow_methods([Method::GET, Method::POST]).allow_headers([
        header::AUTHORIZATION,
        header::CONTENT_TYPE,
        HeaderName::from_static("x-api-key"),
        HeaderName::from_static("x-request-id"),
        HeaderName::from_static("x-request-timeout"),
        TRACEPARENT,
        HeaderName::from_static("tracestate"),
    ])
}
