//! What a request of Dynamo asks of the engine.

use std::collections::BTreeMap;

use dynamo_backend_common::{
    DynamoError, GuidedDecodingOptions, PreprocessedRequest, SamplingOptions, StopConditions,
};
use lapwing_engine::structured::Grammar;
use lapwing_engine::{Prompt, Request};
use serde_json::Value;

use crate::fault;

/// What is asked beside what the engine looks at.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) stops: Stops,
    /// Most tokens of the answer, if it has a limit.
    pub(crate) tokens_max: Option<usize>,
    /// Whether log-probabilities are reported.
    pub(crate) logprobs: bool,
}

/// Ids that end the answer, beside the model's end tokens. Stop texts are the frontend's, which has the text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stops {
    ids: Vec<u32>,
    /// Tokens among which none ends the answer.
    tokens_min: usize,
}

impl Stops {
    fn of(conditions: &StopConditions) -> Stops {
        let lists = [
            &conditions.stop_token_ids,
            &conditions.stop_token_ids_visible,
            &conditions.stop_token_ids_hidden,
        ];
        let ids = lists.into_iter().flatten().flatten().copied().collect();
        Stops { ids, tokens_min: number(conditions.min_tokens) }
    }

    /// Whether the token `id`, the last of so many, ends the answer.
    pub(crate) fn end(&self, id: u32, tokens: usize) -> bool {
        tokens > self.tokens_min && self.ids.contains(&id)
    }
}

/// Reads a request.
///
/// # Errors
/// When it asks for what a worker cannot do. The message names it.
pub(crate) fn of(
    asked: &PreprocessedRequest,
    metadata: &BTreeMap<String, String>,
    temperature: Option<f32>,
) -> Result<(Request, Asked), DynamoError> {
    refuse(asked)?;
    let mut request = Request::new(Prompt::Ids(asked.token_ids.to_vec())).prompt_progress(true);
    if let Some(temperature) = temperature {
        request.sampling.temperature = temperature;
    }
    request = sampled(request, &asked.sampling_options);
    let stop = &asked.stop_conditions;
    request.max_tokens = stop.max_tokens.map(|tokens| tokens as usize);
    request.min_tokens = number(stop.min_tokens);
    request.ignore_eos = stop.ignore_eos.unwrap_or(false);
    if let Some(options) = &asked.sampling_options.guided_decoding {
        request.grammar = guided(options)?;
    }
    let count = asked.output_options.logprobs;
    request.top_logprobs = number(count);
    request.client = metadata.get("client").cloned();
    if let Some(routing) = &asked.routing {
        request = request.priority(routing.priority.unwrap_or_default());
        request.cache_salt.clone_from(&routing.cache_namespace);
    }
    // What asks whether the engine is alive has no place in the cache.
    request.prefix_cache = !asked.is_probe;
    let (stops, tokens_max) = (Stops::of(stop), request.max_tokens);
    Ok((request, Asked { stops, tokens_max, logprobs: count.is_some() }))
}

fn number(given: Option<u32>) -> usize {
    given.map_or(0, |number| number as usize)
}

/// Refuses what would have no effect.
fn refuse(asked: &PreprocessedRequest) -> Result<(), DynamoError> {
    let sampling = &asked.sampling_options;
    let lora = asked.routing.as_ref().is_some_and(|routing| routing.lora_name.is_some());
    let rows = [
        (sampling.n.is_some_and(|n| n > 1), "n: ask once for each answer"),
        (sampling.best_of.is_some_and(|n| n > 1), "best_of: ask once for each answer"),
        (sampling.use_beam_search == Some(true), "use_beam_search: leave it out"),
        (asked.output_options.prompt_logprobs.is_some_and(|n| n > 0), "prompt_logprobs"),
        (asked.prompt_embeds.is_some(), "prompt_embeds: send text or token ids"),
        (asked.multi_modal_data.is_some(), "images, sounds and videos: send text only"),
        (lora, "LoRA adapters"),
        (asked.prefill_result.is_some(), "prompts that another worker has computed"),
    ];
    match rows.into_iter().find(|(asks, _)| *asks) {
        Some((_, what)) => {
            Err(fault::invalid(format!("this model's workers do not support {what}")))
        }
        None => Ok(()),
    }
}

