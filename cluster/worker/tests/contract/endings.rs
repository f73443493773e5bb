//! How answers and workers end.

use std::time::Duration;

use dynamo_backend_common::LLMEngine;
use futures::StreamExt;
use lapwing_worker::LapwingWorker;
use serde_json::{Value, json};

use crate::{ask, refused, started};

/// A request for more tokens than it ever gets.
fn long() -> Value {
    json!({
        "token_ids": [10, 11, 12],
        "stop_conditions": { "max_tokens": 200, "ignore_eos": true },
    })
}

async fn until_idle(worker: &LapwingWorker) {
    let idle = async {
        while worker.is_quiescent().await.expect("an answer") != Some(true) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), idle).await.expect("it becomes idle");
}

#[tokio::test]
async fn an_answer_that_nobody_reads_any_more_frees_its_pages() {
    let worker = started(&[]).await;
    let mut answer = ask(&worker, long()).await;
    answer.next().await.expect("an item").expect("tokens");
    assert_eq!(worker.is_quiescent().await.expect("an answer"), Some(false));
    drop(answer);
    until_idle(&worker).await;
    let stats = worker.engine().expect("an engine").stats().await.expect("stats");
    assert_eq!((stats.running, stats.kv_pages_leased), (0, 0));
}

#[tokio::test]
async fn more_requests_than_a_worker_takes_are_for_others() {
    let worker = started(&["--requests", "2", "--parallel", "1"]).await;
    let one = ask(&worker, long()).await;
    let two = ask(&worker, long()).await;
    let error = refused(&worker, long()).await;
    assert_eq!(error.reason().as_str(), "capacity.worker_overloaded");
    drop((one, two));
    until_idle(&worker).await;
    let item = ask(&worker, long()).await.next().await.expect("an item");
    assert!(!item.expect("room again").token_ids.is_empty());
}

#[tokio::test]
async fn a_worker_that_ends_lets_its_answers_end_and_takes_no_more() {
    let worker = started(&[]).await;
    let answer = ask(&worker, long()).await;
    let reader = tokio::spawn(answer.collect::<Vec<_>>());
    worker.cleanup().await.expect("an end");
    let items = reader.await.expect("a reader");
    let tokens: usize = items.iter().flatten().map(|item| item.token_ids.len()).sum();
    assert_eq!(tokens, 200);
    let error = refused(&worker, long()).await;
    assert_eq!(error.reason().as_str(), "backend.engine_shutdown");
}
