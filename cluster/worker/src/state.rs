//! The state of the engine, as Dynamo's router and metrics get it.

use std::sync::Arc;
use std::time::Duration;

use dynamo_backend_common::{ComponentSnapshot, SnapshotPublisher};
use lapwing_engine::{Engine, EngineStats};
use lapwing_kernels::kv::KvLayout;
use tokio::sync::watch;

/// Tokens of a block of the router, which is the border of what the engine reports of its cache.
pub(crate) const BLOCK: usize = 16;

/// Time between two looks at an engine that has requests.
const EVERY: Duration = Duration::from_millis(250);

/// Blocks of so many pages.
pub(crate) fn blocks(pages: usize) -> u64 {
    (pages * KvLayout::PAGE_ROWS / BLOCK) as u64
}

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
            match engine.stats().await {
                Ok(stats) if sender.send(stats).is_ok() => {}
                _ => return,
            }
        }
    });
    state
}

/// Tells the router each change of the state.
pub(crate) async fn publish(
    publisher: Arc<SnapshotPublisher>,
    mut state: watch::Receiver<EngineStats>,
) {
    let mut before = EngineStats::default();
    loop {
        let now = state.borrow_and_update().clone();
        publisher.publish(0, snapshot(&before, &now));
        before = now;
        if state.changed().await.is_err() {
            return;
        }
    }
}

/// What the router is told: the blocks that requests use, and how much of the prompts since the last look the prefix cache had.
fn snapshot(before: &EngineStats, now: &EngineStats) -> ComponentSnapshot {
    let cached = now.all.cached_tokens.saturating_sub(before.all.cached_tokens);
    let all = cached + now.all.prompt_tokens.saturating_sub(before.all.prompt_tokens);
    ComponentSnapshot {
        kv_used_blocks: blocks(now.kv_pages_leased),
        kv_total_blocks: blocks(now.kv_pages),
        gpu_cache_usage: now.kv_pages_leased as f32 / now.kv_pages.max(1) as f32,
        kv_cache_hit_rate: (all > 0).then(|| cached as f32 / all as f32),
        dp_rank: 0,
    }
}

#[cfg(test)]
mod tests {
    use lapwing_engine::Work;

    use super::*;

    #[test]
    fn the_hit_rate_is_that_of_the_prompts_since_the_last_look() {
        let at = |cached_tokens, prompt_tokens, kv_pages_leased| EngineStats {
            all: Work { cached_tokens, prompt_tokens, ..Work::default() },
            kv_pages: 8,
            kv_pages_leased,
            ..EngineStats::default()
        };
        let one = snapshot(&at(10, 10, 0), &at(13, 11, 2));
        assert_eq!((one.kv_used_blocks, one.kv_total_blocks), (4, 16));
        assert_eq!((one.gpu_cache_usage, one.kv_cache_hit_rate), (0.25, Some(0.75)));
        assert_eq!(snapshot(&at(13, 11, 0), &at(13, 11, 0)).kv_cache_hit_rate, None);
    }
}
