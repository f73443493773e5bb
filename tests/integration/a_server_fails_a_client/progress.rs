//! How much of a prompt is computed, told before the first token.

use lapwing::serve::Server;
use lapwing::{Engine, EngineBuilder, Prompt, PromptProgress, Request, TokenEvent};
use serde_json::{Value, json};

use super::{Answer, local, start, tiny};

/// Ids of a prompt of 100 tokens.
fn ids() -> Vec<u32> {
    (0..100).map(|at| 3 + at * 7 % 90).collect()
}

/// A model that reads 16 tokens of a prompt at once.
fn engine() -> EngineBuilder {
    Engine::builder().model(tiny("llama.gguf")).threads(1).chunk_rows(16)
}

/// Asserts that reports go from what is cached to all of the prompt.
fn assert_complete(reports: &[(u64, u64, u64)]) {
    let [(total, cached, first), .., (_, _, last)] = reports[..] else { panic!("{reports:?}") };
    assert_eq!((first, last), (cached, total), "{reports:?}");
    assert!(reports.is_sorted_by(|a, b| a.2 < b.2), "{reports:?}");
    assert!(reports.iter().all(|report| (report.0, report.1) == (total, cached)), "{reports:?}");
}

/// The reports of a stream, which precede its text.
fn reports(answer: &Answer) -> Vec<(u64, u64, u64)> {
    let events = answer.events();
    let is_report = |event: &&Value| event.get("prompt_progress").is_some();
    let has_text = |event: &Value| {
        let choice = &event["choices"][0];
        [&choice["text"], &choice["delta"]["content"]]
            .iter()
            .any(|text| text.as_str().is_some_and(|text| !text.is_empty()))
    };
    let texts = events.iter().position(has_text).expect("a text");
    assert!(events[texts..].iter().all(|event| !is_report(&event)), "{events:?}");
    let reports = events.iter().filter(is_report).map(|event| &event["prompt_progress"]);
    reports
        .map(|report| {
            assert!(report["time_ms"].is_u64(), "{report}");
            let number = |name: &str| report[name].as_u64().expect("a number");
            (number("total"), number("cache"), number("processed"))
        })
        .collect()
}

#[tokio::test]
async fn a_stream_tells_how_much_of_its_prompt_is_computed_if_it_is_asked() {
    let running = start(Server::builder().model("tiny", engine()).config(local())).await;
    let client = &running.client;
    let body = |more: Value| {
        let mut body =
            json!({ "prompt": ids(), "max_tokens": 8, "temperature": 0, "stream": true });
        let more = more.as_object().expect("an object").clone();
        body.as_object_mut().expect("an object").extend(more);
        body
    };
    let plain = client.post("/v1/completions", &body(json!({ "cache_prompt": false }))).await;
    assert_eq!(reports(&plain), []);
    let asked = json!({ "return_progress": true });
    let first = reports(&client.post("/v1/completions", &body(asked.clone())).await);
    assert_complete(&first);
    assert_eq!((first[0].0, first[0].1), (100, 0), "{first:?}");
    let again = reports(&client.post("/v1/completions", &body(asked)).await);
    assert_complete(&again);
    assert!(again[0].1 > 0, "the prefix is cached: {again:?}");
    let whole = json!({ "return_progress": true, "stream": false });
    let whole = client.post("/v1/completions", &body(whole)).await;
    assert!(whole.headers.contains("x-ignored-fields: return_progress"), "{whole:?}");
    running.stop().await;
}

#[tokio::test]
async fn reports_are_no_tokens_of_a_stream() {
    let engine = engine().prefix_cache(false).build().await.expect("an engine");
    let request = || Request::new(Prompt::Ids(ids())).greedy().max_tokens(8);
    let mut plain = engine.generate(request()).await.expect("a stream");
    let mut expected = Vec::new();
    while let Some(token) = plain.next().await {
        expected.push(token.expect("a token"));
    }
    let asked = || engine.generate(request().prompt_progress(true));
    let mut tokens = Vec::new();
    let mut stream = asked().await.expect("a stream");
    while let Some(token) = stream.next().await {
        tokens.push(token.expect("a token"));
    }
    assert_eq!(tokens, expected);
    let (mut tokens, mut reports) = (Vec::new(), Vec::new());
    let mut stream = asked().await.expect("a stream");
    while let Some(event) = stream.next_event().await {
        match event.expect("an event") {
            TokenEvent::Prompt(PromptProgress { tokens: total, cached, computed, .. }) => {
                assert!(tokens.is_empty(), "a report after a token");
                reports.push((total as u64, cached as u64, computed as u64));
            }
            TokenEvent::Token(token) => tokens.push(token),
        }
    }
    assert_eq!(tokens, expected);
    assert_complete(&reports);
    let mut stream = asked().await.expect("a stream");
    let blocking: Vec<_> = std::thread::scope(|scope| {
        let read = scope.spawn(|| stream.blocking().map(|token| token.expect("a token")).collect());
        read.join().expect("tokens")
    });
    assert_eq!(blocking, expected);
}
