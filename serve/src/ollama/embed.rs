//! `POST /api/embed`, and the older `POST /api/embeddings`.

use std::time::Instant;

use axum::Json;
use axum::extract::Extension;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::{nanos, target};
use crate::app::Call;
use crate::body::{JsonBody, name_ignored};
use crate::endpoint::Target;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::openai::Inputs;
use crate::openai::embeddings::embed as embed_all;

/// Embeds texts.
pub(crate) async fn embed(
    Extension(call): Extension<Call>,
    JsonBody(fields): JsonBody,
) -> Result<Response, ApiError> {
    answer(call, fields, false).await
}

/// Embeds one text.
pub(crate) async fn embeddings(
    Extension(call): Extension<Call>,
    JsonBody(fields): JsonBody,
) -> Result<Response, ApiError> {
    answer(call, fields, true).await
}

async fn answer(call: Call, mut fields: Fields, is_old: bool) -> Result<Response, ApiError> {
    let Target { name, mut keep_alive } = target(&mut fields)?;
    let lease = call.model(name.as_deref(), keep_alive).await?;
    let input: Inputs = fields.need(if is_old { "prompt" } else { "input" })?;
    let dimensions = fields.take("dimensions")?;
    fields.drop_if("options", &[json!({})]);
    let mut ignored = fields.rest();
    ignored.extend(lease.overrules(&mut keep_alive).then(|| "keep_alive".to_owned()));
    let client = call.caller.client(None);
    let _permit = call.app.clients.admit(&client)?;
    let began = Instant::now();
    let mut embedded = embed_all(&call, &lease.engine, input, &client, dimensions).await?;
    let tokens: usize = embedded.iter().map(|embedding| embedding.tokens).sum();
    let body = if is_old {
        json!({ "embedding": embedded.swap_remove(0).values })
    } else {
        let values: Vec<_> = embedded.into_iter().map(|embedding| embedding.values).collect();
        json!({
            "model": name,
            "embeddings": values,
            "total_duration": nanos(began.elapsed()),
            "load_duration": nanos(lease.load_time.unwrap_or_default()),
            "prompt_eval_count": tokens,
        })
    };
    let mut response = Json(body).into_response();
    name_ignored(&call, &mut response, &ignored);
    Ok(response)
}
