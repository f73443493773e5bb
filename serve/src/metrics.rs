//! Metrics in the formats of OpenMetrics and Prometheus, under Lapwing's names and under those that dashboards and gateways
//! read from vLLM and llama.cpp.

mod alone;
mod family;
mod format;
mod state;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lapwing_actors::stats::EngineStats;
use lapwing_engine::kv_events::CacheBlocks;
use prometheus_client::encoding::{prometheus_text, text};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use family::{Counts, Times, add, model};
use state::State;

pub use alone::state_metrics;
pub(crate) use format::Format;
pub(crate) use state::time_errors;

/// All metrics.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    http: Counts,
    ended: Counts,
    prompt_tokens: Counts,
    cached_tokens: Counts,
    recomputed_tokens: Counts,
    generated_tokens: Counts,
    ttft: Times,
    between_tokens: Times,
    whole: Times,
    queued: Times,
    prefill: Times,
    decode: Times,
    prompt_sizes: Times,
    answer_sizes: Times,
    state: State,
    /// One scrape at a time: what engines report is written into the gauges before they are read.
    scrape: Mutex<()>,
}

/// What a loaded model reports.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    /// Its name.
    pub(crate) name: String,
    pub(crate) stats: EngineStats,
    pub(crate) cache: CacheBlocks,
}

/// The metrics of one answer.
#[derive(Debug)]
pub(crate) struct AnswerMetrics {
    ttft: Histogram,
    between_tokens: Histogram,
}

/// What an answer took, when it has ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taken {
    pub(crate) whole: Duration,
    pub(crate) queued: Duration,
    pub(crate) prefill: Duration,
    pub(crate) decode: Duration,
    pub(crate) prompt_tokens: usize,
    pub(crate) cached_tokens: usize,
    pub(crate) recomputed_tokens: usize,
    pub(crate) generated_tokens: usize,
    /// Drafted tokens that were verified, and how many of them were accepted; `None` without a drafter.
    pub(crate) drafts: Option<(usize, usize)>,
}

/// Buckets of short times, in seconds.
fn short() -> Histogram {
    Histogram::new([
        0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0,
    ])
}

/// Buckets of the times of requests, in seconds.
fn long() -> Histogram {
    Histogram::new([
        0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0,
    ])
}

/// Buckets of numbers of tokens.
fn sizes() -> Histogram {
    Histogram::new((0..15).map(|power| f64::from(1u32 << power)))
}

impl Metrics {
    /// Metrics that count nothing yet.
    pub(crate) fn new() -> Metrics {
        let times = |make: fn() -> Histogram| Times::new_with_constructor(make);
        let mut metrics = Metrics {
            registry: Registry::default(),
            http: Counts::default(),
            ended: Counts::default(),
            prompt_tokens: Counts::default(),
            cached_tokens: Counts::default(),
            recomputed_tokens: Counts::default(),
            generated_tokens: Counts::default(),
            ttft: times(long),
            between_tokens: times(short),
            whole: times(long),
            queued: times(long),
            prefill: times(long),
            decode: times(long),
            prompt_sizes: times(sizes),
            answer_sizes: times(sizes),
            state: State::default(),
            scrape: Mutex::default(),
        };
        metrics.register_counts();
        metrics.register_times();
        metrics.state.register(&mut metrics.registry);
        metrics
    }

    fn register_counts(&mut self) {
        let r = &mut self.registry;
        add(r, &["lapwing_http_requests"], "HTTP requests by path and status", &self.http);
        add(
            r,
            &["lapwing_requests", "vllm:request_success"],
            "Requests that ended, by reason",
            &self.ended,
        );
        add(
            r,
            &[
                "lapwing_prompt_tokens",
                "vllm:prompt_tokens",
                "vllm:prefix_cache_queries",
                "llamacpp:prompt_tokens",
            ],
            "Tokens of prompts, with those that the prefix cache had",
            &self.prompt_tokens,
        );
        add(
            r,
            &["lapwing_cached_tokens", "vllm:prefix_cache_hits"],
            "Tokens of prompts that the prefix cache had",
            &self.cached_tokens,
        );
        add(
            r,
            &["lapwing_recomputed_tokens"],
            "Tokens of prompts computed again, because the prefix cache had their keys and values but no states behind them",
            &self.recomputed_tokens,
        );
        add(
            r,
            &["lapwing_generated_tokens", "vllm:generation_tokens", "llamacpp:tokens_predicted"],
            "Generated tokens",
            &self.generated_tokens,
        );
    }

