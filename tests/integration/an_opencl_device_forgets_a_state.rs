//! A model whose layers keep a state has the tokens of the CPU on an OpenCL device: alone, with layers on either side, by turns, on from
//! kept states, and with drafts.
//!
//! All devices compute with activations in f32, so that only the order of sums differs.

use std::path::Path;

use lapwing::devices::DeviceSpec;
use lapwing::draft::DraftChoice;
use lapwing::{Activations, Engine, EngineBuilder, Prompt, Request, Shutdown};

use crate::an_opencl_device_computes_otherwise::ByTurns;
use crate::cases::cases;
use crate::support::needs_driver;

const MODELS: [&str; 9] = [
    "qwen35",
    "lfm2",
    "nemotron_h",
    "granitehybrid",
    "mamba2",
    "kimi-linear",
    "mamba",
    "jamba",
    "bailingmoe3",
];

const STRATEGIES: [&str; 5] = ["layer-split", "by turns", "auto", "row-cut", "tensor-level"];

/// The device alone and beside a CPU, with states in place and copied.
const DEVICES: [&str; 4] =
    ["gpu=opencl", "cpu+gpu=opencl:memory=copied", "cpu+gpu=opencl", "gpu=opencl:memory=copied"];

fn on(name: &str, devices: &str) -> EngineBuilder {
    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny");
    // Programs are compiled once for all engines.
    let programs = Path::new(env!("CARGO_TARGET_TMPDIR")).join("opencl");
    let builder = Engine::builder().model(tiny.join(format!("{name}.gguf"))).threads(2);
    let builder = builder.activations(Activations::F32).packed_cache(&programs).chunk_rows(20);
    builder.devices(DeviceSpec::list(devices).expect("devices"))
}

fn prompt(len: u32, step: u32) -> Vec<u32> {
    (0..len).map(|at| (at * at + step * at + step) % 128).collect()
}

fn prompts() -> Vec<Vec<u32>> {
    [(1, 3), (33, 5), (64, 7)].map(|(len, step)| prompt(len, step)).to_vec()
}

fn request(ids: &[u32]) -> Request {
    Request::new(Prompt::Ids(ids.to_vec())).greedy().ignore_eos().max_tokens(16)
}

/// The tokens after prompts that are asked at the same time, and how many of each were cached.
async fn together(engine: &Engine, prompts: &[Vec<u32>]) -> (Vec<Vec<u32>>, Vec<usize>) {
    let mut streams = Vec::new();
    for ids in prompts {
        streams.push(engine.generate(request(ids)).await.expect("a stream"));
    }
    let (mut answers, mut cached) = (Vec::new(), Vec::new());
    for mut stream in streams {
        let mut answer = Vec::new();
        while let Some(token) = stream.next().await {
            answer.push(token.expect("a token").id);
        }
        cached.push(stream.summary().expect("an end").times.cached_tokens);
        answers.push(answer);
    }
    (answers, cached)
}

/// The same, one after the other.
async fn alone(engine: &Engine, prompts: &[Vec<u32>]) -> (Vec<Vec<u32>>, Vec<usize>) {
    let (mut answers, mut cached) = (Vec::new(), Vec::new());
    for ids in prompts {
        let (mut answer, mut known) = together(engine, std::slice::from_ref(ids)).await;
        answers.append(&mut answer);
        cached.append(&mut known);
    }
    (answers, cached)
}

#[tokio::test]
async fn states_on_an_opencl_device_change_no_token() {
    needs_driver!(has_opencl);
    for name in MODELS.into_iter().take(cases(3, MODELS.len())) {
        let cpu = on(name, "cpu").build().await.expect("an engine");
        let (wanted, _) = together(&cpu, &prompts()).await;
        for devices in DEVICES {
            let strategies = match devices.starts_with("cpu") {
                true => &STRATEGIES[..cases(2, STRATEGIES.len())],
                false => &["auto"],
            };
            for &strategy in strategies {
                let builder = on(name, devices);
                let builder = match strategy {
                    "by turns" => builder.own_strategy(ByTurns),
                    name => builder.strategy(name),
                };
                let engine = builder.build().await.expect("an engine");
                let (found, _) = together(&engine, &prompts()).await;
                assert_eq!(found, wanted, "{name} on {devices}, {strategy}");
            }
        }
    }
}

#[tokio::test]
async fn requests_go_on_on_an_opencl_device_where_earlier_ones_kept_their_states() {
    needs_driver!(has_opencl);
    for name in ["qwen35", "lfm2"] {
        let mut all = vec![prompt(75, 4), prompt(75, 4)];
        all.push([&all[0][..70], &[9, 8, 7]].concat());
        all.push([&all[2][..], &prompt(60, 6)].concat());
        let cpu = on(name, "cpu").prefix_cache(false).build().await.expect("an engine");
        let (wanted, _) = alone(&cpu, &all).await;
        for devices in &DEVICES[..2] {
            let folder = tempfile::tempdir().expect("a folder");
            let kept = || on(name, devices).keep_prefixes(folder.path());
            let engine = kept().build().await.expect("an engine");
            let found = alone(&engine, &all).await;
            assert_eq!(found, (wanted.clone(), vec![0, 64, 64, 64]), "{name} on {devices}");
            engine.shutdown(Shutdown::Drain).await.expect("an end");
            let again = kept().build().await.expect("an engine");
            let found = alone(&again, &all).await;
            assert_eq!(found, (wanted.clone(), vec![64, 64, 64, 128]), "{name} on {devices}: kept");
        }
    }
}

#[tokio::test]
async fn drafts_on_an_opencl_device_leave_the_states_of_their_target() {
    needs_driver!(has_opencl);
    for name in ["qwen35", "lfm2"] {
        let cpu = on(name, "cpu").build().await.expect("an engine");
        let (wanted, _) = alone(&cpu, &prompts()).await;
        let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny");
        let other = tiny.join("qwen3-keys.gguf").display().to_string();
        let mut rejected = 0;
        for draft in [DraftChoice::lookup(), DraftChoice::model(other)] {
            let engine = on(name, "gpu=opencl").draft(draft.clone()).build().await;
            let engine = engine.expect("an engine");
            let found = alone(&engine, &prompts()).await.0;
            assert_eq!(found, wanted, "{name} with {}", draft.name());
            // The first draft of a request is verified, whether it pays or not.
            let mut stream = engine.generate(request(&[7, 9, 7, 9, 7, 9])).await.expect("a stream");
            while stream.next().await.is_some() {}
            let drafts = stream.summary().expect("an end").drafts.clone().expect("drafts");
            rejected += drafts.drafted - drafts.accepted;
        }
        assert!(rejected > 0, "{name}: no draft is rejected");
    }
}
