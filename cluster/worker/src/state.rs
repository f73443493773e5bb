//! The state of the engine, as Dynamo's router and metrics get it.

use std::sync::Arc;
use std::time::Duration;

use dynamo_backend_common::{ComponentSnapshot, SnapshotPublisher};
use lapwing_engine::kv_events::CacheBlocks;
use lapwing_engine::{Engine, EngineStats};
use tokio::sync::watch;

/// Time between two looks at an engine that has requests.
const EVERY: Duration = Duration::from_millis(250);

/// Looks at the engine until it ends. One without requests is left alone.
pub(crate) fn observe(engine: Engine, now: EngineStats) -> watch::Receiver<EngineStats> {
    let (sender, state) = watch::channel(now);
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(EVERY);
        let mut was_idle = false;
        loop {
            ticks.tick().await;
            let is_idle = engine.requests() == 0;
            if is_idle && was_idle {
                if sender.is_closed() {
                    return;
                }
                continue;
            }
            was_idle = is_idle;
            let Ok(stats) = engine.stats().await else { return };
            if sender.send(stats).is_err() {
                return;
            }
        }
    });
    state
}

/// Tells the router each change of the state.
pub(crate) async fn publish(
    publisher: Arc<SnapshotPublisher>,
    blocks: CacheBlocks,
    mut state: watch::Receiver<EngineStats>,
) {
    let mut before = EngineStats::default();
    loop {
        let now = state.borrow_and_update().clone();
        publisher.publish(0, snapshot(blocks.count, &before, &now));
        before = now;
        if state.changed().await.is_err() {
            return;
        }
    }
}

/// What the router is told: the blocks that requests use, and how much of the prompts since the last look the prefix cache had.
fn snapshot(blocks: usize, before: &EngineStats, now: &EngineStats) -> ComponentSnapshot {
    let used = now.kv_pages_leased as f64 / now.kv_pages.max(1) as f64;
    let cached = now.all.cached_tokens.saturating_sub(before.all.cached_tokens);
    let all = cached + now.all.prompt_tokens.saturating_sub(before.all.prompt_tokens);
    ComponentSnapshot {
        // Pages of all models, of which a draft model has some.
        kv_used_blocks: (blocks as f64 * used).round() as u64,
        kv_total_blocks: blocks as u64,
        gpu_cache_usage: used as f32,
        kv_cache_hit_rate: (all > 0).then(|| cached as f32 / all as f32),
        dp_rank: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hit_rate_is_that_of_the_prompts_since_the_last_look() {
        let at = |cached_tokens, prompt_tokens, kv_pages_leased| {
            let mut stats = EngineStats::default();
            (stats.all.cached_tokens, stats.all.prompt_tokens) = (cached_tokens, prompt_tokens);
            (stats.kv_pages, stats.kv_pages_leased) = (8, kv_pages_leased);
            stats
        };
        let one = snapshot(16, &at(10, 10, 0), &at(13, 11, 2));
        assert_eq!((one.kv_used_blocks, one.kv_total_blocks), (4, 16));
        assert_eq!((one.gpu_cache_usage, one.kv_cache_hit_rate), (0.25, Some(0.75)));
        assert_eq!(snapshot(16, &at(13, 11, 0), &at(13, 11, 0)).kv_cache_hit_rate, None);
    }
}
