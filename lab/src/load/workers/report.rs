//! The report of several workers: the whole, and each of them.

use std::collections::BTreeMap;

use lapwing_traces::report::Percentiles;
use serde::Serialize;

use super::{Routed, Workers};
use crate::load::report::{LoadReport, Measure};

/// The result of a workload on several workers under one routing policy and one queue policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct WorkersReport {
    /// Name of the routing policy.
    pub route: String,
    /// All requests together, as of a server alone.
    #[serde(flatten)]
    pub all: LoadReport,
    /// How unevenly the workers were used.
    pub imbalance: Imbalance,
    /// The routing policy's numbers at the end.
    pub route_numbers: BTreeMap<String, f64>,
    /// Real time of the routing policy's decisions, in µs; without values unless it was measured.
    pub decision_us: Percentiles,
    /// Each worker, by number.
    pub workers: Vec<WorkerReport>,
}

/// The greatest value of a worker divided by the mean of all workers: 1 if all are used evenly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Imbalance {
    /// Of the time in which they compute.
    pub busy: f64,
    /// Of their requests.
    pub requests: f64,
    /// Of the prompt tokens that they compute and the tokens that they generate.
    pub tokens: f64,
}

/// What a worker did.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct WorkerReport {
    /// Its number.
    pub worker: usize,
    /// Its speed.
    pub speed: f64,
    /// Requests that it was sent.
    pub requests: usize,
    /// Those that have all of their tokens.
    pub finished: usize,
    /// Share of the time in which it computes.
    pub busy_share: f64,
    /// Share of the prompt tokens of its finished requests that its prefix cache had.
    pub hit_rate: f64,
    /// Prompt tokens that it computed, each once.
    pub prompt_tokens: usize,
    /// Prompt tokens of finished requests that its prefix cache had.
    pub cached_tokens: usize,
    /// Tokens that it generated.
    pub generated_tokens: usize,
    /// How many times a request lost its KV pages to another one.
    pub preemptions: usize,
    /// Time to first token of its requests, in ms.
    pub ttft_ms: Percentiles,
}

impl WorkersReport {
    /// The report of a run. `policies`: the routing policy's name, and that of the queue policy.
    pub fn new(
        workers: &Workers,
        policies: (&str, &str),
        routed: &Routed,
        measure: &Measure,
    ) -> WorkersReport {
        let all = LoadReport::new(policies.1, &routed.requests, &routed.stats, measure);
        let mut of_worker = vec![Vec::new(); workers.speeds.len()];
        for (request, worker) in routed.workers.iter().enumerate() {
            if let Some(worker) = worker {
                of_worker[*worker].push(request);
            }
        }
        let reports = of_worker.iter().enumerate();
        let reports: Vec<WorkerReport> = reports
            .map(|(worker, requests)| {
                worker_report((worker, workers), requests, routed, all.duration_s)
            })
            .collect();
        let of = |value: &dyn Fn(&WorkerReport) -> f64| imbalance(reports.iter().map(value));
        let imbalance = Imbalance {
            busy: of(&|worker| worker.busy_share),
            requests: of(&|worker| worker.requests as f64),
            tokens: of(&|worker| (worker.prompt_tokens + worker.generated_tokens) as f64),
        };
        WorkersReport {
            route: policies.0.to_owned(),
            all,
            imbalance,
            route_numbers: routed.numbers.iter().cloned().collect(),
            decision_us: Percentiles::of(routed.decisions.iter().map(|it| it.as_secs_f64() * 1e6)),
            workers: reports,
        }
    }
}

fn worker_report(
    worker: (usize, &Workers),
    requests: &[usize],
    routed: &Routed,
    duration: f64,
) -> WorkerReport {
    let (worker, workers) = worker;
    let (outcome, speed) = (&routed.outcomes[worker], workers.speeds[worker]);
    let served = || requests.iter().map(|request| &routed.requests[*request]);
    let finished = || served().filter(|request| request.finished);
    let prompts: usize = finished().map(|request| request.prompt_tokens).sum();
    let cached_tokens = finished().map(|request| request.cached_tokens).sum();
    let busy = outcome.busy.as_secs_f64();
    WorkerReport {
        worker,
        speed,
        requests: requests.len(),
        finished: finished().count(),
        busy_share: if duration > 0.0 { busy / duration } else { 0.0 },
        hit_rate: cached_tokens as f64 / prompts.max(1) as f64,
        prompt_tokens: outcome.stats.all.prompt_tokens,
        cached_tokens,
        generated_tokens: outcome.stats.all.generated_tokens,
        preemptions: outcome.stats.all.preempted,
        ttft_ms: Percentiles::of(served().filter_map(|it| Some(it.ttft()? * 1e3))),
    }
}

/// The greatest value by the mean of all; 1 if all are 0.
fn imbalance(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let count = values.clone().count().max(1) as f64;
    let mean = values.clone().sum::<f64>() / count;
    match mean > 0.0 {
        true => values.fold(0.0, f64::max) / mean,
        false => 1.0,
    }
}
