//! A workload on the live engine, in real time.

use std::ops::Range;
use std::time::Duration;

use lapwing_engine::{Engine, Error, ErrorKind, Prompt, Request};
use lapwing_lab::load::{LoadRequest, RequestOutcome};
use lapwing_traces::Nanos;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Sends the requests of a workload to an engine at their times, and follows each to its end. Prompts are made of
/// ordinary tokens without meaning; answers are greedy and have exactly the tokens that are asked for.
pub(super) async fn run(engine: &Engine, requests: &[LoadRequest]) -> Vec<RequestOutcome> {
    let vocabulary = ordinary(engine);
    let mut tasks = JoinSet::new();
    let begin = engine.recorder().clock().now();
    for (number, request) in requests.iter().enumerate() {
        let (engine, request) = (engine.clone(), request.clone());
        let ids = request.ids(number, &vocabulary);
        tasks.spawn(async move {
            let at = begin + Duration::from_secs_f64(request.at);
            sleep(at.since(engine.recorder().clock().now())).await;
            (number, follow(&engine, &request, ids, begin).await)
        });
    }
    let mut outcomes = vec![RequestOutcome::default(); requests.len()];
    while let Some(done) = tasks.join_next().await {
        match done {
            Ok((number, outcome)) => outcomes[number] = outcome,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }
    outcomes
}

/// The third quarter of the vocabulary: common vocabularies have their control tokens at both ends.
fn ordinary(engine: &Engine) -> Range<u32> {
    let size = engine.tokenizer().vocab_size() as u32;
    size / 2..size / 2 + size / 4
}

async fn follow(
    engine: &Engine,
    request: &LoadRequest,
    ids: Vec<u32>,
    begin: Nanos,
) -> RequestOutcome {
    let now = || engine.recorder().clock().now().since(begin).as_secs_f64();
    let mut outcome = RequestOutcome {
        client: request.client.clone(),
        at: now(),
        prompt_tokens: ids.len(),
        output_tokens: request.output_tokens,
        ..RequestOutcome::default()
    };
    let asked = Request::new(Prompt::Ids(ids))
        .greedy()
        .ignore_eos()
        .max_tokens(request.output_tokens)
        .client(request.client.as_str())
        .priority(request.priority);
    let asked = request.urgency().deadline.into_iter().fold(asked, Request::deadline);
    let mut stream = match engine.generate(asked).await {
        Ok(stream) => stream,
        Err(error) => {
            (outcome.refused, outcome.error) = (is_refusal(&error), Some(error.to_string()));
            return outcome;
        }
    };
    while let Some(token) = stream.next().await {
        match token {
            Ok(_) => outcome.tokens.push(now()),
            Err(error) => {
                outcome.refused = outcome.tokens.is_empty() && is_refusal(&error);
                outcome.error = Some(error.to_string());
            }
        }
    }
    if let Some(summary) = stream.summary() {
        outcome.finished = true;
        outcome.cached_tokens = summary.times.cached_tokens;
        outcome.admitted = Some(outcome.at + summary.times.queued().as_secs_f64());
    }
    outcome
}

/// Whether a request that fails so was turned away: there is no room for it now, or never.
fn is_refusal(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Busy | ErrorKind::Request)
}
