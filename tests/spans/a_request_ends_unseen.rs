//! A request has a span below its caller's, which ends when the request ends, and says what it took.

use lapwing::{Engine, Request, Shutdown};
use tracing::{Instrument, Level, info_span};
use tracing_subscriber::filter::LevelFilter;

use super::watch::Watch;
use super::{PROMPT, plain, read, request, slow, until};

#[tokio::test]
async fn a_request_is_below_the_span_of_its_caller_and_says_what_it_took() {
    let watch = Watch::up_to(LevelFilter::INFO);
    let engine = plain().build().await.expect("an engine");
    async {
        for _ in 0..2 {
            let request = request(4).client("ada");
            let stream = engine.generate(request).await.expect("a stream");
            assert_eq!(read(stream).await, 4);
        }
    }
    .instrument(info_span!("caller"))
    .await;
    let (caller, _) = watch.only("caller");
    let requests = watch.named("request");
    assert_eq!(requests.len(), 2);
    for (nth, (_, seen)) in requests.iter().enumerate() {
        assert_eq!((seen.parent, seen.level, seen.is_closed), (Some(caller), Level::INFO, true));
        let expected = [
            ("gen_ai.operation.name", "text_completion"),
            ("gen_ai.provider.name", "lapwing"),
            ("gen_ai.request.model", "llama"),
            ("gen_ai.request.max_tokens", "4"),
            ("gen_ai.response.finish_reasons", "length"),
            ("gen_ai.usage.input_tokens", "5"),
            ("gen_ai.usage.output_tokens", "4"),
            ("client", "ada"),
            ("error.type", ""),
        ];
        for (field, value) in expected {
            assert_eq!(seen.field(field), value, "{field}");
        }
        assert_eq!(seen.number("id"), nth as f64);
        assert!(seen.number("gen_ai.response.time_to_first_chunk") > 0.0);
        let cached = seen.number("gen_ai.usage.cache_read.input_tokens");
        assert_eq!(cached > 0.0, nth == 1, "{cached} cached tokens");
    }
    // Nothing below the level of requests was made.
    assert_eq!(watch.seen().len(), 3, "{:#?}", watch.seen());
}

#[test]
fn a_request_of_a_program_without_a_runtime_is_below_the_span_of_its_thread() {
    let watch = Watch::up_to(LevelFilter::INFO);
    let engine = plain().build_blocking().expect("an engine");
    let entered = info_span!("caller").entered();
    let mut stream = engine.generate_blocking(request(3)).expect("a stream");
    assert_eq!(stream.blocking().count(), 3);
    drop(entered);
    let (caller, _) = watch.only("caller");
    let (_, seen) = watch.only("request");
    assert_eq!((seen.parent, seen.is_closed), (Some(caller), true));
    assert_eq!(seen.field("client"), "anonymous");
}

#[tokio::test]
async fn a_dropped_stream_ends_its_span_as_cancelled() {
    let watch = Watch::up_to(LevelFilter::DEBUG);
    let engine = slow().build().await.expect("an engine");
    let mut stream = engine.generate(request(40)).await.expect("a stream");
    for _ in 0..2 {
        stream.next().await.expect("a token").expect("no error");
    }
    drop(stream);
    until("the span is closed", || watch.only("request").1.is_closed).await;
    let (_, seen) = watch.only("request");
    assert_eq!(seen.field("gen_ai.response.finish_reasons"), "cancelled");
    assert_eq!(seen.field("gen_ai.usage.input_tokens"), "5");
    assert_eq!(seen.field("gen_ai.usage.output_tokens"), "2");
    assert!(seen.number("gen_ai.response.time_to_first_chunk") > 0.0);
    let milestones: Vec<_> = seen.events.iter().map(|event| &event["milestone"][..]).collect();
    assert_eq!(milestones, ["submitted", "admitted", "cancelled"]);
}

#[tokio::test]
async fn a_stream_that_is_dropped_after_its_last_token_was_not_cancelled() {
    let watch = Watch::up_to(LevelFilter::INFO);
    let engine = plain().build().await.expect("an engine");
    let mut stream = engine.generate(request(2)).await.expect("a stream");
    for _ in 0..2 {
        stream.next().await.expect("a token").expect("no error");
    }
    drop(stream);
    until("the span is closed", || watch.only("request").1.is_closed).await;
    assert_eq!(watch.only("request").1.field("gen_ai.response.finish_reasons"), "length");
}

#[tokio::test]
async fn a_request_that_fails_says_why() {
    let watch = Watch::up_to(LevelFilter::INFO);
    let engine = plain().build().await.expect("an engine");
    let invalid = request(2).temperature(-1.0);
    engine.generate(invalid).await.expect_err("a temperature below 0");
    let long = Request::new(lapwing::Prompt::Ids(vec![1; engine.context() + 1]));
    engine.generate(long).await.expect_err("a prompt that is too long");
    engine.shutdown(Shutdown::Drain).await.expect("an end");
    engine.generate(request(2)).await.expect_err("an engine that has ended");
    let requests = watch.named("request");
    let kinds: Vec<_> = requests.iter().map(|(_, seen)| seen.field("error.type")).collect();
    assert_eq!(kinds, ["request", "request", "engine"]);
    for (_, seen) in &requests {
        assert!(seen.is_closed);
        assert_eq!(seen.field("gen_ai.response.finish_reasons"), "error");
        assert_eq!(seen.field("otel.status_code"), "ERROR");
        assert_ne!(seen.field("otel.status_description"), "");
    }
}

#[tokio::test]
async fn embeddings_and_scores_are_requests() {
    let watch = Watch::up_to(LevelFilter::INFO);
    let engine: Engine = plain().build().await.expect("an engine");
    engine.embed(PROMPT.to_vec()).await.expect("an embedding");
    engine.score(PROMPT.to_vec(), 1).await.expect("scores");
    let requests = watch.named("request");
    let said: Vec<_> = requests
        .iter()
        .map(|(_, seen)| {
            assert!(seen.is_closed);
            ["gen_ai.operation.name", "gen_ai.response.finish_reasons", "gen_ai.usage.input_tokens"]
                .map(|field| seen.field(field))
        })
        .collect();
    assert_eq!(said, [["embeddings", "embedded", "5"], ["score", "scored", "5"]]);
}
