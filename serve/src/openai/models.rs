//! `GET /v1/models`.

use std::collections::HashMap;

use axum::Json;
use axum::extract::{Extension, Path};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::app::{Call, unix_seconds};
use crate::error::ApiError;
use crate::models::ModelSpec;

#[derive(Serialize)]
struct ModelJson<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    owned_by: &'static str,
    /// Whether it answers conversations.
    chat: bool,
}

#[derive(Serialize)]
struct ListJson<'a> {
    object: &'static str,
    data: Vec<ModelJson<'a>>,
}

impl<'a> ModelJson<'a> {
    fn of(spec: &'a ModelSpec) -> ModelJson<'a> {
        let created = unix_seconds(spec.modified);
        let chat = spec.facts.chat_fault.is_none();
        ModelJson { id: &spec.name, object: "model", created, owned_by: "lapwing", chat }
    }
}

/// Lists the models.
pub(crate) async fn list(Extension(call): Extension<Call>) -> Response {
    let data = call.app.models.specs().iter().map(ModelJson::of).collect();
    Json(ListJson { object: "list", data }).into_response()
}

/// Describes a model.
pub(crate) async fn one(
    Extension(call): Extension<Call>,
    Path(parts): Path<HashMap<String, String>>,
) -> Result<Response, ApiError> {
    // A prefix may have parts of its own.
    let index = call.app.models.find(parts.get("id").map(String::as_str))?;
    Ok(Json(ModelJson::of(&call.app.models.specs()[index])).into_response())
}
