//! The state of engines when the metrics are read.

use lapwing_actors::stats::{PaceStats, TIME_ERRORS};
use prometheus_client::registry::Registry;

use super::Report;
use super::family::{Numbers, add, model};

const RUNNING: [&str; 3] =
    ["lapwing_requests_running", "vllm:num_requests_running", "llamacpp:requests_processing"];
const WAITING: [&str; 3] =
    ["lapwing_requests_waiting", "vllm:num_requests_waiting", "llamacpp:requests_deferred"];

/// What engines report when the metrics are read.
#[derive(Debug, Default)]
pub(super) struct State {
    running: Numbers,
    waiting: Numbers,
    kv_usage: Numbers,
    kv_pages: Numbers,
    kv_cached: Numbers,
    cache_config: Numbers,
    states: Numbers,
    states_cached: Numbers,
    graphs_wanted: Numbers,
    chunks_elsewhere: Numbers,
    chunks_short: Numbers,
    tokens_late: Numbers,
    time_errors: Numbers,
    preempted: Numbers,
    loaded: Numbers,
    clients: Numbers,
    policy: Numbers,
}

impl State {
    pub(super) fn register(&self, r: &mut Registry) {
        for (names, help, metric) in self.families() {
            add(r, names, help, metric);
        }
    }

    /// Names, help and numbers of each family.
    fn families(&self) -> [(&[&str], &str, &Numbers); 17] {
        [
            (&RUNNING, "Requests that run", &self.running),
            (&WAITING, "Requests that wait to be admitted", &self.waiting),
            (
                &["lapwing_kv_usage_ratio", "vllm:kv_cache_usage_perc"],
                "Part of the KV pages that requests lease, 0 to 1",
                &self.kv_usage,
            ),
            (&["lapwing_kv_pages"], "Pages of the KV cache", &self.kv_pages),
            (&["lapwing_kv_pages_cached"], "KV pages that the prefix cache holds", &self.kv_cached),
            (
                &["vllm:cache_config_info"],
                "1, with the size and the number of the blocks of the KV cache, and whether requests share them",
                &self.cache_config,
            ),
            (&["lapwing_states"], "Places of states of recurrent layers", &self.states),
            (
                &["lapwing_states_cached"],
                "States of recurrent layers that the prefix cache holds",
                &self.states_cached,
            ),
            (
                &["lapwing_graphs_wanted"],
                "Graphs of NPUs that chunks have lacked and that are not ready yet",
                &self.graphs_wanted,
            ),
            (
                &["lapwing_chunks_elsewhere"],
                "Chunks that other devices computed because graphs were not ready, since the model was loaded",
                &self.chunks_elsewhere,
            ),
            (
                &["lapwing_chunks_short"],
                "Chunks with fewer prompt rows for streams or as background work, since the model was loaded, by cause",
                &self.chunks_short,
            ),
            (
                &["lapwing_tokens_late"],
                "Tokens that came later than the token gap of their stream, since the model was loaded",
                &self.tokens_late,
            ),
            (
                &["lapwing_chunk_time_errors"],
                "Chunks with fewer prompt rows for streams, by the most that their predicted time differs from the real one, as a share of it",
                &self.time_errors,
            ),
            (
                &["lapwing_preemptions", "vllm:num_preemptions"],
                "How many times a request lost its KV pages, since the model was loaded",
                &self.preempted,
            ),
            (&["lapwing_model_loaded"], "1 if the model is loaded", &self.loaded),
            (
                &["lapwing_client"],
                "Requests and tokens of a client since the model was loaded, by quantity",
                &self.clients,
            ),
            (
                &["lapwing_policy"],
                "Numbers that explain the queue policy's decisions, by name",
                &self.policy,
            ),
        ]
    }

    /// Writes the state of the loaded models into the gauges.
    pub(super) fn set(&self, engines: &[Report]) {
        for family in
            [&self.running, &self.waiting, &self.kv_usage, &self.kv_pages, &self.kv_cached]
                .into_iter()
                .chain([&self.graphs_wanted, &self.chunks_elsewhere])
                .chain([&self.chunks_short, &self.tokens_late, &self.time_errors])
                .chain([&self.preempted, &self.loaded, &self.clients, &self.policy])
                .chain([&self.cache_config])
        {
            family.clear();
        }
        for Report { name, stats, cache } in engines {
            let set = |family: &Numbers, value: f64| {
                family.get_or_create(&model(name)).set(value);
            };
            set(&self.running, stats.running as f64);
            set(&self.waiting, stats.waiting as f64);
            set(&self.kv_usage, stats.kv_pages_leased as f64 / stats.kv_pages.max(1) as f64);
            set(&self.kv_pages, stats.kv_pages as f64);
            set(&self.kv_cached, stats.kv_pages_cached as f64);
            set(&self.states, stats.states as f64);
            set(&self.states_cached, stats.states_cached as f64);
            set(&self.graphs_wanted, stats.graphs.wanted as f64);
            set(&self.chunks_elsewhere, stats.graphs.chunks_elsewhere as f64);
            set(&self.tokens_late, stats.pace.tokens_late as f64);
            set(&self.preempted, stats.all.preempted as f64);
            set(&self.loaded, 1.0);
            let with = |key, value: &str| {
                let mut labels = model(name);
                labels.push((key, value.to_owned()));
                labels
            };
            let mut config = with("block_size", &cache.tokens.to_string());
            config.push(("num_gpu_blocks", cache.count.to_string()));
            let is_shared = if cache.are_shared { "True" } else { "False" };
            config.push(("enable_prefix_caching", is_shared.to_owned()));
            self.cache_config.get_or_create(&config).set(1.0);
            for (cause, chunks) in
                [("token gap", stats.pace.chunks_limited), ("kept short", stats.pace.chunks_short)]
            {
                self.chunks_short.get_or_create(&with("cause", cause)).set(chunks as f64);
            }
            for (bound, chunks) in time_errors(&stats.pace) {
                self.time_errors.get_or_create(&with("le", &bound)).set(chunks as f64);
            }
            for client in &stats.clients {
                let quantities = [
                    ("running", client.running),
                    ("waiting", client.waiting),
                    ("requests", client.work.requests),
                    ("refused", client.work.refused),
                    ("cancelled", client.work.cancelled),
                    ("prompt_tokens", client.work.prompt_tokens),
                    ("cached_tokens", client.work.cached_tokens),
                    ("generated_tokens", client.work.generated_tokens),
                ];
                for (quantity, value) in quantities {
                    let mut labels = with("client", &client.client.to_string());
                    labels.push(("quantity", quantity.to_owned()));
                    self.clients.get_or_create(&labels).set(value as f64);
                }
            }
            for (number, value) in &stats.policy_numbers {
                self.policy.get_or_create(&with("number", number)).set(*value);
            }
        }
    }
}

/// Number of chunks by the most that their predicted time differs from the real one.
pub(crate) fn time_errors(pace: &PaceStats) -> impl Iterator<Item = (String, u64)> {
    let bounds = TIME_ERRORS.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
    bounds.zip(pace.time_errors_within())
}
