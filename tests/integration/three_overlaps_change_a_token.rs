//! Drafts, verification and chunks of prompts run at one instant, each on a device of its own, and change no token. Devices are
//! emulated by CPU threads, with rates so low that each device mostly waits for its model's time: the overlap hardly depends on the
//! machine, and is counted.

use std::path::Path;
use std::sync::Arc;

use lapwing::devices::DeviceSpec;
use lapwing::draft::{DraftChoice, Schedule};
use lapwing::traces::analysis::{Concurrent, WorkKind, WorkSet};
use lapwing::traces::{OsClock, Recorder, RecorderConfig, Scope, Timeline};
use lapwing::{Activations, Engine, Prompt, Requant, Request, Shutdown, TokenStream};

use crate::support::collect_ids;

/// Three devices: one drafts, one has the steps of streams, and one the matmuls of prompts.
const DEVICES: &str = "cpu=throttled:kind=cpu,gflops=0.2,gbps=0.025,submit=0,idle-submit=0,sync=0\
    +gpu=throttled:gflops=0.5,gbps=0.04,submit=0,idle-submit=0,sync=0\
    +npu=systolic:gflops=0.03,gbps=0.02,submit=0,idle-submit=0,sync=0,prepare=0,prepare-gweight=0";

const STREAMS: u32 = 2;
const PROMPTS: u32 = 3;

fn engine(devices: &str) -> lapwing::EngineBuilder {
    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny/llama.gguf");
    let builder = Engine::builder().model(tiny).context(256).activations(Activations::F32);
    builder.devices(DeviceSpec::list(devices).expect("devices")).wait_for_graphs(true)
}

fn request(number: u32, length: u32, tokens: usize) -> Request {
    let ids = (0..length).map(|at| 3 + (at + number) * 7919 % 250).collect();
    Request::new(Prompt::Ids(ids)).greedy().max_tokens(tokens).ignore_eos()
}

/// Streams of 150 tokens, and prompts that arrive once each stream has its first token. Returns the ids of all.
async fn answers(engine: &Engine) -> Vec<Vec<u32>> {
    let mut streams: Vec<TokenStream> = Vec::new();
    for number in 0..STREAMS {
        let stream = engine.generate(request(number, 8, 150)).await.expect("a stream");
        streams.push(stream);
    }
    let mut all = Vec::new();
    for stream in &mut streams {
        all.push(vec![stream.next().await.expect("a token").expect("no error").id]);
    }
    for number in 0..PROMPTS {
        let stream = engine.generate(request(100 + number, 240, 1)).await.expect("a stream");
        streams.push(stream);
        all.push(Vec::new());
    }
    for (ids, stream) in all.iter_mut().zip(streams) {
        ids.extend(collect_ids(stream).await);
    }
    all
}

#[tokio::test]
async fn three_kinds_of_work_at_one_instant_change_no_token() {
    let alone = engine("cpu").build().await.expect("an engine");
    let wanted = answers(&alone).await;
    let lengths: Vec<usize> = wanted.iter().map(Vec::len).collect();
    assert_eq!(lengths, [150, 150, 1, 1, 1]);

    let recorder = Recorder::new(Arc::new(OsClock::start()), RecorderConfig::default());
    recorder.set_scope(Scope::All);
    let draft = DraftChoice::own(Requant::Q4_0).on_device("cpu").schedule(Schedule::Asynchronous);
    let three = engine(DEVICES).strategy("layer-level").chunk_rows(32).draft(draft);
    let three = three.recorder(recorder.clone()).build().await.expect("an engine");
    assert_eq!(answers(&three).await, wanted);
    three.shutdown(Shutdown::Drain).await.expect("an end");

    let timeline = Timeline::new(&recorder.recording());
    assert_eq!(timeline.dropped, 0);
    let overlap = Concurrent::new(&timeline);
    let periods = |kinds: &[WorkKind]| overlap.periods(WorkSet::of(kinds.iter().copied()));
    let (draft, verify, prompt) = (WorkKind::Draft, WorkKind::Verify, WorkKind::Prompt);
    for pair in [[draft, verify], [draft, prompt], [verify, prompt]] {
        assert!(periods(&pair) >= 5, "{pair:?}: {overlap:?}");
    }
    assert!(periods(&[draft, verify, prompt]) >= 5, "{overlap:?}");
}
