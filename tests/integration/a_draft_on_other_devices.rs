//! Drafts change no token where the target runs on a real queue, or on three kinds of devices: 64 tokens of 10 prompts
//! with each drafter and schedule. The model is tiny, so that the drafters are right often and rejected often.

use std::path::Path;

use lapwing::devices::DeviceSpec;
use lapwing::draft::{DraftChoice, Schedule};
use lapwing::{Activations, Engine, Prompt, Requant, Request, Shutdown};

use crate::a_draft_changes_a_token::Scrambled;
use crate::a_strategy_changes_a_token::{GPU, NPU};
use crate::support::collect_ids;
#[cfg(feature = "opencl")]
use crate::support::needs_driver;

const PROMPTS: u32 = 10;
const TOKENS: usize = 64;

fn drafts() -> Vec<DraftChoice> {
    let own = DraftChoice::own(Requant::Q4_0).on_device("cpu");
    vec![
        DraftChoice::lookup(),
        DraftChoice::suffix(),
        DraftChoice::made_by("scrambled", || Scrambled(7)),
        own.clone(),
        own.schedule(Schedule::Asynchronous),
    ]
}

/// Half of the prompts repeat a phrase, which lookup and suffix find; every third one is sampled.
async fn answers(engine: &Engine) -> (Vec<Vec<u32>>, usize) {
    let mut streams = Vec::new();
    for number in 0..PROMPTS {
        let phrase = if number % 2 == 0 { 6 } else { 1000 };
        let ids = (0..30).map(|at| 3 + (at % phrase + number) * 7919 % 250).collect();
        let request = Request::new(Prompt::Ids(ids)).max_tokens(TOKENS).ignore_eos();
        let request = match number % 3 {
            0 => request.seed(u64::from(number)).temperature(0.9),
            _ => request.greedy(),
        };
        streams.push(engine.generate(request).await.expect("a stream"));
    }
    let (mut all, mut drafted) = (Vec::new(), 0);
    for mut stream in streams {
        let mut ids = Vec::new();
        while let Some(token) = stream.next().await {
            ids.push(token.expect("a token").id);
        }
        drafted += stream.summary().and_then(|s| s.drafts.as_ref()).map_or(0, |d| d.drafted);
        all.push(ids);
    }
    (all, drafted)
}

async fn check(devices: &str, strategy: &str) {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny/llama.gguf");
    let engine = |draft: DraftChoice| {
        let specs = DeviceSpec::list(devices).expect("devices");
        let builder = Engine::builder().model(&model).context(128).activations(Activations::F32);
        let programs = Path::new(env!("CARGO_TARGET_TMPDIR")).join("opencl");
        let builder = builder.packed_cache(programs).devices(specs).strategy(strategy);
        builder.draft(draft).build()
    };
    let plain = engine(DraftChoice::none()).await.expect("an engine");
    let (wanted, _) = answers(&plain).await;
    assert!(wanted.iter().all(|ids| ids.len() == TOKENS), "{devices}");
    let mut drafted = 0;
    for draft in drafts() {
        let name = format!("{draft:?} on {devices} with {strategy}");
        let engine = engine(draft).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        let (found, verified) = answers(&engine).await;
        assert_eq!(found, wanted, "{name}");
        drafted += verified;
        engine.shutdown(Shutdown::Drain).await.expect("an end");
        assert_eq!(engine.slots().in_use, 0, "{name} keeps slots");
    }
    assert!(drafted > 100, "only {drafted} drafted tokens were verified on {devices}");
}

#[cfg(feature = "opencl")]
#[tokio::test]
async fn drafts_change_no_token_with_a_real_queue() {
    needs_driver!(has_opencl);
    check("cpu+gpu=opencl", "gpu-only").await;
    check("cpu+gpu=opencl", "layer-split").await;
}

#[tokio::test]
async fn drafts_change_no_token_on_three_kinds_of_devices() {
    let devices = format!("cpu+{GPU}+{NPU}");
    for strategy in ["auto", "layer-split"] {
        check(&devices, strategy).await;
    }
}

/// One long text alone, whose verification passes are sent ahead where the layers are divided.
#[tokio::test]
async fn passes_ahead_change_no_token_of_a_live_engine() {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny/llama.gguf");
    let devices = format!("cpu+{GPU}");
    let build = |draft: DraftChoice| {
        let specs = DeviceSpec::list(&devices).expect("devices");
        let builder = Engine::builder().model(&model).context(256).strategy("layer-split");
        builder.devices(specs).draft(draft).build()
    };
    let own = DraftChoice::own(Requant::Q4_0).schedule(Schedule::Asynchronous);
    let (plain, drafting) = (build(DraftChoice::none()).await, build(own).await);
    let (plain, drafting) = (plain.expect("an engine"), drafting.expect("an engine"));
    for number in 0..10 {
        let ids: Vec<u32> = (0..8).map(|at| 3 + (at + number) * 7919 % 250).collect();
        let request = Request::new(Prompt::Ids(ids)).max_tokens(200).ignore_eos();
        let request =
            if number % 2 == 0 { request.greedy() } else { request.seed(u64::from(number)) };
        let wanted = plain.generate(request.clone()).await.expect("a stream");
        let found = drafting.generate(request).await.expect("a stream");
        assert_eq!(collect_ids(found).await, collect_ids(wanted).await, "text {number}");
    }
}
