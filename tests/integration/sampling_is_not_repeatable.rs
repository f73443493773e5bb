//! Seeds, stop texts, limits and biases, as an embedding application uses them.

use lapwing::{EndReason, Engine, Request, SamplingParams, TokenStream};

use crate::support::{SMOLLM2, builder, needs};

async fn engine() -> Engine {
    builder(SMOLLM2).build().await.expect("an engine")
}

async fn text(engine: &Engine, request: Request) -> String {
    engine.generate(request).await.expect("a stream").into_text().await.expect("a text")
}

async fn drain(mut stream: TokenStream) -> (String, TokenStream) {
    let mut text = String::new();
    while let Some(token) = stream.next().await {
        text.push_str(&token.expect("a token").text);
    }
    (text, stream)
}

#[tokio::test]
async fn the_same_seed_gives_the_same_text_and_no_seed_another() {
    needs!(SMOLLM2);
    let engine = engine().await;
    let hot = SamplingParams { temperature: 1.2, top_k: 0, ..SamplingParams::default() };
    let request = Request::text("Once upon a time").sampling(hot.clone()).max_tokens(24);
    let first = text(&engine, request.clone().seed(7)).await;
    assert_eq!(text(&engine, request.clone().seed(7)).await, first);
    assert_ne!(text(&engine, request.clone().seed(8)).await, first);
    // Parameters without a seed do not bring one.
    let (a, b) = (text(&engine, request.clone()).await, text(&engine, request.clone()).await);
    assert_ne!(a, b);
    // Nor do they remove one that was set before.
    let seeded = Request::text("Once upon a time").seed(7).sampling(hot).max_tokens(24);
    assert_eq!(text(&engine, seeded).await, first);
    let setters = Request::text("Once upon a time").temperature(1.2).top_k(0).max_tokens(24);
    assert_eq!(setters.clone().seed(7).sampling, request.seed(7).sampling);
    assert_ne!(text(&engine, setters.clone()).await, text(&engine, setters).await);
}

#[tokio::test]
async fn the_seed_in_the_summary_repeats_a_run_that_named_none() {
    let engine = engine().await;
    let request = Request::text("Once upon a time").temperature(1.2).top_k(0).max_tokens(24);
    let stream = engine.generate(request.clone()).await.expect("a stream");
    let (drawn, (free, stream)) = (stream.seed(), drain(stream).await);
    let seed = stream.summary().expect("an end").seed;
    assert_eq!(seed, drawn);
    assert_eq!(text(&engine, request.seed(seed)).await, free);
}

#[tokio::test]
async fn a_stop_text_ends_the_answer_and_is_left_out() {
    needs!(SMOLLM2);
    let engine = engine().await;
    let request = Request::text("One, two, three, four,").greedy().max_tokens(40);
    let whole = text(&engine, request.clone()).await;
    let stop = whole.split_whitespace().nth(2).expect("three words").to_owned();
    let stream = engine.generate(request.stop(stop.clone())).await.expect("a stream");
    let (stopped, stream) = drain(stream).await;
    assert_eq!(stopped, whole[..whole.find(&stop).expect("it is there")]);
    let summary = stream.summary().expect("an end");
    assert_eq!(summary.reason, EndReason::StopText(stop));
    assert!(summary.times.generated_tokens > 0);
}

#[tokio::test]
async fn an_answer_ends_at_its_end_token_unless_eos_is_ignored() {
    needs!(SMOLLM2);
    let engine = engine().await;
    let request = Request::ask("Say only the word yes.").greedy().max_tokens(200);
    let (_, stream) = drain(engine.generate(request.clone()).await.expect("a stream")).await;
    let summary = stream.summary().expect("an end");
    assert_eq!(summary.reason, EndReason::EndToken);
    assert!(summary.times.generated_tokens < 200);
    let (_, stream) = drain(engine.generate(request.ignore_eos()).await.expect("a stream")).await;
    let summary = stream.summary().expect("an end");
    assert_eq!((&summary.reason, summary.times.generated_tokens), (&EndReason::Length, 200));
}

#[tokio::test]
async fn a_forbidden_token_is_never_sampled() {
    needs!(SMOLLM2);
    let engine = engine().await;
    let request = Request::text("The capital of France is").greedy().max_tokens(8);
    let free =
        crate::support::collect_ids(engine.generate(request.clone()).await.expect("ok")).await;
    let request = request.logit_bias(free[0], f32::NEG_INFINITY);
    let bound = crate::support::collect_ids(engine.generate(request).await.expect("ok")).await;
    assert!(!bound.contains(&free[0]));
}
