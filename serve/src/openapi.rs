//! `GET /openapi.json`: a description of the interface.

use axum::Json;
use axum::extract::{Extension, OriginalUri};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::app::Call;
use super::routes::ROUTES;
use super::routes::route::Route;

/// The schemas of bodies, by path.
const BODIES: &str = include_str!("openapi.json");

/// The document of the paths that are offered.
pub(crate) async fn document(
    Extension(call): Extension<Call>,
    OriginalUri(uri): OriginalUri,
) -> Response {
    let prefix = uri.path().strip_suffix("/openapi.json").filter(|prefix| !prefix.is_empty());
    let routes = ROUTES.iter().filter(|route| call.app.paths.contains(&route.group));
    Json(describe(routes, prefix.unwrap_or("/"))).into_response()
}

/// The document: every path with its methods, bodies and errors. All are below `prefix`.
fn describe<'a>(routes: impl Iterator<Item = &'a Route>, prefix: &str) -> Value {
    let bodies: Map<String, Value> = serde_json::from_str(BODIES).unwrap_or_default();
    let mut paths = Map::new();
    for route in routes {
        let mut methods = Map::new();
        for method in route.methods {
            methods.insert((*method).to_owned(), operation(route, method, &bodies));
        }
        paths.insert(route.path.to_owned(), Value::Object(methods));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Lapwing",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Language models on this machine, through the interfaces of OpenAI, Ollama, Anthropic and llama.cpp",
            "license": { "name": "Apache-2.0 OR MIT", "identifier": "Apache-2.0 OR MIT" },
        },
        "servers": [{ "url": prefix }],
        "paths": paths,
        "components": {
            "securitySchemes": { "key": { "type": "http", "scheme": "bearer" } },
            "schemas": bodies.get("schemas").cloned().unwrap_or_default(),
        },
    })
}

fn operation(route: &Route, method: &str, bodies: &Map<String, Value>) -> Value {
    // The older and the shorter paths take the bodies of the others.
    let body = bodies.get(route.path).or_else(|| bodies.get(&format!("/v1{}", route.path)));
    let error = json!({ "description": "An error, in the form of the interface" });
    let mut operation = json!({
        "summary": route.about,
        "responses": {
            "200": { "description": "The answer" },
            "4XX": error,
            "5XX": error,
        },
    });
    if !route.is_open {
        operation["security"] = json!([{ "key": [] }, {}]);
    }
    if route.path.contains("{id}") {
        operation["parameters"] = json!([
            { "name": "id", "in": "path", "required": true, "schema": { "type": "string" } },
        ]);
    }
    if route.path == "/debug/blocks" {
        operation["parameters"] =
            json!([{ "name": "model", "in": "query", "schema": { "type": "string" } }]);
    }
    if route.path == "/debug/timeline" || route.path == "/debug/lanes" {
        operation["parameters"] = json!([
            { "name": "model", "in": "query", "schema": { "type": "string" } },
            { "name": "seconds", "in": "query", "schema": { "type": "number", "exclusiveMinimum": 0, "default": 10 } },
        ]);
    }
    if method == "post" {
        let schema = body.cloned().unwrap_or_else(|| json!({ "type": "object" }));
        operation["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": schema } } });
    }
    operation
}
