//! How fast this worker is, for routers that weigh workers.

use lapwing_engine::{Engine, Error};
use serde_json::{Value, json};

/// Tokens of the prompt that the speed is that of, if the context holds as many.
const PROMPT: usize = 512;

/// Predicted speed of one request: of its prompt and of its answer behind that, in tokens per second, and where the prediction comes from: a
/// profile of this machine, or a short measurement at the start. A speed that is unknown is null.
pub(crate) fn of(engine: &Engine) -> Result<Value, Error> {
    let prompt = PROMPT.min(engine.context().saturating_sub(1)).max(1);
    let prefill = engine.predict(prompt)?.map(|time| prompt as f64 / time.as_secs_f64());
    let step = engine.plan_decode(1, prompt)?.predicted;
    Ok(json!({
        "prompt_tokens": prompt,
        "prefill_tokens_per_second": prefill,
        "decode_tokens_per_second": step.map(|time| time.as_secs_f64().recip()),
        "source": engine.cost_source(),
    }))
}
