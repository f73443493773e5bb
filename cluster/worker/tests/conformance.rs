//! The contract of Dynamo's workers, on a model of a few kilobytes.

use clap::Parser;
use dynamo_backend_common::testing::run_conformance;
use lapwing_worker::{LapwingWorker, Options};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/reference/tiny/llama.gguf");

fn worker() -> LapwingWorker {
    let words = ["lapwing-worker", "--hf", "unread", "--no-packed-cache", "-m"];
    let model = format!("tiny={MODEL}");
    LapwingWorker::new(Options::parse_from(words.into_iter().chain([&*model])))
}

#[tokio::test]
async fn a_worker_satisfies_all_checks_of_dynamos_kit() {
    run_conformance(worker).await.expect("the contract");
}
