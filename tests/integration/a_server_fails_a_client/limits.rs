//! Keys, limits, and clients that leave.

use lapwing::serve::{ClientConfig, KeyConfig, ServeConfig, ServeError};
use serde_json::json;

use super::client::read;
use super::{local, start, until, with_llama, with_slow_llama};

fn with_keys() -> ServeConfig {
    let mut config = local();
    let text = "[[keys]]\nclient = \"alice\"\nkey = \"a-key\"\n[[keys]]\nclient = \"bob\"\nkey = \"b-key\"\n\
                [clients.bob]\nrequests_at_once = 1\nweight = 2.0\n";
    let read = ServeConfig::from_toml(text).expect("a configuration");
    config.keys = read.keys;
    config.clients = read.clients;
    config
}

#[tokio::test]
async fn a_request_without_its_key_is_refused() {
    let running = start(with_llama(with_keys())).await;
    let client = &running.client;
    let body = json!({ "prompt": "ab", "max_tokens": 2 });
    for (header, status) in [
        ("x: y", 401),
        ("authorization: Bearer wrong", 401),
        ("authorization: Bearer a-ke", 401),
        ("authorization: Basic a-key", 401),
        ("authorization: Bearer a-key", 200),
        ("Authorization: bearer b-key", 200),
        ("x-api-key: a-key", 200),
    ] {
        let answer = client.with(header).post("/v1/completions", &body).await;
        assert_eq!(answer.status, status, "{header}: {answer:?}");
        assert!(!answer.body.contains("a-key"));
    }
    for (path, status) in [
        ("/health", 200),
        ("/ready", 200),
        ("/", 200),
        ("/metrics", 401),
        ("/v1/models", 401),
        ("/debug/state", 401),
    ] {
        assert_eq!(client.get(path).await.status, status, "{path}");
    }
    let state = client.with("x-api-key: a-key").get("/debug/state").await.json();
    let clients = state["models"][0]["state"]["clients"].as_array().expect("clients").clone();
    let requests = |name: &str| {
        let found = clients.iter().find(|client| client["client"] == name);
        found.and_then(|client| client["requests"].as_u64())
    };
    assert_eq!((requests("alice"), requests("bob")), (Some(2), Some(1)), "{clients:?}");
    running.stop().await;
}

#[tokio::test]
async fn requests_beyond_a_limit_are_told_when_to_come_back() {
    let mut config = with_keys();
    config.requests_max = 2;
    config.body_bytes_max = 4096;
    let running = start(with_slow_llama(config)).await;
    let (alice, bob) =
        (running.client.with("x-api-key: a-key"), running.client.with("x-api-key: b-key"));
    let endless =
        json!({ "prompt": "ab", "max_tokens": 100_000, "ignore_eos": true, "stream": true })
            .to_string();
    let held = bob.send("POST", "/v1/completions", &endless).await;
    held.readable().await.expect("it has begun");
    let second = bob.post("/v1/completions", &json!({ "prompt": "ab" })).await;
    assert_eq!(second.status, 429, "one at a time: {second:?}");
    assert!(second.headers.contains("retry-after: 1") && second.body.contains("bob"), "{second:?}");
    let also_held = alice.send("POST", "/v1/completions", &endless).await;
    also_held.readable().await.expect("it has begun");
    let third = alice.post("/v1/completions", &json!({ "prompt": "ab" })).await;
    assert_eq!((third.status, third.body.contains("queue_full")), (429, true), "{third:?}");
    assert!(third.headers.contains("retry-after:"), "{third:?}");
    drop((held, also_held));
    running.idle_for(&alice).await;
    let large = alice.post("/v1/completions", &json!({ "prompt": "x".repeat(5000) })).await;
    assert_eq!((large.status, large.body.contains("body_too_large")), (413, true), "{large:?}");
    let late = alice.with("x-request-timeout: 0.05");
    let late = late
        .post(
            "/v1/completions",
            &json!({ "prompt": "ab", "max_tokens": 100_000, "ignore_eos": true }),
        )
        .await;
    assert_eq!((late.status, late.body.contains("0.05 s")), (408, true), "{late:?}");
    running.stop().await;
}

#[tokio::test]
async fn requests_beyond_those_computed_at_once_wait() {
    let mut config = local();
    config.sequences_max = 2;
    let running = start(with_slow_llama(config)).await;
    let client = &running.client;
    assert_eq!(client.get("/props").await.json()["total_slots"], 2);
    let endless =
        json!({ "prompt": "ab", "max_tokens": 100_000, "ignore_eos": true, "stream": true })
            .to_string();
    let mut held = Vec::new();
    for _ in 0..2 {
        held.push(client.send("POST", "/v1/completions", &endless).await);
    }
    for stream in &held {
        stream.readable().await.expect("it has begun");
    }
    let waits = client.send("POST", "/v1/completions", &endless).await;
    until("the third request waits", async || {
        let state = client.get("/debug/state").await.json();
        let state = &state["models"][0]["state"];
        assert!(state["running"].as_u64() <= Some(2), "{state}");
        state["running"] == 2 && state["waiting"] == 1
    })
    .await;
    drop(held);
    waits.readable().await.expect("it has begun once the others had left");
    drop(waits);
    running.stop().await;
}