    fn register_times(&mut self) {
        let rows: [(&[&str], &str, &Times); 8] = [
            (
                &["lapwing_time_to_first_token_seconds", "vllm:time_to_first_token_seconds"],
                "From the arrival of a request to its first token",
                &self.ttft,
            ),
            (
                &["lapwing_inter_token_latency_seconds", "vllm:inter_token_latency_seconds"],
                "From a token to the next one",
                &self.between_tokens,
            ),
            (
                &["lapwing_request_seconds", "vllm:e2e_request_latency_seconds"],
                "From the arrival of a request to its end",
                &self.whole,
            ),
            (
                &["lapwing_queue_seconds", "vllm:request_queue_time_seconds"],
                "From the arrival of a request to its admission",
                &self.queued,
            ),
            (
                &["lapwing_prefill_seconds", "vllm:request_prefill_time_seconds"],
                "From the admission of a request to its first token",
                &self.prefill,
            ),
            (
                &["lapwing_decode_seconds", "vllm:request_decode_time_seconds"],
                "From the first token of a request to its last",
                &self.decode,
            ),
            (
                &["lapwing_request_prompt_tokens", "vllm:request_prompt_tokens"],
                "Tokens of a prompt",
                &self.prompt_sizes,
            ),
            (
                &["lapwing_request_generated_tokens", "vllm:request_generation_tokens"],
                "Tokens of an answer",
                &self.answer_sizes,
            ),
        ];
        for (names, help, metric) in rows {
            add(&mut self.registry, names, help, metric);
        }
    }

    /// Counts an HTTP request.
    pub(crate) fn count_http(&self, path: &str, status: u16) {
        let labels = vec![("path", path.to_owned()), ("status", status.to_string())];
        self.http.get_or_create(&labels).inc();
    }

    /// The metrics of an answer of `name` that begins.
    pub(crate) fn begin(&self, name: &str) -> AnswerMetrics {
        let labels = model(name);
        AnswerMetrics {
            ttft: self.ttft.get_or_create_owned(&labels),
            between_tokens: self.between_tokens.get_or_create_owned(&labels),
        }
    }

    /// Counts an answer that has ended for `reason`: `stop`, `length`, `cancelled` or `error`.
    pub(crate) fn end(&self, name: &str, reason: &str, taken: &Taken) {
        let labels = model(name);
        let mut with_reason = labels.clone();
        with_reason.push(("finished_reason", reason.to_owned()));
        self.ended.get_or_create(&with_reason).inc();
        let counts = [
            (&self.prompt_tokens, taken.prompt_tokens),
            (&self.cached_tokens, taken.cached_tokens),
            (&self.recomputed_tokens, taken.recomputed_tokens),
            (&self.generated_tokens, taken.generated_tokens),
        ];
        for (counter, tokens) in counts {
            counter.get_or_create(&labels).inc_by(tokens as u64);
        }
        let times = [
            (&self.whole, taken.whole.as_secs_f64()),
            (&self.queued, taken.queued.as_secs_f64()),
            (&self.prefill, taken.prefill.as_secs_f64()),
            (&self.decode, taken.decode.as_secs_f64()),
            (&self.prompt_sizes, taken.prompt_tokens as f64),
            (&self.answer_sizes, taken.generated_tokens as f64),
        ];
        for (histogram, value) in times {
            histogram.get_or_create(&labels).observe(value);
        }
    }

    /// All metrics as text in `format`, with the state of the loaded models.
    pub(crate) fn text(&self, engines: &[Report], format: Format) -> String {
        let _one = self.scrape.lock().unwrap_or_else(PoisonError::into_inner);
        self.state.set(engines);
        let mut out = String::new();
        // Writing into a string cannot fail.
        let _ = match format {
            Format::OpenMetrics => text::encode(&mut out, &self.registry),
            Format::Prometheus => prometheus_text::encode(&mut out, &self.registry),
        };
        out
    }
}

impl AnswerMetrics {
    /// A token arrived, so long after the request or the token before it.
    pub(crate) fn token(&self, after: Duration, is_first: bool) {
        let histogram = if is_first { &self.ttft } else { &self.between_tokens };
        histogram.observe(after.as_secs_f64());
    }
}
