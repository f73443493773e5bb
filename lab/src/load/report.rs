//! The report of a run: throughput, latencies, and how evenly the clients were served.

use std::collections::BTreeMap;

use lapwing_actors::stats::EngineStats;
use lapwing_traces::report::Percentiles;
use serde::Serialize;

use super::outcome::RequestOutcome;

mod service;

use service::{Clients, Ticks, jain};

/// How service is counted and compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// Service of a prompt token.
    pub prompt_weight: f64,
    /// Service of a generated token.
    pub output_weight: f64,
    /// Seconds of a window in which the service of clients is compared.
    pub window: f64,
    /// Number of windows; their centres divide the time that is measured into one part more.
    pub ticks: usize,
    /// Seconds from the start that are not measured.
    pub warm_up: f64,
    /// Seconds from the start until which is measured; `None`: until the last answer.
    pub until: Option<f64>,
}

impl Measure {
    /// As in the experiments of VTC (Sheng et al., 2024).
    pub const VTC: Measure = Measure {
        prompt_weight: 1.0,
        output_weight: 2.0,
        window: 60.0,
        ticks: 19,
        warm_up: 30.0,
        until: Some(600.0),
    };
}

impl Default for Measure {
    /// That of VTC over the whole run.
    fn default() -> Measure {
        Measure { warm_up: 0.0, until: None, ..Measure::VTC }
    }
}

/// Latencies in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Latencies {
    /// Time to first token.
    pub ttft_ms: Percentiles,
    /// Mean time per output token after the first, of each request.
    pub tpot_ms: Percentiles,
    /// Inter-token latency.
    pub itl_ms: Percentiles,
    /// From arrival to the last token, of requests that have finished.
    pub response_ms: Percentiles,
}

/// A mean in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Mean {
    /// Of all requests that have the value; `None` without any.
    pub mean: Option<f64>,
}

/// What a client got.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ClientReport {
    /// Its name.
    pub client: String,
    /// Requests that it sent.
    pub requests: usize,
    /// Those that have all of their tokens.
    pub finished: usize,
    /// Those that were turned away.
    pub refused: usize,
    /// Prompt tokens of requests with a first token.
    pub prompt_tokens: usize,
    /// Those of them that the prefix cache had; counts requests that have finished.
    pub cached_tokens: usize,
    /// Generated tokens.
    pub generated_tokens: usize,
    /// Weighted sum of prompt and generated tokens.
    pub service: f64,
    /// Time to first token of all of its requests.
    pub ttft: Mean,
    /// Its latencies.
    pub latencies: Latencies,
    /// Its service per second in each window.
    pub service_in_window: Vec<f64>,
}

/// Statistics of a difference over the windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// Largest.
    pub max: f64,
    /// Mean.
    pub avg: f64,
    /// Variance.
    pub variance: f64,
}

/// The largest of some values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Largest {
    /// It; 0 without any.
    pub max: f64,
}

/// The result of a workload under one policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LoadReport {
    /// Name of the queue policy.
    pub policy: String,
    /// Seconds from the start to the last token.
    pub duration_s: f64,
    /// Number of requests.
    pub requests: usize,
    /// Requests that have all of their tokens.
    pub finished: usize,
    /// Requests that failed or were refused.
    pub aborted: usize,
    /// Those of them that were turned away before they had a token, by a limit or because they can never fit.
    pub refused: usize,
    /// Prompt and generated tokens per second until the last token.
    pub tokens_per_second: f64,
    /// Generated tokens per second until the last token.
    pub generated_tokens_per_second: f64,
    /// Share of the prompt tokens of finished requests that the prefix cache had.
    pub hit_rate: f64,
    /// Jain's index of the service of all clients: 1 if all got the same, 1/n if one of n got everything.
    pub jain_index: f64,
    /// The same of the service until the first client has all of its answers.
    pub jain_at_first_end: f64,
    /// In each window, the sum over clients of how much less service per second they got than the client that got most, but no
    /// more than the difference of what they asked for in the window and what they got.
    pub service_difference: Difference,
    /// Difference of the service since the warm-up between the most and the least served client at each tick.
    pub accumulated_difference: Largest,
    /// How many times a request lost its KV pages to another one.
    pub preemptions: usize,
    /// Rows that were computed again because of that, those that the prefix cache still had not counted.
    pub recomputed_rows: usize,
    /// The policy's numbers at the end, such as the counter of each client.
    pub policy_numbers: BTreeMap<String, f64>,
    /// Latencies of all requests.
    pub latencies: Latencies,
    /// Centre of each window in seconds.
    pub window_s: Vec<f64>,
    /// The difference of service per second in each window.
    pub difference_in_window: Vec<f64>,
    /// Each client, by name.
    pub clients: Vec<ClientReport>,
}

