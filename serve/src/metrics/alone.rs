//! The state of engines as metrics, without a server.

use lapwing_actors::stats::EngineStats;
use prometheus_client::encoding::prometheus_text;
use prometheus_client::registry::Registry;

use super::state::State;

/// The state of engines by the names of their models, in Prometheus' text format and by the names of `/metrics`: for a program that
/// has metrics of its own. What only a server counts, such as the times of requests, is left out.
pub fn state_metrics(engines: &[(String, EngineStats)]) -> String {
    let (state, mut registry) = (State::default(), Registry::default());
    state.register(&mut registry);
    state.set(engines);
    let mut out = String::new();
    // Writing into a string cannot fail.
    let _ = prometheus_text::encode(&mut out, &registry);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateways_find_their_names_for_each_model() {
        let stats = EngineStats { kv_pages: 8, kv_pages_leased: 2, ..EngineStats::default() };
        let text = state_metrics(&[("small".to_owned(), stats)]);
        let line = |name: &str| text.lines().find(|line| line.starts_with(name)).map(str::to_owned);
        let usage = line("vllm:kv_cache_usage_perc{").expect("the usage");
        assert!(usage.contains("small") && usage.ends_with(" 0.25"), "{usage}");
        assert!(line("vllm:num_requests_waiting{").is_some(), "{text}");
    }
}
