//! The server has a span for each HTTP request, with its place in the caller's trace and the engine's request below it.

use std::sync::{Arc, Mutex};

use lapwing::serve::{ServeConfig, ServeError, Server};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tracing::Level;
use tracing_subscriber::filter::LevelFilter;

use super::watch::Watch;
use super::{plain, until};

#[path = "../integration/a_server_fails_a_client/client.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod client;

use client::Client;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

/// What the program is told of callers' traces.
type Adopted = Arc<Mutex<Vec<(String, bool)>>>;

struct Running {
    client: Client,
    adopted: Adopted,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), ServeError>>,
}

async fn start() -> Running {
    let mut config = ServeConfig::default();
    config.listen = "127.0.0.1:0".to_owned();
    let adopted = Adopted::default();
    let told = Arc::clone(&adopted);
    let builder = Server::builder().model("tiny", plain()).config(config).on_trace_parent(
        move |span, parent| {
            let is_enabled = !span.is_disabled();
            told.lock().expect("no panic").push((parent.to_string(), is_enabled));
        },
    );
    let server = builder.bind().await.expect("a server");
    let client = Client::new(server.address());
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(server.run(async { drop(stopped.await) }));
    Running { client, adopted, stop, task }
}

impl Running {
    async fn stop(self) {
        drop(self.stop);
        self.task.await.expect("no panic").expect("no error");
    }
}

#[tokio::test]
async fn an_answer_is_below_the_span_of_its_http_request() {
    let watch = Watch::up_to(LevelFilter::INFO);
    let server = start().await;
    let client = server.client.with(&format!("traceparent: 00-{TRACE}-{SPAN}-01"));
    let client = client.with("x-request-id: mine");
    for is_streamed in [false, true] {
        let body = json!({
            "model": "tiny", "prompt": "a b", "max_tokens": 3, "ignore_eos": true, "stream": is_streamed,
        });
        let answer = client.post("/v1/completions", &body).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(!answer.headers.contains("traceparent"), "{}", answer.headers);
    }
    until("all spans are closed", || watch.seen().iter().all(|span| span.is_closed)).await;
    let (https, requests) = (watch.named("http"), watch.named("request"));
    assert_eq!((https.len(), requests.len()), (2, 2), "{:#?}", watch.seen());
    for ((number, http), (_, request)) in https.iter().zip(&requests) {
        assert_eq!((http.parent, http.level), (None, Level::INFO));
        let expected = [
            ("otel.kind", "server"),
            ("otel.name", "POST /v1/completions"),
            ("http.request.method", "POST"),
            ("http.route", "/v1/completions"),
            ("url.path", "/v1/completions"),
            ("http.response.status_code", "200"),
            ("request_id", "mine"),
            ("trace_id", TRACE),
            ("parent_id", SPAN),
            ("trace_sampled", "true"),
            ("error.type", ""),
        ];
        for (field, value) in expected {
            assert_eq!(http.field(field), value, "{field}");
        }
        assert_eq!(request.parent, Some(*number));
        assert_eq!(request.field("gen_ai.response.finish_reasons"), "length");
        assert_eq!(request.field("gen_ai.usage.output_tokens"), "3");
    }
    let told = server.adopted.lock().expect("no panic").clone();
    assert_eq!(told, vec![(format!("00-{TRACE}-{SPAN}-01"), true); 2]);
    server.stop().await;
}

#[tokio::test]
async fn a_client_without_a_valid_trace_begins_one_of_its_own() {
    let watch = Watch::up_to(LevelFilter::INFO);
    let server = start().await;
    let wrong = format!("traceparent: 00-{}-{SPAN}-01", "0".repeat(32));
    let twice = format!("traceparent: 00-{TRACE}-{SPAN}-01\r\ntraceparent: 00-{TRACE}-{SPAN}-01");
    let clients = [server.client.clone(), server.client.with(&wrong), server.client.with(&twice)];
    for client in &clients {
        assert_eq!(client.get("/v1/models").await.status, 200);
    }
    let https = watch.named("http");
    assert_eq!(https.len(), 3);
    for (_, http) in &https {
        assert_eq!((http.field("trace_id"), http.field("parent_id")), ("", ""));
        assert!(http.field("request_id").starts_with("req-"), "{http:?}");
    }
    assert!(server.adopted.lock().expect("no panic").is_empty());
    server.stop().await;
}

#[tokio::test]
async fn a_refused_request_has_a_span_with_its_status() {
    let watch = Watch::up_to(LevelFilter::INFO);
    let server = start().await;
    assert_eq!(server.client.get("/nowhere/17").await.status, 404);
    assert_eq!(server.client.post("/v1/completions", &json!({"prompt": 3.5})).await.status, 400);
    let https = watch.named("http");
    let said: Vec<_> = https
        .iter()
        .map(|(_, http)| {
            ["http.response.status_code", "http.route", "otel.name"].map(|it| http.field(it))
        })
        .collect();
    assert_eq!(said, [["404", "", ""], ["400", "/v1/completions", "POST /v1/completions"]]);
    server.stop().await;
}