#[tokio::test]
async fn a_client_that_leaves_is_served_no_longer() {
    let running = start(with_slow_llama(local())).await;
    let body = |stream: bool| {
        json!({ "prompt": "ab", "max_tokens": 1_000_000, "ignore_eos": true, "stream": stream })
            .to_string()
    };
    // A neighbour that stays.
    let stays = json!({ "prompt": "abc", "max_tokens": 60, "ignore_eos": true, "temperature": 0 });
    let alone = running.client.post("/v1/completions", &stays).await.json();
    let mut leaving = Vec::new();
    for number in 0..40 {
        leaving.push(running.client.send("POST", "/v1/completions", &body(number % 2 == 0)).await);
    }
    let client = running.client.clone();
    let neighbour =
        tokio::spawn(async move { client.post("/v1/completions", &stays).await.json() });
    // More than run at once: some of them leave from the queue.
    until("more than 16 requests run or wait", async || running.load().await.0 > 16).await;
    drop(leaving);
    assert_eq!(neighbour.await.expect("no panic")["choices"], alone["choices"]);
    running.idle().await;
    let metrics = running.client.get("/metrics").await.body;
    assert!(metrics.contains("finished_reason=\"cancelled\"} 40"), "{metrics}");
    running.stop().await;
}

#[tokio::test]
async fn a_client_that_reads_nothing_holds_no_pages() {
    let mut config = local();
    config.stalled_s = 1.0;
    let running = start(with_llama(config)).await;
    let body = json!({ "prompt": "ab", "max_tokens": 400, "ignore_eos": true, "stream": true, "logprobs": 20, "n": 8 });
    let slow = running.client.send("POST", "/v1/completions", &body.to_string()).await;
    until("its answers are computed", async || running.load().await.0 > 0).await;
    running.idle().await;
    drop(read(slow).await);
    running.stop().await;
}

#[tokio::test]
async fn a_page_of_another_site_cannot_use_the_models() {
    let mut config = local();
    config.cors = vec!["http://friend.example".to_owned()];
    let running = start(with_llama(config)).await;
    let body = json!({ "prompt": "ab", "max_tokens": 1 });
    for (origin, status) in
        [("https://evil.example", 403), ("null", 403), ("http://friend.example", 200)]
    {
        let client = running.client.with(&format!("origin: {origin}"));
        let answer = client.post("/v1/completions", &body).await;
        assert_eq!(answer.status, status, "{origin}: {answer:?}");
        let is_told = answer.headers.contains("access-control-allow-origin: http://friend.example");
        assert_eq!(is_told, status == 200, "{answer:?}");
    }
    running.stop().await;
}

#[tokio::test]
async fn a_server_without_keys_is_not_public() {
    let mut config = ServeConfig::default();
    config.listen = "0.0.0.0:0".to_owned();
    let error = with_llama(config.clone()).bind().await.expect_err("no keys");
    assert!(matches!(error, ServeError::Public { .. }), "{error}");
    config.public = true;
    with_llama(config.clone()).bind().await.expect("it is allowed");
    config.public = false;
    config.keys = with_keys().keys;
    with_llama(config.clone()).bind().await.expect("it has keys");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("keys");
    for (text, good) in
        [("alice k1\n# note\n\nbob k2\n", true), ("alice\n", false), ("a b c\n", false)]
    {
        std::fs::write(&path, text).expect("a file");
        let mut config = local();
        config.key_file = Some(path.clone());
        let bound = with_llama(config).bind().await;
        assert_eq!(bound.is_ok(), good, "{text:?}");
        assert!(bound.is_ok() || bound.is_err_and(|error| error.to_string().contains("line 1")));
    }
    config.keys = Vec::new();
    config.key_file = Some(folder.path().join("absent"));
    with_llama(config).bind().await.expect_err("no file");
}

#[test]
fn a_configuration_names_what_is_wrong() {
    for (text, part) in [
        ("listn = \"x\"", "listn"),
        ("requests_max = \"many\"", "requests_max"),
        ("[[keys]]\nclient = \"a\"", "key"),
        ("[clients.a]\nweigth = 1.0", "weigth"),
    ] {
        let error = ServeConfig::from_toml(text).expect_err(text).to_string();
        assert!(error.contains(part), "{error}");
    }
    let config = ServeConfig::from_toml("keep_alive_s = -1.0\ncors = [\"*\"]").expect("good");
    assert_eq!((config.keep_alive_s, config.cors.len()), (-1.0, 1));
    let _: (KeyConfig, ClientConfig) =
        (KeyConfig { client: "a".into(), key: "secret".into() }, ClientConfig::default());
    let shown = format!("{:?}", KeyConfig { client: "a".into(), key: "secret".into() });
    assert!(!shown.contains("secret"), "{shown}");
}
