//! Ollama's lists of models.

use std::time::{Duration, SystemTime};

use axum::Json;
use axum::extract::Extension;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Details, VERSION};
use crate::app::Call;
use crate::body::JsonBody;
use crate::error::ApiError;
use crate::models::ModelSpec;

/// Says the version.
pub(crate) async fn version() -> Response {
    Json(json!({ "version": VERSION, "lapwing": env!("CARGO_PKG_VERSION") })).into_response()
}

/// Lists the models.
pub(crate) async fn tags(Extension(call): Extension<Call>) -> Response {
    let models: Vec<Value> = call.app.models.specs().iter().map(entry).collect();
    Json(json!({ "models": models })).into_response()
}

fn entry(spec: &ModelSpec) -> Value {
    json!({
        "name": spec.name,
        "model": spec.name,
        "modified_at": time(spec.modified),
        "size": spec.bytes,
        "digest": spec.facts.digest,
        "details": Details::of(spec),
    })
}

/// Lists the loaded models.
pub(crate) async fn ps(Extension(call): Extension<Call>) -> Response {
    // As good as for ever.
    let never = Duration::from_secs(100 * 365 * 24 * 3600);
    let loaded = call.app.models.loaded();
    let models: Vec<Value> = loaded
        .iter()
        .map(|loaded| {
            let spec = &call.app.models.specs()[loaded.index];
            let mut entry = entry(spec);
            entry["expires_at"] = time(SystemTime::now() + loaded.expires.unwrap_or(never)).into();
            entry["size_vram"] = 0.into();
            entry["context_length"] = loaded.engine.context().into();
            entry["requests"] = loaded.users.into();
            let packed = loaded.engine.packed_use();
            entry["packed_own_bytes"] = packed.own_bytes.into();
            entry["packed_mapped_bytes"] = packed.mapped_bytes.into();
            entry
        })
        .collect();
    Json(json!({ "models": models })).into_response()
}

/// Describes a model.
pub(crate) async fn show(
    Extension(call): Extension<Call>,
    JsonBody(mut fields): JsonBody,
) -> Result<Response, ApiError> {
    let name: String = fields.take_any(&["model", "name"])?.unwrap_or_default();
    let spec = &call.app.models.specs()[call.app.models.find(Some(&name))?];
    let facts = &spec.facts;
    let architecture = &facts.architecture;
    let mut capabilities = match facts.is_encoder() {
        true => vec!["embedding"],
        false => vec!["completion", "embedding"],
    };
    if facts.chat_fault.is_none() {
        capabilities.push("chat");
    }
    if facts.knows_tools() && facts.chat_fault.is_none() {
        capabilities.push("tools");
    }
    if facts.knows_thoughts() {
        capabilities.push("thinking");
    }
    let info = json!({
        "general.architecture": architecture,
        "general.parameter_count": facts.parameters,
        format!("{architecture}.context_length"): facts.context,
    });
    Ok(Json(json!({
        "modelfile": format!("FROM {}\n", spec.name),
        "parameters": "",
        "template": facts.template.as_deref().unwrap_or_default(),
        "modified_at": time(spec.modified),
        "details": Details::of(spec),
        "model_info": info,
        "capabilities": capabilities,
        "chat_fault": facts.chat_fault,
    }))
    .into_response())
}

/// "Pulls" a model: a server offers the models that it was started with.
pub(crate) async fn pull(
    Extension(call): Extension<Call>,
    JsonBody(mut fields): JsonBody,
) -> Result<Response, ApiError> {
    let name: String = fields.take_any(&["model", "name"])?.unwrap_or_default();
    if call.app.models.find(Some(&name)).is_err() {
        let message = "this server does not fetch models; who runs it decides which ones it offers";
        let advice = format!(
            "{message}: fetch it with `lapwing pull {name}`, and start the server with `-m {name}`"
        );
        let error = ApiError::new(StatusCode::NOT_FOUND, "model_not_found", message);
        return Err(error.logged(advice));
    }
    let is_streamed = fields.take("stream")?.unwrap_or(true);
    let mut response = format!("{}\n", json!({ "status": "success" })).into_response();
    let kind = if is_streamed { "application/x-ndjson" } else { "application/json" };
    let kind = axum::http::HeaderValue::from_static(kind);
    response.headers_mut().insert(axum::http::header::CONTENT_TYPE, kind);
    Ok(response)
}

fn time(time: SystemTime) -> String {
    Timestamp::try_from(time).unwrap_or_default().to_string()
}
