//! The state of an engine as metrics, without a server.

use lapwing_actors::stats::EngineStats;
use lapwing_engine::kv_events::CacheBlocks;
use prometheus_client::encoding::prometheus_text;
use prometheus_client::registry::Registry;

use super::Report;
use super::state::State;

/// The state of the engine of a model, in Prometheus' text format and by the names of `/metrics`: for a program that has metrics of its
/// own. What only a server counts, such as the times of requests, is left out.
pub fn state_metrics(model: &str, stats: EngineStats, cache: CacheBlocks) -> String {
    let (state, mut registry) = (State::default(), Registry::default());
    state.register(&mut registry);
    state.set(&[Report { name: model.to_owned(), stats, cache }]);
    let mut out = String::new();
    // Writing into a string cannot fail.
    let _ = prometheus_text::encode(&mut out, &registry);
    out
}
