//! Paths that llama.cpp's server has beside OpenAI's.

use axum::Json;
use axum::extract::Extension;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::app::{Call, Phase, blocking};
use super::body::JsonBody;
use super::error::ApiError;
use super::openai::messages;
use super::tools;
use lapwing_engine::chat::{ChatError, ChatOptions};
use lapwing_engine::error::Error;
use lapwing_engine::tokenizer::Special;
use lapwing_engine::{Engine, Prompt, PromptEnd, RunningRequest};

/// Says that the server runs.
pub(crate) async fn health() -> Response {
    Json(json!({ "status": "ok" })).into_response()
}

/// Says whether requests are accepted.
pub(crate) async fn ready(Extension(call): Extension<Call>) -> Result<Response, ApiError> {
    match *call.app.phase.borrow() {
        Phase::Serving => Ok(Json(json!({ "status": "ok" })).into_response()),
        _ => Err(ApiError::stopping()),
    }
}

/// Settings of the first model.
pub(crate) async fn props(Extension(call): Extension<Call>) -> Response {
    let spec = &call.app.models.specs()[0];
    let loaded = call.app.models.loaded();
    let engine = loaded.iter().find(|loaded| loaded.index == 0).map(|loaded| &loaded.engine);
    Json(json!({
        "default_generation_settings": { "n_ctx": engine.map(|engine| engine.context()) },
        "total_slots": engine.map_or(call.app.config.sequences_max, Engine::sequences_max),
        "model_alias": spec.name,
        "model_path": spec.path.file_name().map(|name| name.to_string_lossy()),
        "chat_template": spec.facts.template.as_deref().unwrap_or_default(),
        "build_info": super::openai::FINGERPRINT,
        "is_sleeping": engine.is_none(),
    }))
    .into_response()
}

/// What the first model computes: a slot for each request that runs.
pub(crate) async fn slots(Extension(call): Extension<Call>) -> Result<Response, ApiError> {
    let loaded = call.app.models.loaded();
    let Some(loaded) = loaded.iter().find(|loaded| loaded.index == 0) else {
        return Ok(Json(json!([])).into_response());
    };
    let context = loaded.engine.context();
    let requests = loaded.engine.stats().await?.requests;
    let slots = requests.iter().enumerate().map(|(id, request)| slot(id, request, context));
    Ok(Json(slots.collect::<Vec<_>>()).into_response())
}

/// A running request. `recomputed` says which known tokens are computed again, and why.
fn slot(id: usize, request: &RunningRequest, context: usize) -> Value {
    let recomputed = match request.recomputed_tokens {
        0 => Value::Null,
        tokens => json!({
            "tokens": tokens,
            "because": format!(
                "the cache has keys and values of {} tokens of this prompt, but states of recurrent layers only of the first {}",
                request.cached_tokens + tokens,
                request.cached_tokens
            ),
        }),
    };
    json!({
        "id": id,
        "id_task": request.number,
        "n_ctx": context,
        "is_processing": true,
        "n_prompt_tokens": request.prompt_tokens,
        "n_prompt_tokens_processed": request.computed_tokens - request.cached_tokens.min(request.computed_tokens),
        "n_prompt_tokens_cache": request.cached_tokens,
        "next_token": [{ "n_decoded": request.generated_tokens }],
        "recomputed": recomputed,
    })
}

/// Token ids of a text.
pub(crate) async fn tokenize(
    Extension(call): Extension<Call>,
    JsonBody(mut fields): JsonBody,
) -> Result<Response, ApiError> {
    let name: Option<String> = fields.take("model")?;
    let lease = call.model(name.as_deref(), None).await?;
    let text: String = fields.need("content")?;
    let adds_ends = fields.take("add_special")?.unwrap_or(false);
    let special = match fields.take("parse_special")?.unwrap_or(true) {
        true => Special::Parse,
        false => Special::Plain,
    };
    let with_pieces = fields.take("with_pieces")?.unwrap_or(false);
    let tokenizer = lease.engine.tokenizer().clone();
    tokenizer.check(&text).map_err(|error| ApiError::invalid(error.to_string()))?;
    let ids = blocking(move || tokenizer.encode(&text, special, adds_ends)).await?;
    let tokenizer = lease.engine.tokenizer();
    let piece = |id: &u32| {
        let bytes = tokenizer.token_bytes(*id).unwrap_or_default().into_owned();
        let piece = String::from_utf8(bytes)
            .map_or_else(|error| json!(error.into_bytes()), |text| json!(text));
        json!({ "id": id, "piece": piece })
    };
    let tokens = match with_pieces {
        true => ids.iter().map(piece).collect::<Value>(),
        false => json!(ids),
    };
    Ok(Json(json!({ "tokens": tokens })).into_response())
}

/// The text of token ids.
pub(crate) async fn detokenize(
    Extension(call): Extension<Call>,
    JsonBody(mut fields): JsonBody,
) -> Result<Response, ApiError> {
    let name: Option<String> = fields.take("model")?;
    let lease = call.model(name.as_deref(), None).await?;
    let ids: Vec<u32> = fields.need("tokens")?;
    let text = lease.engine.tokenizer().decode(&ids);
    Ok(Json(json!({ "content": text })).into_response())
}

/// The prompt of a conversation.
pub(crate) async fn apply_template(
    Extension(call): Extension<Call>,
    JsonBody(mut fields): JsonBody,
) -> Result<Response, ApiError> {
    let name: Option<String> = fields.take("model")?;
    let lease = call.model(name.as_deref(), None).await?;
    let sent: Vec<Map<String, Value>> = fields.need("messages")?;
    let messages = messages::read(sent)?;
    let end = messages::prompt_end(&mut fields, &messages)?;
    let template = lease.engine.chat_template();
    let tools = tools::read(fields.take("tools")?, fields.take("tool_choice")?)?;
    let request = tools::request(tools.as_ref(), messages, template);
    let messages = if let Prompt::Chat(messages) = request.prompt { messages } else { Vec::new() };
    let mut variables = request.template_variables;
    variables
        .extend(fields.take::<Map<String, Value>>("chat_template_kwargs")?.unwrap_or_default());
    let options = ChatOptions {
        add_generation_prompt: end == PromptEnd::NewMessage,
        continue_final_message: end == PromptEnd::LastMessage,
        variables,
        ..ChatOptions::default()
    };
    let engine = lease.engine.clone();
    let rendered: Option<Result<String, ChatError>> = blocking(move || {
        engine.chat_template().map(|template| template.render_with(&messages, &options))
    })
    .await?;
    match rendered {
        Some(prompt) => Ok(Json(json!({ "prompt": prompt.map_err(Error::from)? })).into_response()),
        None => Err(ApiError::new(
            StatusCode::BAD_REQUEST,
            "no_chat_template",
            "the model has no chat template",
        )),
    }
}
