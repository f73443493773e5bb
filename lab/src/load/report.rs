//! The report of a run: throughput, latencies, and how evenly the clients were served.

use std::collections::BTreeMap;

use lapwing_actors::stats::EngineStats;
use lapwing_traces::report::Percentiles;
use serde::Serialize;

use super::outcome::RequestOutcome;

/// How service is counted and compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// Service of a prompt token.
    pub prompt_weight: f64,
    /// Service of a generated token.
    pub output_weight: f64,
    /// Seconds of a window in which the service of clients is compared.
    pub window: f64,
    /// Number of windows; their centres are spread evenly over the run.
    pub ticks: usize,
}

impl Default for Measure {
    /// As in the experiments of VTC (Sheng et al., 2024).
    fn default() -> Measure {
        Measure { prompt_weight: 1.0, output_weight: 2.0, window: 60.0, ticks: 20 }
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
    /// Prompt tokens of requests with a first token.
    pub prompt_tokens: usize,
    /// Those of them that the prefix cache had; counts requests that have finished.
    pub cached_tokens: usize,
    /// Generated tokens.
    pub generated_tokens: usize,
    /// Weighted sum of prompt and generated tokens.
    pub service: f64,
    /// Its latencies.
    pub latencies: Latencies,
    /// Its service in each window.
    pub service_in_window: Vec<f64>,
}

/// Statistics of a difference over the windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// Largest.
    pub max: f64,
    /// Mean.
    pub mean: f64,
    /// Variance.
    pub variance: f64,
}

/// The result of a workload under one policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LoadReport {
    /// Name of the queue policy.
    pub policy: String,
    /// Seconds from the start to the last event.
    pub duration_s: f64,
    /// Number of requests.
    pub requests: usize,
    /// Requests that have all of their tokens.
    pub finished: usize,
    /// Requests that failed or were refused.
    pub aborted: usize,
    /// Prompt and generated tokens per second.
    pub tokens_per_second: f64,
    /// Generated tokens per second.
    pub generated_tokens_per_second: f64,
    /// Share of the prompt tokens of finished requests that the prefix cache had.
    pub hit_rate: f64,
    /// Jain's index of the service of all clients: 1 if all got the same, 1/n if one of n got everything.
    pub jain_index: f64,
    /// In each window, the sum over clients of how much less they got than the client that got most, but no more
    /// than what they had asked for and not got.
    pub service_difference: Difference,
    /// Difference between the most and the least served client over the whole run.
    pub accumulated_difference: f64,
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
    /// The difference of service in each window.
    pub difference_in_window: Vec<f64>,
    /// Each client, by name.
    pub clients: Vec<ClientReport>,
}

impl LoadReport {
    /// The report of a run of `duration` seconds, after which the engine had these statistics.
    pub fn new(
        policy: &str,
        requests: &[RequestOutcome],
        stats: &EngineStats,
        duration: f64,
        measure: &Measure,
    ) -> LoadReport {
        let mut by_client: BTreeMap<&str, Vec<&RequestOutcome>> = BTreeMap::new();
        for request in requests {
            by_client.entry(&request.client).or_default().push(request);
        }
        let centres: Vec<f64> = (0..measure.ticks)
            .map(|tick| duration * (tick as f64 + 0.5) / measure.ticks.max(1) as f64)
            .collect();
        let clients: Vec<ClientReport> = by_client
            .iter()
            .map(|(name, requests)| client(name, requests, &centres, measure))
            .collect();
        let owed: Vec<Vec<f64>> = by_client
            .values()
            .map(|requests| centres.iter().map(|at| owed(requests, *at, measure)).collect())
            .collect();
        let differences: Vec<f64> = (0..centres.len())
            .map(|tick| {
                let got = |client: &ClientReport| client.service_in_window[tick];
                let most = clients.iter().map(got).fold(0.0, f64::max);
                let less =
                    clients.iter().zip(&owed).map(|(c, owed)| (most - got(c)).min(owed[tick]));
                less.sum()
            })
            .collect();
        let sum = |of: fn(&ClientReport) -> usize| clients.iter().map(of).sum::<usize>() as f64;
        let (prompt, generated) = (sum(|c| c.prompt_tokens), sum(|c| c.generated_tokens));
        let finished = || requests.iter().filter(|request| request.finished);
        let prompts: usize = finished().map(|request| request.prompt_tokens).sum();
        let per_second = |tokens: f64| if duration > 0.0 { tokens / duration } else { 0.0 };
        let services = || clients.iter().map(|client| client.service);
        LoadReport {
            policy: policy.to_owned(),
            duration_s: duration,
            requests: requests.len(),
            finished: finished().count(),
            aborted: requests.iter().filter(|request| request.error.is_some()).count(),
            tokens_per_second: per_second(prompt + generated),
            generated_tokens_per_second: per_second(generated),
            hit_rate: sum(|c| c.cached_tokens) / (prompts.max(1)) as f64,
            jain_index: jain(services()),
            service_difference: Difference::of(&differences),
            accumulated_difference: match services().reduce(f64::min) {
                Some(least) => services().fold(0.0, f64::max) - least,
                None => 0.0,
            },
            preemptions: stats.all.preempted,
            recomputed_rows: stats.all.recomputed_rows,
            policy_numbers: stats.policy_numbers.iter().cloned().collect(),
            latencies: Latencies::of(requests.iter()),
            window_s: centres,
            difference_in_window: differences,
            clients,
        }
    }
}

