//! `/v1/rerank`: documents in the order of the library's scores.

use lapwing::serve::Server;
use lapwing::{Engine, RerankRequest};
use serde_json::{Value, json};

use super::{local, start, with_llama};
use crate::encoder::Encoder;

#[tokio::test]
async fn documents_come_in_the_order_of_the_library_s_scores() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = Encoder::ranking().file(&folder.path().join("bert.gguf"), false);
    let builder = || Engine::builder().model(&path).threads(1);
    let running = start(Server::builder().model("ranker", builder()).config(local())).await;
    let client = &running.client;
    let documents = ["a small ship", "rice", "a bowl of red rice", "boat"];
    let engine = builder().build().await.expect("an engine");
    let wanted = engine.rerank(RerankRequest::new("a boat", documents)).await.expect("a ranking");
    let body = json!({ "model": "ranker", "query": "a boat", "documents": documents });
    for path in ["/v1/rerank", "/rerank"] {
        let found = client.post(path, &body).await.json();
        let results = found["results"].as_array().expect("results");
        assert_eq!(results.len(), 4, "{found}");
        for (found, wanted) in results.iter().zip(&wanted.documents) {
            assert_eq!(found["index"], wanted.index);
            assert_eq!(
                found["relevance_score"].as_f64().map(|score| score as f32),
                Some(wanted.score)
            );
            assert_eq!(found["document"], Value::Null);
        }
        assert_eq!((&found["model"], &found["object"]), (&json!("ranker"), &json!("list")));
        assert_eq!(found["usage"]["total_tokens"], wanted.tokens, "{found}");
    }
    let objects: Vec<Value> = documents.iter().map(|text| json!({ "text": text })).collect();
    let body = json!({
        "query": "a boat", "documents": objects, "top_n": 2, "return_documents": true, "truncation": true,
    });
    let answer = client.post("/v1/rerank", &body).await;
    assert!(answer.headers.contains("x-ignored-fields: truncation"), "{answer:?}");
    let results = answer.json()["results"].clone();
    assert_eq!(results.as_array().map(Vec::len), Some(2), "{results}");
    for (at, wanted) in wanted.documents.iter().take(2).enumerate() {
        assert_eq!(results[at]["document"]["text"], documents[wanted.index], "{results}");
    }
    running.stop().await;
}

#[tokio::test]
async fn a_wrong_request_and_a_model_without_a_head_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = Encoder::ranking().file(&folder.path().join("bert.gguf"), false);
    let builder = Engine::builder().model(&path).threads(1);
    let running = start(Server::builder().model("ranker", builder).config(local())).await;
    for (body, named) in [
        (json!({ "documents": ["a"] }), "query"),
        (json!({ "query": "a" }), "documents"),
        (json!({ "query": "a", "documents": [] }), "documents"),
        (json!({ "query": "a", "documents": [7] }), "documents"),
        (json!({ "query": "a", "documents": ["b"], "top_n": 0 }), "top_n"),
        (json!({ "query": "a", "documents": vec!["b"; 2049] }), "documents"),
        (json!({ "query": "a", "documents": ["boat ".repeat(50)] }), "context"),
    ] {
        let answer = running.client.post("/v1/rerank", &body).await;
        let message = answer.json()["error"]["message"].clone();
        assert_eq!(answer.status, 400, "{message}");
        assert!(message.as_str().is_some_and(|message| message.contains(named)), "{message}");
    }
    running.stop().await;
    let running = start(with_llama(local())).await;
    let body = json!({ "query": "a", "documents": ["b"] });
    let answer = running.client.post("/v1/rerank", &body).await;
    let message = answer.json()["error"]["message"].clone();
    assert_eq!(answer.status, 400, "{message}");
    assert!(message.as_str().is_some_and(|message| message.contains("no reranker")), "{message}");
    running.stop().await;
}