/// Sets the sampling; what is not named is as by `lapwing serve`.
fn sampled(mut request: Request, options: &SamplingOptions) -> Request {
    let sampling = &mut request.sampling;
    let fields = [
        (&mut sampling.temperature, options.temperature),
        (&mut sampling.top_p, options.top_p),
        (&mut sampling.min_p, options.min_p),
        (&mut sampling.repetition_penalty, options.repetition_penalty),
        (&mut sampling.presence_penalty, options.presence_penalty),
        (&mut sampling.frequency_penalty, options.frequency_penalty),
    ];
    for (field, given) in fields {
        *field = given.unwrap_or(*field);
    }
    if let Some(k) = options.top_k {
        // −1 is all tokens.
        sampling.top_k = usize::try_from(k).unwrap_or(0);
    }
    sampling.seed = options.seed.filter(|seed| *seed != -1).map(i64::cast_unsigned);
    request
}

/// The grammar of a constraint.
fn guided(options: &GuidedDecodingOptions) -> Result<Option<Grammar>, DynamoError> {
    let unreadable = |error: String| fault::invalid(format!("guided decoding: {error}"));
    let value = serde_json::to_value(options).map_err(|error| unreadable(error.to_string()))?;
    let Value::Object(mut members) = value else { return Ok(None) };
    // The program that follows a grammar is the worker's own.
    members.remove("backend");
    members.retain(|_, value| !value.as_array().is_some_and(Vec::is_empty));
    lapwing_serve::structured_outputs(members).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(request: Value) -> Result<(Request, Asked), String> {
        let asked: PreprocessedRequest = serde_json::from_value(request).expect("a request");
        let metadata = BTreeMap::from([("client".to_owned(), "alice".to_owned())]);
        of(&asked, &metadata, Some(0.5)).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn every_field_that_dynamo_sends_reaches_the_engine() {
        let (request, asked) = read(json!({
            "token_ids": [1, 2],
            "stop_conditions": {"max_tokens": 8, "min_tokens": 2, "ignore_eos": true,
                "stop_token_ids": [3], "stop_token_ids_hidden": [4], "stop_token_ids_visible": [5]},
            "sampling_options": {"top_p": 0.25, "top_k": -1, "min_p": 0.125, "seed": 7,
                "repetition_penalty": 2.0, "presence_penalty": 0.5, "frequency_penalty": 0.75},
            "output_options": {"logprobs": 3},
            "routing": {"priority": -2, "cache_salt": "salt"},
        }))
        .expect("a request");
        let expected = Request::new(Prompt::Ids(vec![1, 2])).prompt_progress(true).temperature(0.5);
        let expected = expected.top_p(0.25).top_k(0).min_p(0.125).seed(7).repetition_penalty(2.0);
        let expected = expected.presence_penalty(0.5).frequency_penalty(0.75).max_tokens(8);
        let expected = expected.min_tokens(2).ignore_eos().top_logprobs(3).client("alice");
        assert_eq!(request, expected.priority(-2).cache_salt("salt"));
        assert!(asked.logprobs);
        let ends = |id, tokens| asked.stops.end(id, tokens);
        assert!(ends(3, 3) && ends(4, 3) && ends(5, 3) && !ends(6, 3) && !ends(3, 2));
    }

    #[test]
    fn constraints_become_grammars() {
        let with = |guided: Value| {
            let request =
                json!({"token_ids": [1], "sampling_options": {"guided_decoding": guided}});
            read(request).map(|(request, _)| request.grammar)
        };
        assert_eq!(with(json!({"choice": ["a", "b"]})), Ok(Some(Grammar::choice(["a", "b"]))));
        assert_eq!(with(json!({"choice": []})), Ok(None));
        assert_eq!(with(json!({"regex": "a", "backend": "x"})), Ok(Some(Grammar::regex("a"))));
        let wrong = with(json!({"json": "{"})).expect_err("no JSON");
        assert!(wrong.starts_with("guided decoding: json is not JSON"), "{wrong}");
    }

    #[test]
    fn what_has_no_effect_is_refused_by_name() {
        for (field, value) in
            [("n", json!(2)), ("best_of", json!(2)), ("use_beam_search", json!(true))]
        {
            let request = json!({"token_ids": [1], "sampling_options": {field: value}});
            let error = read(request).expect_err(field);
            assert!(error.contains(field), "{error}");
        }
    }
}
