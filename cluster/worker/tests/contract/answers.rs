//! What an answer has.

use dynamo_backend_common::{FinishReason, KvEventSource, LLMEngine, LLMEngineOutput};
use serde_json::{Value, json};

use crate::{items, refused, started};

/// Greedy sampling of at most so many tokens, without the model's ends.
fn greedy(prompt: &[u32], tokens: u32) -> Value {
    json!({
        "token_ids": prompt,
        "sampling_options": { "temperature": 0.0 },
        "stop_conditions": { "max_tokens": tokens, "ignore_eos": true },
    })
}

fn ids(items: &[LLMEngineOutput]) -> Vec<u32> {
    items.iter().flat_map(|item| item.token_ids.clone()).collect()
}

#[tokio::test]
async fn an_answer_that_goes_on_at_another_worker_has_the_same_tokens() {
    let (one, other) = (started(&[]).await, started(&[]).await);
    let prompt: Vec<u32> = (10..50).collect();
    let whole = ids(&items(&one, greedy(&prompt, 24)).await);
    assert_eq!(whole.len(), 24);
    for emitted in [1, 7, 23] {
        let begun = [&prompt, &whole[..emitted]].concat();
        let rest = ids(&items(&other, greedy(&begun, 24 - emitted as u32)).await);
        assert_eq!(rest, whole[emitted..], "after {emitted} tokens");
    }
}

#[tokio::test]
async fn the_last_item_says_why_and_counts_tokens() {
    let worker = started(&[]).await;
    let prompt: Vec<u32> = (10..110).collect();
    for cached in [0, 96] {
        let answer = items(&worker, greedy(&prompt, 5)).await;
        let last = answer.last().expect("a last item");
        assert_eq!(last.finish_reason, Some(FinishReason::Length));
        let usage = last.completion_usage.as_ref().expect("usage");
        assert_eq!((usage.prompt_tokens, usage.completion_tokens), (100, 5));
        let details = usage.prompt_tokens_details.as_ref().expect("details");
        assert!(details.cached_tokens >= Some(cached), "{details:?} of {cached}");
    }
}

#[tokio::test]
async fn an_id_that_stops_ends_the_answer_behind_it() {
    let worker = started(&[]).await;
    let prompt = [20, 21, 22];
    let all = ids(&items(&worker, greedy(&prompt, 12)).await);
    let mut fields = greedy(&prompt, 12);
    fields["stop_conditions"]["stop_token_ids"] = json!([all[5]]);
    let first = all.iter().position(|id| *id == all[5]).expect("it is there");
    let answer = items(&worker, fields).await;
    assert_eq!(ids(&answer), all[..=first]);
    assert_eq!(answer.last().expect("an item").finish_reason, Some(FinishReason::Stop));
}

#[tokio::test]
async fn each_token_has_its_log_probability_and_the_likeliest_ones() {
    let worker = started(&[]).await;
    let mut fields = greedy(&[20, 21, 22], 6);
    fields["output_options"] = json!({ "logprobs": 3 });
    let answer = items(&worker, fields).await;
    let chosen: Vec<f64> =
        answer.iter().flat_map(|item| item.log_probs.clone()).flatten().collect();
    let likely: Vec<_> =
        answer.iter().flat_map(|item| item.top_logprobs.clone()).flatten().collect();
    assert_eq!((chosen.len(), likely.len()), (6, 6));
    for (at, (chosen, likely)) in chosen.iter().zip(&likely).enumerate() {
        assert_eq!(likely.len(), 3);
        assert_eq!(likely[0].token_id, ids(&answer)[at], "greedy");
        assert!((likely[0].logprob - chosen).abs() < 1e-6 && likely[0].rank == 1);
    }
}

#[tokio::test]
async fn a_constraint_holds() {
    let worker = started(&[]).await;
    let mut fields = greedy(&[20, 21, 22], 8);
    fields["stop_conditions"]["ignore_eos"] = json!(false);
    fields["sampling_options"]["guided_decoding"] = json!({ "choice": ["yes"] });
    let answer = ids(&items(&worker, fields).await);
    let engine = worker.engine().expect("an engine");
    assert_eq!(engine.tokenizer().decode(&answer), "yes");
}

#[tokio::test]
async fn prompts_that_do_not_fit_are_the_clients_fault() {
    let worker = started(&["--ctx", "64"]).await;
    let prompt: Vec<u32> = (10..90).collect();
    let error = refused(&worker, greedy(&prompt, 4)).await;
    assert_eq!(error.reason().as_str(), "request.invalid_argument");
    let told = error.public_message().expect("a message");
    assert!(told.contains("80 tokens") && told.contains("64"), "{told}");
}

#[tokio::test]
async fn kv_events_are_published_on_a_port_of_this_machine_or_there_is_no_cache() {
    let worker = started(&[]).await;
    let sources = worker.kv_event_sources().await.expect("sources");
    let [KvEventSource::Zmq { endpoint, .. }] = &sources[..] else { panic!("no source") };
    assert!(endpoint.starts_with("tcp://127.0.0.1:") && !endpoint.ends_with(":0"), "{endpoint}");
    let without = started(&["--no-prefix-cache"]).await;
    assert!(without.kv_event_sources().await.expect("sources").is_empty());
}
