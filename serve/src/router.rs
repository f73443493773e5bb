//! The router of a server.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, any};
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::app::App;
use super::gate::{Entrance, gate};
use super::http_span::http_spans;
use super::routes::ROUTES;
use super::trace_parent::TRACEPARENT;

/// The paths of a server, each behind the gate. Other paths are left to the program that has the router.
pub(crate) fn router(app: &Arc<App>) -> Router {
    let mut router = Router::new();
    for route in ROUTES.iter().filter(|route| app.paths.contains(&route.group)) {
        let entrance = Entrance { app: Arc::clone(app), route: Some(route) };
        let handlers = (route.make)().layer(from_fn_with_state(entrance, gate));
        router = router.route(route.path, handlers);
    }
    router
        .route_layer(DefaultBodyLimit::max(app.config.body_bytes_max))
        .route_layer(cors(&app.config.cors))
        .route_layer(http_spans(app.adopt.clone()))
}

/// The router of a server that has sockets of its own. It answers for unknown paths, too.
pub(crate) fn whole(app: &Arc<App>) -> Router {
    let entrance = Entrance { app: Arc::clone(app), route: None };
    let unknown: MethodRouter = any(|| async { StatusCode::NOT_FOUND });
    let unknown: MethodRouter = unknown.layer(from_fn_with_state(entrance, gate));
    let unknown: MethodRouter = unknown.layer(cors(&app.config.cors));
    let unknown: MethodRouter = unknown.layer(http_spans(app.adopt.clone()));
    router(app).fallback_service(unknown)
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
