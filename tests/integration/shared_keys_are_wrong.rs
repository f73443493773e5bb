//! Shared keys and values give the same tokens on all devices, with all strategies, prefixes and drafts.

use std::path::Path;

use lapwing::devices::DeviceSpec;
use lapwing::draft::{DraftChoice, Schedule};
use lapwing::plan::strategies;
use lapwing::{Engine, EngineBuilder, Prompt, Requant, Request, Shutdown};

use crate::a_strategy_changes_a_token::{CONTEXT, GPU, NPU, long_model, prompt};
use crate::support::collect_ids;

const LENGTHS: [usize; 3] = [1, 135, 600];
const SHARINGS: [&str; 2] = ["layers=2", "layers=2,heads=1"];

/// An engine of the long model on these devices.
fn with(model: &Path, devices: &str, sharing: &str) -> EngineBuilder {
    let builder = Engine::builder().model(model).context(CONTEXT).threads(2);
    let sharing = sharing.parse().expect("a sharing");
    let builder = builder.devices(DeviceSpec::list(devices).expect("devices"));
    builder.share_kv(sharing).wait_for_graphs(true)
}

/// Tokens after prompts of all lengths, the longest one twice.
async fn answers(engine: Engine) -> Vec<Vec<u32>> {
    let mut all = Vec::new();
    for length in LENGTHS.into_iter().chain([600]) {
        let request = Request::new(Prompt::Ids(prompt(length)));
        let request = request.greedy().ignore_eos().max_tokens(12);
        all.push(collect_ids(engine.generate(request).await.expect("a stream")).await);
    }
    assert_eq!(engine.slots().in_use, 0);
    engine.shutdown(Shutdown::Drain).await.expect("an end");
    all
}

#[tokio::test]
async fn every_strategy_gives_the_same_tokens() {
    let folder = tempfile::tempdir().expect("folder");
    let model = long_model(folder.path());
    let devices = format!("cpu+{GPU}+{NPU}");
    let mut different = Vec::new();
    for sharing in SHARINGS {
        let engine = with(&model, "cpu", sharing).chunk_rows(1 << 10).build().await;
        let wanted = answers(engine.expect("an engine")).await;
        for known in strategies() {
            let builder = with(&model, &devices, sharing).strategy(known.name());
            let engine = builder.build().await.expect("an engine");
            assert_eq!(answers(engine).await, wanted, "{sharing}, {}", known.name());
        }
        // The layers of the group are on different devices.
        let split = with(&model, &format!("cpu+{GPU}"), sharing).gpu_layers(1);
        let engine = split.chunk_rows(48).build().await.expect("an engine");
        assert_eq!(answers(engine).await, wanted, "{sharing}, one layer on the GPU");
        different.push(wanted);
    }
    assert_ne!(different[0], different[1]);
}

#[tokio::test]
async fn prefixes_and_drafts_change_no_token() {
    let folder = tempfile::tempdir().expect("folder");
    let model = long_model(folder.path());
    for sharing in SHARINGS {
        let builder = || with(&model, "cpu", sharing).chunk_rows(100);
        let plain = builder().prefix_cache(false).build().await.expect("an engine");
        let wanted = answers(plain).await;
        let own = DraftChoice::own(Requant::Q4_0);
        let drafts = [DraftChoice::none(), DraftChoice::lookup(), own.clone()];
        for draft in drafts.into_iter().chain([own.schedule(Schedule::Asynchronous)]) {
            let name = draft.name().to_owned();
            let engine = builder().draft(draft).build().await.expect("an engine");
            assert_eq!(answers(engine).await, wanted, "{sharing}, drafts {name}");
        }
    }
}
