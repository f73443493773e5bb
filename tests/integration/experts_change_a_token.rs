//! A model with mixtures of experts has the same answers in any chunks, beside any requests, on any devices, after preemption, on
//! from the pages of earlier requests, and with drafts: which rows an expert computes together changes no bit.

use std::ops::Range;
use std::path::{Path, PathBuf};

use lapwing::devices::DeviceSpec;
use lapwing::draft::DraftChoice;
use lapwing::plan::strategy::{Ratio, StrategyOptions};
use lapwing::{Engine, EngineBuilder, Prompt, Requant, Request};

use crate::cases::cases;

pub(crate) const MODELS: [&str; 6] =
    ["qwen3moe", "gpt-oss", "glm4moe", "llama4", "step35", "grovemoe"];
pub(crate) const TOKENS: usize = 24;

pub(crate) fn tiny(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/reference/tiny/{name}.gguf"))
}

pub(crate) fn builder(name: &str) -> EngineBuilder {
    Engine::builder().model(tiny(name)).threads(2)
}

/// Ids and the bits of their log-probabilities.
pub(crate) type Answer = Vec<(u32, u32)>;

fn prompt(len: u32, step: u32) -> Vec<u32> {
    (0..len).map(|at| (at * at + step * at + step) % 128).collect()
}

/// The answers to prompts that are asked at the same time.
pub(crate) async fn answers(engine: &Engine, prompts: &[Vec<u32>]) -> Vec<Answer> {
    let mut streams = Vec::new();
    for ids in prompts {
        let request = Request::new(Prompt::Ids(ids.clone())).greedy().ignore_eos();
        streams.push(engine.generate(request.max_tokens(TOKENS)).await.expect("a stream"));
    }
    let mut answers = Vec::new();
    for mut stream in streams {
        let mut answer = Vec::new();
        while let Some(token) = stream.next().await {
            let token = token.expect("a token");
            answer.push((token.id, token.logprob.to_bits()));
        }
        answers.push(answer);
    }
    answers
}

/// The answers to prompts that are asked one after the other, each computed whole.
pub(crate) async fn alone(name: &str, prompts: &[Vec<u32>]) -> Vec<Answer> {
    let engine = builder(name).chunk_rows(512).threads(1).prefix_cache(false);
    let engine = engine.build().await.expect("an engine");
    let mut all = Vec::new();
    for ids in prompts {
        all.append(&mut answers(&engine, std::slice::from_ref(ids)).await);
    }
    all
}

pub(crate) fn prompts() -> Vec<Vec<u32>> {
    [(1, 3), (33, 5), (64, 7), (90, 9), (7, 11)].map(|(len, step)| prompt(len, step)).to_vec()
}

#[tokio::test]
async fn devices_change_no_bit() {
    for name in MODELS {
        let wanted = alone(name, &prompts()).await;
        for strategy in ["auto", "layer-split", "row-cut", "sequence-cut", "expert-cut"] {
            let devices = DeviceSpec::list("cpu+gpu=throttled:gflops=40,gbps=8").expect("devices");
            let engine = builder(name).devices(devices).strategy(strategy);
            let engine = engine.build().await.expect("an engine");
            assert_eq!(answers(&engine, &prompts()).await, wanted, "{name} with {strategy}");
        }
    }
}

/// The ids of answers.
pub(crate) fn ids(answers: &[Answer]) -> Vec<Vec<u32>> {
    answers.iter().map(|answer| answer.iter().map(|(id, _)| *id).collect()).collect()
}

