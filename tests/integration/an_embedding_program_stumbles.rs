//! The library as a program without the command line uses it.

use lapwing::devices::DeviceSpec;
use lapwing::{Engine, ErrorKind, Request};

use crate::support::{SMOLLM2, builder, greedy, model};

#[tokio::test]
async fn a_model_is_found_by_name() {
    let engine = Engine::builder().model_named("smollm2").threads(2).build().await;
    let engine = engine.expect("an engine");
    assert_eq!(engine.model_path(), model(SMOLLM2));
    // Blocking calls work on a thread of a runtime, too.
    let named = Engine::builder().model_named("smollm2");
    assert!(named.step_bytes(8).expect("a readable file") > 0);
    assert!(named.identity().expect("a model").model.contains("smollm2"));
    // The last call counts.
    let moved = named.clone().model("/nowhere/model.gguf").build().await.expect_err("no file");
    assert!(moved.to_string().contains("/nowhere/model.gguf"), "{moved}");
}

#[tokio::test]
async fn a_wrong_name_fails_before_anything_is_fetched() {
    for build in [true, false] {
        let builder = Engine::builder().model_named("smolm2");
        let error = match build {
            true => builder.build().await.map(drop),
            false => builder.build_blocking().map(drop),
        };
        let error = error.expect_err("no such model");
        assert_eq!(error.kind(), ErrorKind::Fetch);
        assert!(error.to_string().contains("did you mean \"smollm2\"?"), "{error}");
    }
}

#[test]
fn a_program_without_a_runtime_gets_the_same_tokens() {
    let engine = builder(SMOLLM2).build_blocking().expect("an engine");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let text = runtime.block_on(async {
        let stream = engine.generate(greedy("The sea is", 24)).await.expect("a stream");
        stream.into_text().await.expect("a text")
    });
    let mut stream = engine.generate_blocking(greedy("The sea is", 24)).expect("a stream");
    // An iterator that is dropped leaves the rest in the stream.
    let first = stream.blocking().next().expect("a token").expect("no error");
    let rest: Result<String, _> = stream.blocking().map(|token| token.map(|t| t.text)).collect();
    assert_eq!(first.text + &rest.expect("no error"), text);
    assert!(stream.blocking().next().is_none());
    let summary = stream.summary().expect("an end");
    assert_eq!(summary.times.generated_tokens, 24);
    let speed = summary.tokens_per_second();
    assert!((speed - 23.0 / summary.times.decode().as_secs_f64()).abs() < 1e-6 * speed);
    assert!(summary.prompt_tokens_per_second() > 0.0);
}

#[tokio::test]
async fn the_most_likely_tokens_are_reported_in_order() {
    let engine = builder(SMOLLM2).build().await.expect("an engine");
    let request = greedy("The capital of France is", 6);
    let mut plain = engine.generate(request.clone()).await.expect("a stream");
    let mut stream = engine.generate(request.top_logprobs(5)).await.expect("a stream");
    while let Some(token) = stream.next().await {
        let token = token.expect("a token");
        let same = plain.next().await.expect("as many").expect("a token");
        assert_eq!((token.id, token.logprob), (same.id, same.logprob), "reporting changes nothing");
        assert!(same.top_logprobs.is_empty());
        assert_eq!(token.top_logprobs.len(), 5);
        assert_eq!(token.top_logprobs[0].id, token.id, "greedy takes the first");
        assert_eq!(token.top_logprobs[0].logprob, token.logprob);
        assert!(token.top_logprobs.is_sorted_by(|a, b| a.logprob >= b.logprob));
        let total: f64 = token.top_logprobs.iter().map(|t| f64::from(t.logprob).exp()).sum();
        assert!(total <= 1.0 + 1e-5, "{total}");
    }
}

#[tokio::test]
async fn devices_are_added_together() {
    let phone = DeviceSpec::list("cpu+gpu").expect("two devices");
    let together = builder(SMOLLM2).devices(phone.clone()).build().await.expect("an engine");
    assert_eq!(together.devices(), phone);
    let cpu = DeviceSpec::cpu().named("big").with_threads(1);
    assert_eq!((cpu.name.as_str(), cpu.threads), ("big", Some(1)));
    assert_eq!(cpu.to_string().parse::<DeviceSpec>().as_ref(), Ok(&cpu));
}

#[test]
fn each_sampling_parameter_of_a_request_has_a_method() {
    let request = Request::ask("Hello")
        .temperature(0.7)
        .top_k(3)
        .top_p(0.9)
        .min_p(0.1)
        .repetition_penalty(1.1)
        .presence_penalty(0.2)
        .frequency_penalty(0.3)
        .penalty_window(9)
        .logit_bias(7, 1.5)
        .seed(5)
        .draft_acceptance(0.5);
    let expected = lapwing::SamplingParams {
        temperature: 0.7,
        top_k: 3,
        top_p: 0.9,
        min_p: 0.1,
        repetition_penalty: 1.1,
        presence_penalty: 0.2,
        frequency_penalty: 0.3,
        penalty_window: 9,
        logit_bias: vec![(7, 1.5)],
        seed: Some(5),
        draft_acceptance: Some(0.5),
    };
    assert_eq!(request.sampling, expected);
}
