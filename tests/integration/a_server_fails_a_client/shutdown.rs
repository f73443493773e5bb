//! The end of the server while requests run.

use serde_json::json;

use super::client::read;
use super::{local, start, with_llama, with_slow_llama};

#[tokio::test]
async fn answers_that_have_begun_end_whole() {
    let running = start(with_llama(local())).await;
    let body = json!({ "prompt": "ab", "max_tokens": 200, "ignore_eos": true, "stream": true });
    let mut streams = Vec::new();
    for _ in 0..8 {
        streams.push(running.client.send("POST", "/v1/completions", &body.to_string()).await);
    }
    for stream in &streams {
        stream.readable().await.expect("it has begun");
    }
    let client = running.client.clone();
    let readers: Vec<_> = streams.into_iter().map(|stream| tokio::spawn(read(stream))).collect();
    running.stop().await;
    for reader in readers {
        let answer = reader.await.expect("no panic");
        assert!(answer.body.ends_with("data: [DONE]\n\n"), "{answer:?}");
        assert!(answer.body.contains("\"finish_reason\":\"length\""));
    }
    let refused = tokio::net::TcpStream::connect(client.address()).await;
    assert!(refused.is_err(), "the port is closed");
}

#[tokio::test]
async fn answers_that_take_too_long_end_with_an_error() {
    let mut config = local();
    config.grace_s = 0.2;
    let running = start(with_slow_llama(config)).await;
    let endless =
        json!({ "prompt": "ab", "max_tokens": 1_000_000, "ignore_eos": true, "stream": true });
    let stream = running.client.send("POST", "/v1/completions", &endless.to_string()).await;
    stream.readable().await.expect("it has begun");
    let reader = tokio::spawn(read(stream));
    running.stop().await;
    let answer = reader.await.expect("no panic");
    let last = answer.events().pop().expect("an event");
    assert_eq!(last["error"]["code"], "shutting_down", "{last}");
    assert!(!answer.body.contains("[DONE]"));
}
