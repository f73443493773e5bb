//! With the experts of each layer divided between devices, answers have the same bits: in any division, whether a row has experts of one
//! device or of several, in chunks, beside other requests, with drafts, with a memory of the device's own, and in virtual time.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use lapwing::devices::DeviceSpec;
use lapwing::draft::DraftChoice;
use lapwing::plan::strategy::{ExpertCut, Ratio, StrategyOptions};
use lapwing::{Engine, EngineBuilder, Requant};
use lapwing_plan::time::FixedRate;

use crate::experts_change_a_token::{MODELS, TOKENS, alone, answers, builder, ids, prompts, tiny};
use crate::simulated::{Simulated, tokens_of};

const PAIR: &str = "cpu+gpu=throttled:gflops=40,gbps=8";

/// An engine on these devices that divides experts, in a ratio or by time.
fn cut(name: &str, devices: &str, ratio: Option<[usize; 2]>) -> EngineBuilder {
    let ratio = ratio.map(|units| Ratio::new(&units).expect("a ratio"));
    let options = StrategyOptions { ratio, ..StrategyOptions::default() };
    let devices = DeviceSpec::list(devices).expect("devices");
    builder(name).devices(devices).strategy("expert-cut").strategy_options(options)
}

/// The experts of each part of the cut stages of a prompt of 90 tokens and of a decode step, each division once.
fn divisions(engine: &Engine) -> Vec<Vec<(String, Range<usize>)>> {
    let mut placements = engine.plan(90).expect("a plan");
    placements.push(engine.plan_decode(2, 20).expect("a plan"));
    let mut found = Vec::new();
    for stage in placements.iter().flat_map(|placement| &placement.stages) {
        let parts = stage.parts.iter();
        let own = parts.filter_map(|part| Some((part.device.clone(), part.experts.clone()?)));
        let own: Vec<_> = own.collect();
        if !own.is_empty() && !found.contains(&own) {
            found.push(own);
        }
    }
    found
}

#[tokio::test]
async fn any_division_gives_the_same_bits() {
    for name in MODELS {
        let wanted = alone(name, &prompts()).await;
        for (ratio, chunk) in [([1, 1], 512), ([1, 7], 7), ([7, 1], 33), ([3, 2], 64)] {
            let engine = cut(name, PAIR, Some(ratio)).chunk_rows(chunk);
            let engine = engine.build().await.expect("an engine");
            let divisions = divisions(&engine);
            assert!(divisions.len() == 1 && divisions[0].len() == 2, "{name}: {divisions:?}");
            let what = format!("{name} with {divisions:?}");
            assert_eq!(answers(&engine, &prompts()).await, wanted, "{what}");
            assert_eq!(engine.slots().in_use, 0, "{what}");
        }
        let engine = cut(name, PAIR, None).build().await.expect("an engine");
        assert_eq!(answers(&engine, &prompts()).await, wanted, "{name} by time");
    }
}

/// What the GPU's memory holds bounds its experts, of which prompts and decode steps have the same.
#[tokio::test]
async fn a_memory_bounds_the_experts_of_its_device() {
    let cpu = "cpu=throttled:kind=cpu,gflops=0.2,gbps=1,idle-submit=0,sync=0";
    let gpu =
        "gpu=throttled:gflops=40,gbps=8,submit=0,idle-submit=0,sync=0,link=100,link-latency=0";
    let mut bounded = 0;
    for name in MODELS {
        let wanted = alone(name, &prompts()).await;
        let mut of_gpu = Vec::new();
        for memory in ["100KiB", "200KiB", "400KiB", "64MiB"] {
            let engine = cut(name, &format!("{cpu}+{gpu},memory={memory}"), None).context(128);
            let engine = engine.chunk_rows(32).build().await.expect("an engine");
            let divisions = divisions(&engine);
            assert!(divisions.len() <= 1, "{name} with {memory}: {divisions:?}");
            let parts = divisions.iter().flatten().filter(|(device, _)| device == "gpu");
            of_gpu.push(parts.map(|(_, own)| own.len()).sum::<usize>());
            assert_eq!(answers(&engine, &prompts()).await, wanted, "{name} with {memory}");
        }
        // Attention and the other ops take the GPU's memory first, if all of them fit; with plenty, nothing is left to the CPU.
        bounded += usize::from(of_gpu[..3].iter().any(|own| *own > 0));
    }
    assert!(bounded > 2, "experts of {bounded} models are divided");
}

#[tokio::test]
async fn drafts_change_no_token() {
    for name in MODELS {
        let wanted = ids(&alone(name, &prompts()).await);
        for draft in [DraftChoice::lookup(), DraftChoice::own(Requant::Q8_0)] {
            let draft_name = draft.name().to_owned();
            let engine = cut(name, PAIR, Some([2, 3])).draft(draft);
            let engine = engine.build().await.expect("an engine");
            let found = answers(&engine, &prompts()).await;
            assert_eq!(ids(&found), wanted, "{name} with {draft_name}");
        }
    }
}

#[tokio::test]
async fn virtual_time_changes_no_token() {
    for name in MODELS {
        let wanted = ids(&alone(name, &prompts()).await);
        let rate =
            FixedRate { per_stage: Duration::from_micros(50), per_row: Duration::from_micros(5) };
        for devices in [&["a", "b"][..], &["a", "b", "c"]] {
            let strategy = Arc::new(ExpertCut::default());
            let simulated = Simulated { devices, strategy, rate, chunk_rows: 40, pages: 128 };
            let mut simulation = simulated.start_with(&tiny(name));
            let found = tokens_of(&mut simulation, &prompts(), TOKENS, &[]);
            assert_eq!(found, wanted, "{name} on {} devices", devices.len());
        }
    }
}