/// The GPU of these has memory of its own, too small for all experts: values cross by transfers, and what does not fit stays on the CPU.
#[tokio::test]
async fn a_gpu_with_memory_of_its_own_changes_no_bit() {
    let cpu = "cpu=throttled:kind=cpu,gflops=0.2,gbps=1,idle-submit=0,sync=0";
    let gpu =
        "gpu=throttled:gflops=40,gbps=8,submit=0,idle-submit=0,sync=0,link=100,link-latency=0";
    for name in MODELS {
        let wanted = alone(name, &prompts()).await;
        let mut used = [false; 2];
        for memory in ["100KiB", "200KiB", "64MiB"] {
            let devices = DeviceSpec::list(&format!("{cpu}+{gpu},memory={memory}"));
            let engine = builder(name).devices(devices.expect("devices")).context(128);
            let engine = engine.strategy("auto").chunk_rows(32).build().await.expect("an engine");
            let chunks = engine.plan(90).expect("a plan");
            let parts = chunks.iter().flat_map(|chunk| &chunk.stages).flat_map(|s| &s.parts);
            let names: Vec<&str> = parts.map(|part| &*part.device).collect();
            used[0] |= names.contains(&"cpu") && names.contains(&"gpu");
            used[1] |= names.contains(&"gpu") && !names.contains(&"cpu");
            assert_eq!(answers(&engine, &prompts()).await, wanted, "{name} with {memory}");
            assert_eq!(engine.slots().in_use, 0, "{name} keeps slots");
        }
        assert!(used[0], "{name} never runs on both");
        assert!(used[1], "{name} never runs on the GPU alone");
    }
}

#[tokio::test]
async fn drafts_change_no_token() {
    for name in MODELS {
        let wanted = ids(&alone(name, &prompts()).await);
        for draft in [DraftChoice::lookup(), DraftChoice::own(Requant::Q8_0)] {
            let draft_name = draft.name().to_owned();
            let engine = builder(name).draft(draft).build().await.expect("an engine");
            let found = answers(&engine, &prompts()).await;
            assert_eq!(ids(&found), wanted, "{name} with {draft_name}");
        }
    }
}

/// A number below `end`, another one at each call.
pub(crate) fn roll(state: &mut u64, end: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize % end
}

/// The seeds of random schedules: 40, in full 400, or as many as `LAPWING_TEST_SCHEDULES` says.
fn seeds() -> Range<u64> {
    let wanted = std::env::var("LAPWING_TEST_SCHEDULES").ok();
    let wanted = wanted.map(|count| count.parse().expect("LAPWING_TEST_SCHEDULES is a number"));
    0..wanted.unwrap_or(cases(40, 400))
}

/// On one device, or with the experts of each layer divided between two.
#[tokio::test]
async fn random_schedules_change_no_bit() {
    let mut wanted = Vec::new();
    for name in MODELS {
        wanted.push(alone(name, &prompts()).await);
    }
    let mut preempted = 0;
    for seed in seeds() {
        let mut dice = seed;
        let model = roll(&mut dice, MODELS.len());
        let chunk = 1 + roll(&mut dice, 70);
        let policy = ["fcfs", "hrrn", "edf", "dlpm"][roll(&mut dice, 4)];
        let engine = builder(MODELS[model]).chunk_rows(chunk).policy(policy).context(128);
        let engine = engine.threads(1 + roll(&mut dice, 2)).prefix_cache(roll(&mut dice, 2) == 0);
        let engine = match roll(&mut dice, 2) {
            0 => engine.cache_tokens(160 + 32 * roll(&mut dice, 4)),
            _ => engine,
        };
        let engine = match roll(&mut dice, 3) {
            0 => {
                let devices = DeviceSpec::list("cpu+gpu=throttled:gflops=400,gbps=80");
                let units = [1 + roll(&mut dice, 9), 1 + roll(&mut dice, 9)];
                let ratio = Some(Ratio::new(&units).expect("a ratio"));
                let options = StrategyOptions { ratio, ..StrategyOptions::default() };
                let engine = engine.devices(devices.expect("devices")).strategy("expert-cut");
                engine.strategy_options(options)
            }
            _ => engine,
        };
        let engine = engine.build().await.expect("an engine");
        let picked: Vec<usize> = (0..2 + roll(&mut dice, 6)).map(|_| roll(&mut dice, 5)).collect();
        let asked: Vec<Vec<u32>> = picked.iter().map(|at| prompts()[*at].clone()).collect();
        let found = answers(&engine, &asked).await;
        for (at, answer) in picked.iter().zip(&found) {
            let name = MODELS[model];
            assert_eq!(*answer, wanted[model][*at], "{name}, prompt {at}, seed {seed}");
        }
        preempted += engine.stats().await.expect("stats").all.preempted;
    }
    assert!(preempted > 0, "no request was preempted");
}
