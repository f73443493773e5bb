//! Ollama's interface.

mod answer;
pub(super) mod chat;
pub(super) mod embed;
pub(super) mod generate;
pub(super) mod models;

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::answer::Answers;
use super::config::seconds;
use super::endpoint::Target;
use super::error::ApiError;
use super::fields::Fields;
use super::models::{ModelLease, ModelSpec};
use super::sampling;
use lapwing_engine::Request;

/// Version of the interface that this follows; clients ask for a minimum.
const VERSION: &str = "0.12.0";

/// The present time, as the interface writes it.
fn now() -> String {
    Timestamp::now().to_string()
}

/// Takes the model of a request.
///
/// # Errors
/// When it is not named, or the time that it stays loaded has a wrong form.
fn target(fields: &mut Fields) -> Result<Target, ApiError> {
    Ok(Target { name: Some(fields.need("model")?), keep_alive: keep_alive(fields)? })
}

/// Takes `keep_alive`: how long the model stays loaded without requests; `Some(None)` for ever.
///
/// # Errors
/// When it is neither a number of seconds nor a time such as `5m`.
fn keep_alive(fields: &mut Fields) -> Result<Option<Option<Duration>>, ApiError> {
    let Some(value) = fields.take::<Value>("keep_alive")? else { return Ok(None) };
    let time = match &value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => parse_time(text),
        _ => None,
    };
    match time {
        Some(time) if time < 0.0 => Ok(Some(None)),
        Some(time) => Ok(Some(Some(seconds(time)))),
        None => Err(ApiError::field(
            "keep_alive",
            format!(
                "keep_alive is {value}, but must be a number of seconds or a time such as \"5m\""
            ),
        )),
    }
}

/// Seconds of a time such as `1h30m`, `10s`, `500ms` or `-1`.
fn parse_time(text: &str) -> Option<f64> {
    let (sign, mut rest) = match text.trim().strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.trim()),
    };
    if let Ok(plain) = rest.parse::<f64>() {
        return plain.is_finite().then_some(sign * plain);
    }
    let mut sum = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|char: char| !char.is_ascii_digit() && char != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        let after = &rest[end..];
        let unit_end = after.find(|char: char| char.is_ascii_digit()).unwrap_or(after.len());
        let scale = match &after[..unit_end] {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        sum += number * scale;
        rest = &after[unit_end..];
    }
    (!text.trim().is_empty()).then_some(sign * sum)
}

/// Sets the sampling of a request by its `options`; returns the names of those without effect.
///
/// # Errors
/// When an option has the wrong type, or a value makes no sense.
fn with_options(
    fields: &mut Fields,
    lease: &ModelLease,
    request: Request,
) -> Result<(Request, Vec<String>), ApiError> {
    let mut options = fields.object("options", "options.")?;
    let mut request = sampling::apply(&mut options, lease.spec(), request)?;
    // Negative numbers ask for no limit.
    request.max_tokens =
        options.take::<i64>("num_predict")?.and_then(|tokens| usize::try_from(tokens).ok());
    // The context is at least that large, or the field has no effect.
    if let Some(context) = options.take::<usize>("num_ctx")?
        && context > lease.engine.context()
    {
        options.name_ignored(vec!["options.num_ctx".to_owned()]);
    }
    Ok((request, options.rest()))
}

/// Times and numbers of a complete answer; durations are in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize)]
struct Totals {
    total_duration: u64,
    load_duration: u64,
    prompt_eval_count: usize,
    prompt_eval_duration: u64,
    eval_count: usize,
    eval_duration: u64,
}

impl Totals {
    /// Those of an answer.
    fn of(answers: &Answers) -> Totals {
        let (usage, times) = (answers.usage(), answers.times());
        Totals {
            total_duration: nanos(answers.call().received.elapsed()),
            load_duration: nanos(answers.lease().load_time.unwrap_or_default()),
            prompt_eval_count: usage.prompt,
            prompt_eval_duration: nanos(times.prefill),
            eval_count: usage.generated,
            eval_duration: nanos(times.decode),
        }
    }
}

/// Whole nanoseconds.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// What is known of a model.
#[derive(Clone, Debug, Serialize)]
struct Details {
    parent_model: &'static str,
    format: &'static str,
    family: String,
    families: Vec<String>,
    parameter_size: String,
    quantization_level: String,
}

impl Details {
    /// Those of a model.
    fn of(spec: &ModelSpec) -> Details {
        let family = spec.facts.architecture.clone();
        Details {
            parent_model: "",
            format: "gguf",
            families: vec![family.clone()],
            family,
            parameter_size: spec.facts.size(),
            quantization_level: spec.facts.quantization.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::parse_time;

    #[test]
    fn times_are_read_as_ollama_reads_them() {
        let rows = [
            ("5m", Some(300.0)),
            ("1h30m", Some(5400.0)),
            ("10s", Some(10.0)),
            ("500ms", Some(0.5)),
            ("-1", Some(-1.0)),
            ("-1m", Some(-60.0)),
            ("0", Some(0.0)),
            ("2.5", Some(2.5)),
            ("", None),
            ("5", Some(5.0)),
            ("5 minutes", None),
            ("m", None),
            ("1e999", None),
        ];
        for (text, seconds) in rows {
            assert_eq!(parse_time(text), seconds, "{text:?}");
        }
    }
}
