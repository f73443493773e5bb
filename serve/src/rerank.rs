//! `POST /v1/rerank`, in the form of Jina and Cohere.

use axum::Json;
use axum::extract::Extension;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::app::Call;
use super::body::{JsonBody, name_ignored};
use super::error::ApiError;
use super::models::ModelLease;
use lapwing_engine::{Ranking, RerankRequest};

/// Most documents of a request.
const DOCUMENTS_MAX: usize = 2048;

/// A text, or an object with one.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Document {
    Text(String),
    Object { text: String },
}

#[derive(Serialize)]
struct RankingJson {
    object: &'static str,
    model: String,
    results: Vec<ResultJson>,
    usage: UsageJson,
}

#[derive(Serialize)]
struct ResultJson {
    index: usize,
    relevance_score: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<DocumentJson>,
}

#[derive(Serialize)]
struct DocumentJson {
    text: String,
}

#[derive(Serialize)]
struct UsageJson {
    prompt_tokens: usize,
    total_tokens: usize,
}

impl Document {
    fn into_text(self) -> String {
        match self {
            Document::Text(text) | Document::Object { text } => text,
        }
    }
}

/// Orders documents by how well they answer a query.
pub(crate) async fn rerank(
    Extension(call): Extension<Call>,
    JsonBody(mut fields): JsonBody,
) -> Result<Response, ApiError> {
    let name: Option<String> = fields.take("model")?;
    let lease = call.model(name.as_deref(), None).await?;
    let query: String = fields.need("query")?;
    let documents: Vec<Document> = fields.need("documents")?;
    let documents: Vec<String> = documents.into_iter().map(Document::into_text).collect();
    if documents.is_empty() || documents.len() > DOCUMENTS_MAX {
        let message =
            format!("documents has {} texts, but must have 1 to {DOCUMENTS_MAX}", documents.len());
        return Err(ApiError::field("documents", message));
    }
    let top: Option<usize> = fields.take("top_n")?;
    if top == Some(0) {
        return Err(ApiError::field("top_n", "top_n must be at least 1"));
    }
    let is_returned = fields.take("return_documents")?.unwrap_or(false);
    let client = call.caller.client(fields.take("user")?);
    let ignored = fields.rest();
    let _permit = call.app.clients.admit(&client)?;
    let request = RerankRequest::new(query, documents.clone()).client(client.as_str());
    let ranking = tokio::select! {
        ranking = lease.engine.rerank(request) => ranking?,
        error = call.clone().interrupted() => return Err(error),
    };
    let documents = is_returned.then_some(documents);
    let mut response = Json(described(&lease, ranking, top, documents)).into_response();
    name_ignored(&call, &mut response, &ignored);
    Ok(response)
}

/// The best `top` documents, with their texts if these are given.
fn described(
    lease: &ModelLease,
    ranking: Ranking,
    top: Option<usize>,
    mut documents: Option<Vec<String>>,
) -> RankingJson {
    let tokens = ranking.tokens;
    let best = ranking.documents.into_iter().take(top.unwrap_or(usize::MAX));
    let results = best.map(|found| ResultJson {
        index: found.index,
        relevance_score: found.score,
        document: documents
            .as_mut()
            .and_then(|documents| documents.get_mut(found.index))
            .map(|text| DocumentJson { text: std::mem::take(text) }),
    });
    RankingJson {
        object: "list",
        model: lease.name().to_owned(),
        results: results.collect(),
        usage: UsageJson { prompt_tokens: tokens, total_tokens: tokens },
    }
}
