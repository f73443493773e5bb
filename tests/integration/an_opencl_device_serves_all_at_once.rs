//! Streams, drafts for them and long prompts at once on the CPU, an OpenCL device and an NPU of OpenVINO: the ids of the CPU alone.
//!
//! All devices compute with activations in f32, so that only the order of sums differs.

use std::path::Path;

use lapwing::devices::DeviceSpec;
use lapwing::draft::{DraftChoice, Schedule};
use lapwing::{
    Activations, Engine, EngineBuilder, Prompt, Requant, Request, Shutdown, TokenStream,
};

use crate::a_strategy_changes_a_token::{CONTEXT, long_model};
use crate::support::needs_driver;

const DEVICES: &str = "cpu+gpu=opencl:0+npu=openvino:device=CPU";

fn with(model: &Path, devices: &str) -> EngineBuilder {
    let specs = DeviceSpec::list(devices).expect("devices");
    let builder = Engine::builder().model(model).context(CONTEXT).activations(Activations::F32);
    let programs = Path::new(env!("CARGO_TARGET_TMPDIR")).join("opencl");
    builder.packed_cache(programs).devices(specs).wait_for_graphs(true)
}

fn request(number: u32, length: u32, tokens: usize) -> Request {
    let ids = (0..length).map(|at| 3 + (at % 40 + number) * 7919 % 250).collect();
    Request::new(Prompt::Ids(ids)).greedy().max_tokens(tokens).ignore_eos().prefix_cache(false)
}

async fn open(engine: &Engine, request: Request) -> (TokenStream, Vec<u32>) {
    (engine.generate(request).await.expect("a stream"), Vec::new())
}

async fn next(stream: &mut TokenStream) -> Option<u32> {
    stream.next().await.map(|token| token.expect("a token").id)
}

/// Ids of two streams, and of two prompts that come once each stream has its first token, and how many drafted tokens were verified.
async fn served(builder: EngineBuilder, what: &str) -> (Vec<Vec<u32>>, usize) {
    let engine = builder.build().await.unwrap_or_else(|error| panic!("{what}: {error}"));
    let mut answers = Vec::new();
    for number in 0..2 {
        answers.push(open(&engine, request(number, 8, 96)).await);
    }
    for (stream, ids) in &mut answers {
        ids.extend(next(stream).await);
    }
    for number in 0..2 {
        answers.push(open(&engine, request(100 + number, 600, 4)).await);
    }
    let (mut all, mut verified) = (Vec::new(), 0);
    for (mut stream, mut ids) in answers {
        while let Some(id) = next(&mut stream).await {
            ids.push(id);
        }
        let drafts = stream.summary().and_then(|summary| summary.drafts.clone());
        let drafts = drafts.unwrap_or_default();
        assert_eq!(drafts.stopped, None, "{what}");
        verified += drafts.drafted;
        all.push(ids);
    }
    engine.shutdown(Shutdown::Drain).await.expect("an end");
    assert_eq!(engine.slots().in_use, 0, "{what} keeps slots");
    (all, verified)
}

#[tokio::test]
async fn streams_with_drafts_beside_prompts_have_the_tokens_of_the_cpu() {
    needs_driver!(has_openvino);
    needs_driver!(has_opencl);
    let folder = tempfile::tempdir().expect("folder");
    let model = long_model(folder.path());
    let (wanted, _) = served(with(&model, "cpu"), "the CPU").await;
    let lengths: Vec<usize> = wanted.iter().map(Vec::len).collect();
    assert_eq!(lengths, [96, 96, 4, 4]);
    for schedule in [Schedule::Synchronous, Schedule::Asynchronous] {
        let draft = DraftChoice::own(Requant::Q4_0).on_device("cpu").schedule(schedule);
        for strategy in ["auto", "tensor-level", "layer-level"] {
            let what = format!("{strategy}, {schedule:?}");
            let builder = with(&model, DEVICES).strategy(strategy).draft(draft.clone());
            let (found, verified) = served(builder, &what).await;
            assert_eq!(found, wanted, "{what}");
            assert!(verified > 0, "{what}: nothing was drafted");
        }
    }
}
