//! No strategy changes a token, on any set of devices, at any length.
//!
//! All combinations run on a tiny model with a large context, each prompt in one chunk if the strategy
//! allows it. A real model runs at one length for each kind of cut. The devices' rates are so high that
//! they never throttle.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};

use lapwing::devices::DeviceSpec;
use lapwing::plan::{StrategyOptions, strategies};
use lapwing::{
    Engine, EngineBuilder, ErrorKind, PartPlacement, Placement, Prompt, Request, Shutdown,
    StagePlacement,
};

use crate::cases::cases;
use crate::support::{SMOLLM2, collect_ids, model, needs};

const LENGTHS: [usize; 8] = [1, 31, 64, 135, 300, 525, 600, 1000];
const TOKENS: usize = 32;
pub(crate) const CONTEXT: usize = 1000 + TOKENS;

/// Strategies that cut a prompt only at the engine's chunk size.
const ONE_CHUNK: [&str; 6] =
    ["npu-padding", "pipe", "row-cut", "sequence-cut", "multi-sequence-cut", "hybrid-cut"];

pub(crate) const GPU: &str = "gpu=throttled:gflops=1e9,gbps=1e9,submit=0,idle-submit=0,sync=0";
pub(crate) const NPU: &str = "npu=systolic:gflops=1e9,gbps=1e9,submit=0,idle-submit=0,sync=0,prepare=0,\
    prepare-gweight=0,budget=4GiB";

/// The tiny llama model with room for long prompts.
pub(crate) fn long_model(folder: &Path) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny/llama.gguf");
    let mut bytes = std::fs::read(path).expect("the tiny model");
    let key = b"llama.context_length";
    let at = bytes.windows(key.len()).position(|w| w == key).expect("the key") + key.len();
    assert_eq!(bytes[at..at + 8], [4, 0, 0, 0, 0, 1, 0, 0], "256 as an unsigned number");
    bytes[at + 4..at + 8].copy_from_slice(&2048_u32.to_le_bytes());
    let path = folder.join("long.gguf");
    std::fs::write(&path, bytes).expect("write");
    path
}

fn with(model: &Path, devices: &str) -> EngineBuilder {
    let specs = DeviceSpec::list(devices).expect("devices");
    let builder = Engine::builder().model(model).context(CONTEXT).wait_for_graphs(true);
    specs.into_iter().fold(builder, EngineBuilder::device)
}

pub(crate) fn prompt(length: usize) -> Vec<u32> {
    (0..length as u32).map(|at| 3 + at * 7919 % 250).collect()
}

pub(crate) async fn greedy(engine: &Engine, length: usize) -> Vec<u32> {
    let request = Request::new(Prompt::Ids(prompt(length)));
    let request = request.greedy().ignore_eos().max_tokens(TOKENS);
    collect_ids(engine.generate(request).await.expect("a stream")).await
}

/// The CPU alone.
async fn on_cpu(model: &Path) -> Engine {
    with(model, "cpu").strategy("cpu-only").build().await.expect("an engine")
}

/// Results of the CPU alone.
async fn wanted(model: &Path, lengths: &[usize]) -> BTreeMap<usize, (Vec<u32>, Vec<f32>)> {
    let engine = on_cpu(model).await;
    let mut wanted = BTreeMap::new();
    for length in lengths {
        let ids = greedy(&engine, *length).await;
        assert_eq!(ids.len(), TOKENS);
        let scores = engine.score(prompt(*length), 1).await.expect("scores");
        wanted.insert(*length, (ids, scores));
    }
    wanted
}

/// Checks that there is a score for each token but the first, without padding, with equal values.
async fn assert_rows(engine: &Engine, length: usize, wanted: &[f32], what: &str) {
    let scores = engine.score(prompt(length), 1).await.expect("scores");
    assert_eq!(scores.len(), length - 1, "{what}");
    let close = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-4 * b.abs().max(1.0);
    assert!(scores.iter().zip(wanted).all(close), "{what}: other values");
}

