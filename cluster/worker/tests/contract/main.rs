//! The contract of Dynamo's workers, on a model of a few kilobytes.

mod answers;
mod endings;

use clap::Parser;
use dynamo_backend_common::engine::GenerateContext;
use dynamo_backend_common::testing::{mock_context, run_conformance};
use dynamo_backend_common::{DynamoError, LLMEngine, LLMEngineOutput, PreprocessedRequest};
use futures::stream::{BoxStream, StreamExt};
use lapwing_cli::engine_options::Offer;
use lapwing_serve::KvEventsConfig;
use lapwing_worker::{LapwingWorker, Options};
use serde_json::Value;

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/reference/tiny/llama.gguf");

type Items = BoxStream<'static, Result<LLMEngineOutput, DynamoError>>;

/// The tiny model with these options.
async fn offer(more: &[&str]) -> Offer {
    let words = ["lapwing-worker", "--no-packed-cache", "--threads", "1", "-m", MODEL];
    let options = Options::parse_from(words.iter().chain(more));
    options.engine.offer(&format!("tiny={MODEL}")).await.expect("the model")
}

fn worker(offer: &Offer) -> LapwingWorker {
    LapwingWorker::new(offer.clone(), KvEventsConfig::default())
}

/// A worker that has been started.
async fn started(more: &[&str]) -> LapwingWorker {
    let worker = worker(&offer(more).await);
    worker.start(0).await.expect("a start");
    worker
}

fn request(fields: Value) -> PreprocessedRequest {
    serde_json::from_value(fields).expect("a request")
}

/// The answer to a request.
async fn ask(worker: &LapwingWorker, fields: Value) -> Items {
    let context = GenerateContext::new(mock_context(), None);
    worker.generate(request(fields), context).await.expect("a stream")
}

/// The error of a request that is refused, which is its only item.
async fn refused(worker: &LapwingWorker, fields: Value) -> DynamoError {
    let mut items: Vec<_> = ask(worker, fields).await.collect().await;
    assert_eq!(items.len(), 1);
    items.remove(0).expect_err("it is refused")
}

/// The items of an answer that has no error.
async fn items(worker: &LapwingWorker, fields: Value) -> Vec<LLMEngineOutput> {
    let items: Vec<_> = ask(worker, fields).await.collect().await;
    items.into_iter().collect::<Result<_, _>>().expect("no error")
}

#[tokio::test]
async fn a_worker_satisfies_all_checks_of_dynamos_kit() {
    let offer = offer(&[]).await;
    run_conformance(|| worker(&offer)).await.expect("the contract");
}
