//! The engine in the caller's async runtime: it never blocks it, and dropping is sufficient.

use std::time::{Duration, Instant};

use lapwing::{Engine, ErrorKind, Request, Shutdown};

use crate::support::{SMOLLM2, builder, greedy, needs};

/// Counts how often a task of the caller runs while `work` runs, and the longest interval between
/// two runs.
async fn ticks_during<T>(work: impl Future<Output = T>) -> (T, u32, Duration) {
    let mut ticks = tokio::time::interval(Duration::from_millis(5));
    let (mut count, mut longest, mut last) = (0, Duration::ZERO, now());
    tokio::pin!(work);
    loop {
        tokio::select! {
            result = &mut work => return (result, count, longest),
            _ = ticks.tick() => {
                count += 1;
                longest = longest.max(last.elapsed());
                last = now();
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the test watches the real clock")]
fn now() -> Instant {
    Instant::now()
}

async fn answer(engine: &Engine) -> String {
    let stream = engine.generate(greedy("The sea is", 32)).await.expect("a stream");
    stream.into_text().await.expect("a text")
}

async fn load_and_answer_without_blocking() {
    let (engine, _, _) = ticks_during(builder(SMOLLM2).build()).await;
    let engine = engine.expect("an engine");
    let (text, count, _) = ticks_during(answer(&engine)).await;
    assert!(!text.is_empty());
    // A blocked runtime would run the task only at the start and at the end.
    assert!(count > 5, "the caller's task got {count} turns");
}

#[tokio::test]
async fn a_current_thread_runtime_is_never_blocked() {
    needs!(SMOLLM2);
    load_and_answer_without_blocking().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_multi_thread_runtime_is_never_blocked() {
    needs!(SMOLLM2);
    load_and_answer_without_blocking().await;
}

#[tokio::test]
async fn dropping_streams_frees_the_engine_for_others() {
    needs!(SMOLLM2);
    let engine = builder(SMOLLM2).requests_max(3).build().await.expect("an engine");
    for round in 0..3 {
        let mut streams = Vec::new();
        for _ in 0..3 {
            let mut stream = engine.generate(greedy("Once", 500)).await.expect("a stream");
            stream.next().await.expect("a first token").expect("no error");
            streams.push(stream);
        }
        let refused = engine.generate(greedy("Once", 1)).await;
        assert_eq!(refused.err().map(|e| e.kind()), Some(ErrorKind::Busy), "round {round}");
        drop(streams);
        let mut waited = 0;
        while engine.requests() > 0 && waited < 1000 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            waited += 1;
        }
        assert_eq!(engine.requests(), 0, "round {round}");
    }
}

#[tokio::test]
async fn shutdown_drains_or_fails_running_requests_and_refuses_new_ones() {
    needs!(SMOLLM2);
    let engine = builder(SMOLLM2).build().await.expect("an engine");
    let mut stream = engine.generate(greedy("Once", 24)).await.expect("a stream");
    engine.shutdown(Shutdown::Drain).await.expect("a shutdown");
    let mut tokens = 0;
    while let Some(token) = stream.next().await {
        token.expect("a token");
        tokens += 1;
    }
    assert_eq!(tokens, 24);
    let late = engine.generate(greedy("Once", 1)).await;
    assert_eq!(late.err().map(|e| e.kind()), Some(ErrorKind::Engine));
}

#[tokio::test]
async fn impossible_requests_say_why() {
    needs!(SMOLLM2);
    let engine = builder(SMOLLM2).context(64).build().await.expect("an engine");
    let long = Request::text("word ".repeat(100));
    let error = engine.generate(long).await.expect_err("too long");
    assert!(error.is_prompt_too_long() && error.kind() == ErrorKind::Request, "{error:?}");
    assert!(error.to_string().contains("64"), "{error}");
    let hot = greedy("a", 1).top_p(2.0);
    assert!(engine.generate(hot).await.expect_err("refused").to_string().contains("top_p"));
    let missing = Engine::builder().model("/nowhere/model.gguf").build().await;
    assert!(missing.expect_err("no file").to_string().contains("/nowhere/model.gguf"));
}
