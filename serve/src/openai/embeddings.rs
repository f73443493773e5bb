//! `POST /v1/embeddings`.

use axum::Json;
use axum::extract::Extension;
use axum::response::{IntoResponse, Response};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde::Serialize;

use super::Inputs;
use crate::app::Call;
use crate::body::{JsonBody, name_ignored};
use crate::error::ApiError;
use lapwing_engine::Engine;
use lapwing_engine::{EmbedRequest, Embedding, Pooling};

/// Most inputs of a request.
const INPUTS_MAX: usize = 2048;

#[derive(Serialize)]
struct ListJson {
    object: &'static str,
    data: Vec<EmbeddingJson>,
    model: String,
    usage: UsageJson,
}

#[derive(Serialize)]
struct EmbeddingJson {
    object: &'static str,
    index: usize,
    embedding: Values,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Values {
    Floats(Vec<f32>),
    Base64(String),
}

#[derive(Serialize)]
struct UsageJson {
    prompt_tokens: usize,
    total_tokens: usize,
}

/// Embeds texts.
pub(crate) async fn embeddings(
    Extension(call): Extension<Call>,
    JsonBody(mut fields): JsonBody,
) -> Result<Response, ApiError> {
    let name: Option<String> = fields.take("model")?;
    let lease = call.model(name.as_deref(), None).await?;
    let base64 = match fields.take::<String>("encoding_format")?.as_deref() {
        None | Some("float") => false,
        Some("base64") => true,
        Some(other) => {
            let message = format!("encoding_format is '{other}', but must be float or base64");
            return Err(ApiError::field("encoding_format", message));
        }
    };
    let dimensions: Option<usize> = fields.take("dimensions")?;
    let inputs: Inputs = fields.need("input")?;
    let client = call.caller.client(fields.take("user")?);
    let ignored = fields.rest();
    let _permit = call.app.clients.admit(&client)?;
    let embedded = embed(&call, &lease.engine, inputs, &client, dimensions).await?;
    let tokens = embedded.iter().map(|embedding| embedding.tokens).sum();
    let data = embedded.into_iter().enumerate().map(|(index, embedding)| EmbeddingJson {
        object: "embedding",
        index,
        embedding: match base64 {
            true => Values::Base64(encode(&embedding.values)),
            false => Values::Floats(embedding.values),
        },
    });
    let list = ListJson {
        object: "list",
        data: data.collect(),
        model: lease.name().to_owned(),
        usage: UsageJson { prompt_tokens: tokens, total_tokens: tokens },
    };
    let mut response = Json(list).into_response();
    name_ignored(&call, &mut response, &ignored);
    Ok(response)
}

/// The embeddings of `inputs`, each of length 1, cut to so many dimensions before.
///
/// # Errors
/// When an input is empty or too long, there are too many, or the time of the request is over.
pub(crate) async fn embed(
    call: &Call,
    engine: &Engine,
    inputs: Inputs,
    client: &str,
    dimensions: Option<usize>,
) -> Result<Vec<Embedding>, ApiError> {
    let requests: Vec<EmbedRequest> =
        inputs.into_prompts().into_iter().map(EmbedRequest::new).collect();
    if requests.is_empty() || requests.len() > INPUTS_MAX {
        let message =
            format!("input has {} texts, but must have 1 to {INPUTS_MAX}", requests.len());
        return Err(ApiError::field("input", message));
    }
    let width = engine.embedding_width();
    if dimensions.is_some_and(|dimensions| dimensions == 0 || dimensions > width) {
        let message = format!(
            "dimensions must be between 1 and {width}, the width of the model's embeddings"
        );
        return Err(ApiError::field("dimensions", message));
    }
    // A vector for each token is not what this interface is for.
    let pooling = Some(engine.pooling()?).filter(|pooling| *pooling != Pooling::None);
    let pooling = pooling.unwrap_or(Pooling::Mean);
    let requests = requests.into_iter();
    let requests = requests.map(|request| request.pooling(pooling).normalized().client(client));
    let embedded = tokio::select! {
        embedded = engine.embed_batch(requests) => embedded?,
        error = call.clone().interrupted() => return Err(error),
    };
    let cut = |mut embedding: Embedding| {
        if let Some(dimensions) = dimensions.filter(|dimensions| *dimensions < width) {
            embedding.values.truncate(dimensions);
            let length = embedding.values.iter().map(|x| x * x).sum::<f32>().sqrt();
            embedding.values.iter_mut().for_each(|x| *x /= length.max(f32::MIN_POSITIVE));
        }
        embedding
    };
    Ok(embedded.into_iter().map(cut).collect())
}

/// Little-endian floats in base64.
fn encode(values: &[f32]) -> String {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    BASE64_STANDARD.encode(bytes)
}