#[tokio::test]
async fn every_strategy_gives_the_same_tokens_on_all_devices_at_all_lengths() {
    let folder = tempfile::tempdir().expect("folder");
    let model = long_model(folder.path());
    // Quickly, those that are aligned to no graph.
    let lengths = cases(&[1, 135, 525, 1000][..], &LENGTHS);
    let wanted = wanted(&model, lengths).await;
    let mut ran: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    let sets = ["cpu".to_owned(), format!("cpu+{NPU}"), format!("cpu+{GPU}+{NPU}")];
    for (set, devices) in sets.iter().enumerate() {
        for known in strategies() {
            let engine = match with(&model, devices).strategy(known.name()).build().await {
                Ok(engine) => engine,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
                    assert!(error.to_string().contains("add one with --device"), "{error}");
                    continue;
                }
            };
            // The rows of the NPU's largest graph: every length fits one chunk.
            let rows = engine.placement().rows;
            assert!(set == 0 || !ONE_CHUNK.contains(&known.name()) || rows == 1024, "{rows} rows");
            for (length, (ids, scores)) in &wanted {
                let what = format!("{} on set {set}, {length} tokens", known.name());
                assert_eq!(&greedy(&engine, *length).await, ids, "{what}");
                if set == 2 && *length > 1 {
                    assert_rows(&engine, *length, scores, &what).await;
                }
            }
            assert_eq!(engine.slots().in_use, 0, "{} keeps slots", known.name());
            engine.shutdown(Shutdown::Drain).await.expect("an end");
            ran.entry(set).or_default().push(known.name());
        }
    }
    let all: Vec<&str> = strategies().iter().map(|known| known.name()).collect();
    assert_eq!(ran[&2], all, "with all three devices, every strategy runs");
    let without_gpu: Vec<&str> = all.iter().copied().filter(|name| *name != "gpu-only").collect();
    assert_eq!(ran[&1], without_gpu);
    for name in ["cpu-only", "auto", "tensor-level", "auto-place"] {
        assert!(ran[&0].contains(&name), "{name} needs no other device than the CPU");
    }
}

/// Rows and graphs of each device in the first stage that is cut, or else in the first one with
/// graphs: `512 + 32 ‖ 56`.
fn cut_of(placement: &Placement) -> Option<String> {
    let divided = placement.stages.iter().find(|stage| stage.parts.len() > 1);
    let prepared = |stage: &&StagePlacement| !stage.parts[0].graphs.is_empty();
    let stage = divided.or_else(|| placement.stages.iter().find(prepared))?;
    let part = |part: &PartPlacement| match &part.graphs[..] {
        [] => part.rows.clone().map_or(placement.rows, |rows| rows.len()).to_string(),
        graphs => graphs.iter().map(usize::to_string).collect::<Vec<_>>().join(" + "),
    };
    Some(stage.parts.iter().map(part).collect::<Vec<_>>().join(" ‖ "))
}

#[tokio::test]
async fn the_default_chunk_leaves_the_cut_to_the_strategy() {
    let folder = tempfile::tempdir().expect("folder");
    let model = long_model(folder.path());
    for (strategy, length, wanted) in [
        ("multi-sequence-cut", 600, "512 + 32 ‖ 56"),
        ("sequence-cut", 600, "512 ‖ 88"),
        ("pipe", 600, "512 + 64 + 32"),
        ("npu-padding", 600, "1024"),
        ("npu-padding", 525, "1024"),
        ("hybrid-cut", 525, "1024 ‖ 525"),
    ] {
        let devices = format!("cpu+{GPU}+{NPU}");
        // Three quarters of this model's output channels would round to all of them.
        let ratio = Some("1:1".parse().expect("a ratio"));
        let options = StrategyOptions { ratio, ..StrategyOptions::default() };
        let builder = with(&model, &devices).strategy(strategy).strategy_options(options);
        let engine = builder.build().await.expect("an engine");
        let plan = engine.plan(length).expect("a plan");
        let [chunk] = &plan[..] else { panic!("{strategy}: {} chunks", plan.len()) };
        assert_eq!(chunk.rows, length);
        assert_eq!(cut_of(chunk).as_deref(), Some(wanted), "{strategy}, {length} tokens");
        engine.shutdown(Shutdown::Drain).await.expect("an end");
    }
    let devices = "cpu+npu=systolic:sizes=32-256";
    let engine = with(&model, devices).strategy("pipe").build().await.expect("an engine");
    let rows: Vec<usize> = engine.plan(525).expect("a plan").iter().map(|c| c.rows).collect();
    assert_eq!(rows, [256, 256, 13], "the largest graph is the chunk");
    engine.shutdown(Shutdown::Drain).await.expect("an end");
}

#[tokio::test]
#[ignore = "long: sh tests/all.sh runs it"]
async fn a_real_model_gives_the_same_tokens_at_unaligned_lengths() {
    needs!(SMOLLM2);
    let model = model(SMOLLM2);
    let cases = [
        ("row-cut", 64),
        ("sequence-cut", 300),
        ("multi-sequence-cut", 600),
        ("hybrid-cut", 135),
        ("chunk-graph", 525),
        ("tensor-level", 31),
        ("auto", 135),
    ];
    let on_cpu = on_cpu(&model).await;
    let mut wanted: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for (strategy, length) in cases {
        // Two strategies have the same length.
        if let Entry::Vacant(unknown) = wanted.entry(length) {
            unknown.insert(greedy(&on_cpu, length).await);
        }
        let ids = &wanted[&length];
        let devices = format!("cpu+{GPU}+{NPU}");
        let engine = with(&model, &devices).strategy(strategy).build().await.expect("an engine");
        assert_eq!(ids.len(), TOKENS);
        assert_eq!(&greedy(&engine, length).await, ids, "{strategy}, {length} tokens");
        engine.shutdown(Shutdown::Drain).await.expect("an end");
    }
}
