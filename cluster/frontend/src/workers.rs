//! Workers as they announce themselves.

use dynamo_llm::local_model::runtime_config::ModelRuntimeConfig;
use lapwing_engine::routing::{PrefillTime, WorkerSpec};

use crate::router::Member;

/// Where a worker of Lapwing announces its speed.
const SPEED: &str = "lapwing_speed";

/// Prompt tokens per second of workers of which none announces a speed.
const RATE: f64 = 1000.0;

/// A worker of that number, whose blocks have so many tokens. Nothing is known of its cache.
pub(crate) fn member(instance: u64, config: &ModelRuntimeConfig, block_tokens: usize) -> Member {
    let speed = config.runtime_data.get(SPEED);
    let rate = speed.and_then(|speed| speed.get("prefill_tokens_per_second")?.as_f64());
    Member {
        instance,
        prompt_rate: rate.filter(|rate| rate.is_finite() && *rate > 0.0),
        kv_tokens: config.total_kv_blocks.unwrap_or(0) as usize * block_tokens,
        cached: 0,
    }
}

/// What a policy is told of workers. One that announces no speed counts as the mean of the others.
pub(crate) fn specs(members: &[Member]) -> Vec<WorkerSpec> {
    let rates: Vec<f64> = members.iter().filter_map(|member| member.prompt_rate).collect();
    let mean = match rates.is_empty() {
        true => RATE,
        false => rates.iter().sum::<f64>() / rates.len() as f64,
    };
    let prefill = PrefillTime { row: mean.recip(), ..PrefillTime::default() };
    let spec = |member: &Member| WorkerSpec {
        speed: member.prompt_rate.unwrap_or(mean) / mean,
        kv_tokens: member.kv_tokens,
        prefill,
    };
    members.iter().map(spec).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_worker_is_as_fast_as_it_announces() {
        let mut config =
            ModelRuntimeConfig { total_kv_blocks: Some(10), ..ModelRuntimeConfig::default() };
        let unknown = member(1, &config, 16);
        assert_eq!((unknown.prompt_rate, unknown.kv_tokens), (None, 160));
        let speed = json!({ "prefill_tokens_per_second": 300.0, "prompt_tokens": 512 });
        config.runtime_data.insert(SPEED.to_owned(), speed);
        let known = member(2, &config, 16);
        let slow = Member { prompt_rate: Some(100.0), ..known };
        let specs = specs(&[unknown, known, slow]);
        let seconds: Vec<f64> = specs.iter().map(|spec| spec.prefill_seconds(600, 0)).collect();
        for (seconds, expected) in seconds.iter().zip([3.0, 2.0, 6.0]) {
            assert!((seconds - expected).abs() < 1e-9, "{seconds} beside {expected}");
        }
    }
}