impl LoadReport {
    /// The report of a run, after which the engine had these statistics.
    pub fn new(
        policy: &str,
        requests: &[RequestOutcome],
        stats: &EngineStats,
        measure: &Measure,
    ) -> LoadReport {
        let last = |request: &RequestOutcome| request.tokens.last().copied();
        let duration = requests.iter().filter_map(last).fold(0.0, f64::max);
        let groups = Clients::of(requests, measure);
        let ticks = Ticks::of(measure, duration);
        let clients: Vec<ClientReport> =
            groups.iter().map(|(name, requests)| client(name, requests, measure, &ticks)).collect();
        let differences = groups.differences(&ticks);
        let sum = |of: fn(&ClientReport) -> usize| clients.iter().map(of).sum::<usize>() as f64;
        let (prompt, generated) = (sum(|c| c.prompt_tokens), sum(|c| c.generated_tokens));
        let finished = || requests.iter().filter(|request| request.finished);
        let prompts: usize = finished().map(|request| request.prompt_tokens).sum();
        let per_second = |tokens: f64| if duration > 0.0 { tokens / duration } else { 0.0 };
        LoadReport {
            policy: policy.to_owned(),
            duration_s: duration,
            requests: requests.len(),
            finished: finished().count(),
            aborted: requests.iter().filter(|request| request.error.is_some()).count(),
            refused: requests.iter().filter(|request| request.refused).count(),
            tokens_per_second: per_second(prompt + generated),
            generated_tokens_per_second: per_second(generated),
            hit_rate: sum(|c| c.cached_tokens) / (prompts.max(1)) as f64,
            jain_index: jain(clients.iter().map(|client| client.service)),
            jain_at_first_end: groups.jain_at_first_end(),
            service_difference: Difference::of(&differences),
            accumulated_difference: Largest { max: groups.accumulated(&ticks) },
            preemptions: stats.all.preempted,
            recomputed_rows: stats.all.recomputed_rows,
            policy_numbers: stats.policy_numbers.iter().cloned().collect(),
            latencies: Latencies::of(requests.iter()),
            window_s: ticks.centres,
            difference_in_window: differences,
            clients,
        }
    }
}

fn client(
    name: &str,
    requests: &[&RequestOutcome],
    measure: &Measure,
    ticks: &Ticks,
) -> ClientReport {
    let begun = || requests.iter().filter(|request| !request.tokens.is_empty());
    let count = |is: fn(&RequestOutcome) -> bool| requests.iter().filter(|it| is(it)).count();
    let latencies = Latencies::of(requests.iter().copied());
    ClientReport {
        client: name.to_owned(),
        requests: requests.len(),
        finished: count(|request| request.finished),
        refused: count(|request| request.refused),
        prompt_tokens: begun().map(|request| request.prompt_tokens).sum(),
        cached_tokens: requests.iter().map(|request| request.cached_tokens).sum(),
        generated_tokens: begun().map(|request| request.tokens.len()).sum(),
        service: requests.iter().map(|request| measure.service(request)).sum(),
        ttft: Mean { mean: latencies.ttft_ms.mean },
        latencies,
        service_in_window: ticks.windows().map(|window| measure.rate(requests, window)).collect(),
    }
}

impl Difference {
    fn of(values: &[f64]) -> Difference {
        let count = values.len().max(1) as f64;
        let avg = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - avg).powi(2)).sum::<f64>() / count;
        Difference { max: values.iter().copied().fold(0.0, f64::max), avg, variance }
    }
}

impl Latencies {
    fn of<'a>(requests: impl Iterator<Item = &'a RequestOutcome> + Clone) -> Latencies {
        let ms = |seconds: f64| seconds * 1e3;
        Latencies {
            ttft_ms: Percentiles::of(requests.clone().filter_map(RequestOutcome::ttft).map(ms)),
            tpot_ms: Percentiles::of(requests.clone().filter_map(RequestOutcome::tpot).map(ms)),
            itl_ms: Percentiles::of(requests.clone().flat_map(RequestOutcome::gaps).map(ms)),
            response_ms: Percentiles::of(requests.filter_map(RequestOutcome::response).map(ms)),
        }
    }
}
