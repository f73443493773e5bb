//! What published numbers and the form of the models say about each other. Both are reported, and neither is judged.

use super::{CHECK_ERROR_MAX, Decision, Reproduced};
use crate::simulate::error::SimulateError;
use crate::simulate::runs::Runs;
use crate::simulate::scenario::Scenario;

/// Models whose gains by fast synchronisation are published.
const MODELS: [&str; 3] = ["llama-3-8b", "llama-3.2-3b", "internlm2-1.8b"];
/// Steps of decode.
const STEPS: usize = 8;
/// The gain that is published for the first of the models, in decode with the strategy `tensor-level`.
const GAIN: f64 = 4.01;

/// Consequence of a GPU that draws as much power together with the NPU as alone (φ = 1).
pub(super) fn full_power(
    base: &Scenario,
    rows: &[Reproduced],
    runs: &mut Runs,
) -> Result<Option<String>, SimulateError> {
    let Some(row) = rows.iter().find(|row| row.id == "power-tensor") else { return Ok(None) };
    let mut full = base.clone();
    full.set("power.co_run", "1")?;
    for (key, value) in [("strategy", "tensor-level"), ("prompt", "256"), ("decode", "0")] {
        full.set(key, value)?;
    }
    let Some(watts) = runs.run(&full)?.prefill_w else { return Ok(None) };
    let paper = row.paper;
    let verdict = match watts > paper * (1.0 + CHECK_ERROR_MAX) {
        true => "the paper refutes φ = 1",
        false => "the paper does not refute φ = 1",
    };
    Ok(Some(format!(
        "if the GPU drew as much power together with the NPU as alone (power.co_run, φ = 1), \
         Hetero-tensor would draw {watts:.2} W in prefill; {paper:.2} W are published: {verdict}"
    )))
}

/// Time of a step of decode, in ms.
struct Step {
    /// With fast synchronisation.
    fast: f64,
    /// With slow synchronisation.
    slow: f64,
    /// With slow synchronisation, if the parts of cuts ran one after another.
    serial: f64,
}

impl Step {
    fn new(base: &Scenario, runs: &mut Runs, model: &str) -> Result<Step, SimulateError> {
        let mut run = |sync: &str, decode: usize| {
            let mut scenario = base.clone();
            let decode = decode.to_string();
            let settings = [("model", model), ("strategy", "tensor-level"), ("fast-sync", sync)];
            let lengths = [("prompt", "256"), ("decode", &*decode)];
            for (key, value) in settings.into_iter().chain(lengths) {
                scenario.set(key, value)?;
            }
            runs.run(&scenario)
        };
        let step = |ms: Option<f64>| ms.unwrap_or(f64::NAN) / STEPS as f64;
        let (fast, slow) = (run("on", STEPS)?, run("off", STEPS)?);
        let prompt = run("off", 0)?;
        let [all, before] = [&slow, &prompt]
            .map(|run| run.overlap * run.devices.iter().map(|device| device.busy_ms).sum::<f64>());
        let serial = step(slow.decode_ms) + (all - before) / STEPS as f64;
        Ok(Step { fast: step(fast.decode_ms), slow: step(slow.decode_ms), serial })
    }
}

/// What slow synchronisation costs in a layer of each model, next to the published gain.
pub(super) fn slow_costs(
    base: &Scenario,
    runs: &mut Runs,
) -> Result<Option<String>, SimulateError> {
    let mut costs = Vec::new();
    let mut published = String::new();
    for model in MODELS {
        let mut scenario = base.clone();
        scenario.set("model", model)?;
        let nodes = scenario.load_model()?.0.graph;
        let layers = nodes.nodes().iter().filter_map(|node| node.layer).max();
        let layers = layers.map_or(1, |last| last + 1) as f64;
        let step = Step::new(base, runs, model)?;
        let cost = (step.slow - step.fast) / layers;
        costs.push(format!("{cost:.2} ms in a layer of {model}"));
        if published.is_empty() {
            let (gain, serial) = (step.slow / step.fast, step.serial / step.fast);
            let wanted = (GAIN - 1.0) * step.fast / layers;
            published = format!(
                "for {model} that is a gain of {gain:.2} by fast synchronisation, or of {serial:.2} if the parts of a cut ran \
                 one after another; {GAIN} is published, which takes {wanted:.2} ms in a layer"
            );
        }
    }
    Ok(Some(format!(
        "slow synchronisation costs {} in decode with tensor-level: {published}. The published gains of the three models imply \
         costs that no constant time of a copy explains",
        costs.join(", ")
    )))
}

/// The published division of a matmul that follows from times in isolation.
pub(super) fn shares(decisions: &[Decision]) -> Option<String> {
    let one = decisions.iter().find(|one| one.product == "[4096,4096]" && one.tokens == "1")?;
    let longer = one.longer? * 100.0;
    Some(format!(
        "Table 3 divides {} of one token 1:1, as its times in isolation suggest; with the times that explain 14.01 tok/s in a \
         running queue, this takes {longer:.0} % longer than {}: published numbers that exclude each other",
        one.product, one.model
    ))
}
