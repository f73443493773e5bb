//! Sampling fields of requests, by the names that OpenAI's interface and its relatives use.

use std::collections::BTreeMap;
use std::time::Duration;

use lapwing_actors::policy::Urgency;
use serde::Deserialize;

use super::error::ApiError;
use super::fields::Fields;
use super::models::ModelSpec;
use lapwing_engine::Request;

/// One text or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Texts {
    One(String),
    Many(Vec<String>),
}

impl Texts {
    /// As a list.
    pub(crate) fn into_vec(self) -> Vec<String> {
        match self {
            Texts::One(text) => vec![text],
            Texts::Many(texts) => texts,
        }
    }
}

/// Most texts that end an answer.
const STOPS_MAX: usize = 64;

/// Sets the sampling of `request` as the fields say. What they do not name is as in
/// [`SamplingParams::default`](crate::SamplingParams), or as the makers of the model recommend.
///
/// # Errors
/// When a field has the wrong type, or a value makes no sense.
pub(crate) fn apply(
    fields: &mut Fields,
    spec: &ModelSpec,
    mut request: Request,
) -> Result<Request, ApiError> {
    let sampling = &mut request.sampling;
    if let Some(temperature) = fields.take("temperature")?.or(spec.temperature) {
        sampling.temperature = temperature;
    }
    if let Some(top_p) = fields.take("top_p")? {
        sampling.top_p = top_p;
    }
    if let Some(k) = fields.take::<i64>("top_k")? {
        // Some clients write -1 for all tokens.
        sampling.top_k = usize::try_from(k).unwrap_or(0);
    }
    if let Some(min_p) = fields.take("min_p")? {
        sampling.min_p = min_p;
    }
    if let Some(penalty) = fields.take_any(&["repetition_penalty", "repeat_penalty"])? {
        sampling.repetition_penalty = penalty;
    }
    if let Some(tokens) = fields.take::<i64>("repeat_last_n")? {
        sampling.penalty_window = usize::try_from(tokens).unwrap_or(usize::MAX);
    }
    if let Some(penalty) = fields.take("presence_penalty")? {
        sampling.presence_penalty = penalty;
    }
    if let Some(penalty) = fields.take("frequency_penalty")? {
        sampling.frequency_penalty = penalty;
    }
    if let Some(bias) = fields.take::<BTreeMap<String, f32>>("logit_bias")? {
        sampling.logit_bias = biases(bias)?;
    }
    sampling.check().map_err(|error| ApiError::field(error.name, error.to_string()))?;
    if let Some(seed) = fields.take::<i64>("seed")? {
        // -1 asks for a new seed in llama.cpp's and Ollama's clients.
        request.sampling.seed = (seed != -1).then_some(seed as u64);
    }
    if let Some(stop) = fields.take::<Texts>("stop")? {
        request.stop = stops(stop)?;
    }
    request.ignore_eos = fields.take("ignore_eos")?.unwrap_or(false);
    urgency(fields, &mut request)?;
    if let Some(salt) = fields.take::<String>("cache_salt")? {
        request = request.cache_salt(salt);
    }
    if let Some(cache) = fields.take::<bool>("cache_prompt")? {
        request.prefix_cache = cache;
    }
    Ok(request)
}

/// How urgent the request is: `class` or `priority`, and `token_gap_ms`.
fn urgency(fields: &mut Fields, request: &mut Request) -> Result<(), ApiError> {
    let class = fields.take::<String>("class")?;
    request.urgency.priority = match class.as_deref() {
        None | Some("interactive") => 0,
        Some("background") => Urgency::BACKGROUND.priority,
        Some(other) => {
            let text = format!("class is '{other}'; it must be 'interactive' or 'background'");
            return Err(ApiError::field("class", text));
        }
    };
    if let Some(priority) = fields.take::<i32>("priority")? {
        let right = if priority < 0 { "background" } else { "interactive" };
        if class.as_deref().is_some_and(|class| class != right) {
            let text = format!("a priority of {priority} is of the class '{right}'");
            return Err(ApiError::field("priority", text));
        }
        request.urgency.priority = priority;
    }
    if let Some(ms) = fields.take::<f64>("token_gap_ms")? {
        let gap = Duration::try_from_secs_f64(ms / 1e3).ok().filter(|gap| !gap.is_zero());
        let text = "token_gap_ms must be a time of more than 0 ms, and finite";
        request.urgency.token_gap = Some(gap.ok_or_else(|| ApiError::field("token_gap_ms", text))?);
    }
    Ok(())
}

/// Texts that end the answer; empty ones would end it at once.
fn stops(stop: Texts) -> Result<Vec<String>, ApiError> {
    let texts: Vec<String> = stop.into_vec().into_iter().filter(|text| !text.is_empty()).collect();
    match texts.len() {
        0..=STOPS_MAX => Ok(texts),
        _ => Err(ApiError::field("stop", format!("stop has more than {STOPS_MAX} texts"))),
    }
}

fn biases(bias: BTreeMap<String, f32>) -> Result<Vec<(u32, f32)>, ApiError> {
    let bias = bias.into_iter().map(|(id, bias)| match id.parse() {
        // The least bias of OpenAI's interface forbids a token.
        Ok(id) => Ok((id, if bias <= -100.0 { f32::NEG_INFINITY } else { bias })),
        Err(_) => Err(ApiError::field(
            "logit_bias",
            format!("logit_bias has '{id}', which is no token id"),
        )),
    });
    bias.collect()
}

/// The number of tokens to generate: `max_completion_tokens`, or `max_tokens`.
///
/// # Errors
/// When it is not positive.
pub(crate) fn max_tokens(fields: &mut Fields) -> Result<Option<usize>, ApiError> {
    match fields.take_any::<i64>(&["max_completion_tokens", "max_tokens"])? {
        None | Some(-1) => Ok(None),
        Some(tokens) => match usize::try_from(tokens) {
            Ok(tokens @ 1..) => Ok(Some(tokens)),
            _ => Err(ApiError::field(
                "max_tokens",
                format!("max_tokens is {tokens}, but must be 1 or more"),
            )),
        },
    }
}

/// Requests for `n` choices with one prompt. Each has a seed of its own.
///
/// # Errors
/// When `n` is not between 1 and 16.
pub(crate) fn choices(request: Request, n: Option<u64>) -> Result<Vec<Request>, ApiError> {
    let n = n.unwrap_or(1);
    if !(1..=CHOICES_MAX).contains(&n) {
        let message = format!("n is {n}, but must be between 1 and {CHOICES_MAX}");
        return Err(ApiError::field("n", message));
    }
    let nth = |at: u64| {
        let mut request = request.clone();
        request.sampling.seed = request.sampling.seed.map(|seed| seed.wrapping_add(at));
        request
    };
    Ok((0..n).map(nth).collect())
}

/// Most choices of an answer.
const CHOICES_MAX: u64 = 16;
