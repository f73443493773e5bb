//! Drafts change no token where the target runs on a real queue, or on three kinds of devices: 64 tokens of 10 prompts
//! with each drafter and schedule. The model is tiny, so that the drafters are right often and rejected often.

use std::path::{Path, PathBuf};

use lapwing::devices::DeviceSpec;
use lapwing::draft::{DraftChoice, DraftForm, Schedule};
use lapwing::{Activations, Engine, Prompt, Requant, Request, Shutdown};

use crate::a_draft_changes_a_token::Scrambled;
use crate::a_strategy_changes_a_token::{GPU, NPU};
use crate::support::collect_ids;
#[cfg(feature = "opencl")]
use crate::support::needs_driver;

const PROMPTS: u32 = 10;
const TOKENS: usize = 64;

/// Drafters, of which models run on the device of that name.
fn drafts(device: &str) -> Vec<DraftChoice> {
    let own = DraftChoice::own(Requant::Q4_0).on_device(device);
    let pearl = DraftForm { pre_verify: true, post_verify: true, ..DraftForm::default() };
    vec![
        DraftChoice::lookup(),
        DraftChoice::suffix(),
        DraftChoice::made_by("scrambled", || Scrambled(7)),
        own.clone(),
        own.clone().schedule(Schedule::Asynchronous),
        own.schedule(Schedule::Asynchronous).form(pearl),
    ]
}

fn tiny(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/reference/tiny/{name}.gguf"))
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
    for (number, mut stream) in streams.into_iter().enumerate() {
        let mut ids = Vec::new();
        while let Some(token) = stream.next().await {
            ids.push(token.expect("a token").id);
        }
        let stats = stream.summary().and_then(|summary| summary.drafts.clone());
        let stats = stats.unwrap_or_default();
        assert_eq!(stats.stopped, None, "text {number}");
        drafted += stats.drafted;
        all.push(ids);
    }
    (all, drafted)
}

async fn check(devices: &str, strategy: &str, drafts: Vec<DraftChoice>) {
    let model = tiny("llama");
    let engine = |draft: DraftChoice| {
        let specs = DeviceSpec::list(devices).expect("devices");
        let builder = Engine::builder().model(&model).context(128).activations(Activations::F32);
        let programs = Path::new(env!("CARGO_TARGET_TMPDIR")).join("opencl");
        let builder = builder.packed_cache(programs).devices(specs).strategy(strategy);
        builder.draft(draft).wait_for_graphs(true).build()
    };
    let plain = engine(DraftChoice::none()).await.expect("an engine");
    let (wanted, _) = answers(&plain).await;
    assert!(wanted.iter().all(|ids| ids.len() == TOKENS), "{devices}");
    let mut drafted = 0;
    for draft in drafts {
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
    check("cpu+gpu=opencl", "gpu-only", drafts("cpu")).await;
    check("cpu+gpu=opencl", "layer-split", drafts("cpu")).await;
}

/// The target on the same queue, on the CPU beside it, and on both. Without a name, a draft model runs on a GPU if no
/// device computes on CPU threads.
#[cfg(feature = "opencl")]
#[tokio::test]
async fn a_draft_model_on_a_real_queue_changes_no_token() {
    needs_driver!(has_opencl);
    let other = DraftChoice::model(tiny("llama-tied").to_string_lossy()).on_device("gpu");
    let own = DraftChoice::own(Requant::Q4_0).on_device("gpu");
    let both = |draft: DraftChoice| [draft.clone(), draft.schedule(Schedule::Asynchronous)];
    let models: Vec<_> = [both(own.clone()), both(other), both(own.width(2))].concat();
    let unnamed = DraftChoice::own(Requant::Q4_0);
    check("gpu=opencl", "gpu-only", [models.clone(), vec![unnamed]].concat()).await;
    check("cpu+gpu=opencl", "cpu-only", models.clone()).await;
    check("cpu+gpu=opencl", "layer-split", models).await;
}

#[tokio::test]
async fn an_npu_is_refused_as_the_device_of_a_draft_model() {
    for (devices, able) in [(format!("cpu+{NPU}"), "attention: cpu"), (NPU.to_owned(), "add one")] {
        let builder = Engine::builder().model(tiny("llama"));
        let builder = builder.devices(DeviceSpec::list(&devices).expect("devices"));
        let draft = DraftChoice::own(Requant::Q4_0).on_device("npu");
        let error = builder.draft(draft).build().await.expect_err("an NPU").to_string();
        assert!(error.contains(able) && error.contains("NPUs compute no attention"), "{error}");
    }
}

#[tokio::test]
async fn drafts_change_no_token_on_three_kinds_of_devices() {
    let devices = format!("cpu+{GPU}+{NPU}");
    for strategy in ["auto", "layer-split"] {
        check(&devices, strategy, drafts("cpu")).await;
    }
}

/// The tiny model has weights of 32 bits, its draft model of 4.5; both read them at the bandwidth of the device.
#[tokio::test]
async fn the_predicted_time_of_a_draft_is_that_of_its_own_weights() {
    let device = "cpu=throttled:gflops=1e6,gbps=0.01,submit=0,idle-submit=0";
    let builder = Engine::builder().model(tiny("llama")).draft(DraftChoice::own(Requant::Q4_0));
    let builder = builder.devices(DeviceSpec::list(device).expect("a device"));
    let engine = builder.build().await.expect("an engine");
    let explained = engine.explain_drafts(16).expect("routes").expect("a drafter");
    let share = explained.draft.as_secs_f64() / explained.verify[0].as_secs_f64();
    assert!((4.5 / 32.0..0.35).contains(&share), "{share}");
}

/// One long text alone, whose verification passes are sent ahead where the layers are divided.
#[tokio::test]
async fn passes_ahead_change_no_token_of_a_live_engine() {
    let model = tiny("llama");
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