fn client(
    name: &str,
    requests: &[&RequestOutcome],
    centres: &[f64],
    measure: &Measure,
) -> ClientReport {
    let begun = || requests.iter().filter(|request| !request.tokens.is_empty());
    ClientReport {
        client: name.to_owned(),
        requests: requests.len(),
        finished: requests.iter().filter(|request| request.finished).count(),
        prompt_tokens: begun().map(|request| request.prompt_tokens).sum(),
        cached_tokens: requests.iter().map(|request| request.cached_tokens).sum(),
        generated_tokens: begun().map(|request| request.tokens.len()).sum(),
        service: service(requests, f64::NEG_INFINITY, f64::INFINITY, measure),
        latencies: Latencies::of(requests.iter().copied()),
        service_in_window: centres
            .iter()
            .map(|at| {
                service(requests, at - measure.window / 2.0, at + measure.window / 2.0, measure)
            })
            .collect(),
    }
}

/// Service between two times. The prompt counts at the first token.
fn service(requests: &[&RequestOutcome], from: f64, to: f64, measure: &Measure) -> f64 {
    let of_request = |request: &&RequestOutcome| {
        let is_within = |at: &&f64| (from..to).contains(*at);
        let first = request.tokens.first().filter(is_within);
        let prompt = first.map_or(0.0, |_| request.prompt_tokens as f64 * measure.prompt_weight);
        prompt + request.tokens.iter().filter(is_within).count() as f64 * measure.output_weight
    };
    requests.iter().map(of_request).sum()
}

/// Service that requests which arrived by the end of the window around `at` had asked for, and not got by then.
fn owed(requests: &[&RequestOutcome], at: f64, measure: &Measure) -> f64 {
    let end = at + measure.window / 2.0;
    let arrived: Vec<&RequestOutcome> =
        requests.iter().copied().filter(|request| request.at < end).collect();
    let asked = |request: &&RequestOutcome| {
        request.prompt_tokens as f64 * measure.prompt_weight
            + request.output_tokens as f64 * measure.output_weight
    };
    let asked: f64 = arrived.iter().map(asked).sum();
    (asked - service(&arrived, f64::NEG_INFINITY, end, measure)).max(0.0)
}

/// (Σx)² / (n · Σx²), Jain et al., 1984; 1 without service.
fn jain(values: impl Iterator<Item = f64>) -> f64 {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for value in values {
        count += 1.0;
        sum += value;
        squares += value * value;
    }
    if squares > 0.0 { sum * sum / (count * squares) } else { 1.0 }
}

impl Difference {
    fn of(values: &[f64]) -> Difference {
        let count = values.len().max(1) as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        Difference { max: values.iter().copied().fold(0.0, f64::max), mean, variance }
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
