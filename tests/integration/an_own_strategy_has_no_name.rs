//! A strategy that a program adds is found by its name wherever a built-in one is.

use std::path::Path;
use std::sync::Arc;

use lapwing::compare::Compare;
use lapwing::devices::DeviceSpec;
use lapwing::plan::strategy::{CpuOnly, LayerLevel};
use lapwing::plan::{
    ChunkShape, DeviceKind, PlanError, PlanInput, Route, Stage, Strategies, Strategy,
    StrategyOptions, device_of, strategies,
};
use lapwing::simulate::{Axis, Runs, Scenario, Sweep};
use lapwing::{Engine, EngineBuilder, ErrorKind};

/// All ops on the GPU.
struct AllOnGpu;

impl Strategy for AllOnGpu {
    fn name(&self) -> &str {
        "all-on-gpu"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let device = device_of(input.devices, DeviceKind::Gpu).expect("a GPU");
        let stages = vec![Stage::whole(device, 0..input.graph.nodes().len())];
        Route::new(stages, "all on one".to_owned(), None, input.route_for(shape))
    }
}

fn with_mine() -> Strategies {
    let mine = Strategies::builtin().with("mine", "all ops on the GPU", |_| AllOnGpu);
    mine.expect("a new name")
}

fn builder() -> EngineBuilder {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny/llama.gguf");
    let devices = DeviceSpec::list("cpu+gpu=throttled:gflops=1e9,gbps=1e9").expect("devices");
    Engine::builder().model(model).context(64).devices(devices)
}

#[tokio::test]
async fn an_engine_finds_it_by_name() {
    let builder = builder().strategies(with_mine());
    let engine = builder.clone().strategy("mine").build().await.expect("an engine");
    assert_eq!(engine.placement().strategy, "mine");
    assert_eq!(engine.placement().stages[0].parts[0].device, engine.devices()[1].name);
    let explained = engine.explain(20).expect("ratings");
    let rated: Vec<&str> = explained.rated.iter().map(|rated| rated.strategy.as_str()).collect();
    assert!(rated.contains(&"mine") && rated.contains(&"cpu-only"), "{rated:?}");
    let unknown = builder.strategy("yours").build().await.expect_err("no such strategy");
    assert_eq!(unknown.kind(), ErrorKind::Config);
    let text = unknown.to_string();
    assert!(text.contains("'yours'") && text.contains("pipe") && text.contains("mine"), "{text}");
}

#[tokio::test]
async fn options_reach_it_and_a_panic_while_it_is_made_is_an_error() {
    let made = Strategies::builtin().with("picky", "", |options: &StrategyOptions| {
        assert_eq!(options.chunk, Some(7), "only chunks of seven");
        CpuOnly
    });
    let builder = builder().strategies(made.expect("a name")).strategy("picky");
    let error = builder.clone().build().await.expect_err("other options");
    let reason = matches!(error.plan_error(), Some(PlanError::Panicked { reason, .. })
        if reason.contains("only chunks of seven"));
    assert!(reason, "{error}");
    let options = StrategyOptions { chunk: Some(7), ..StrategyOptions::default() };
    builder.strategy_options(options).build().await.expect("an engine");
}

#[tokio::test]
async fn a_comparison_finds_it_by_name() {
    let compare = Compare::new(builder().strategies(with_mine())).lengths([9]);
    let compare = compare.tokens(1).repetitions(1);
    let two = compare.clone().strategy("gpu-only").strategy("mine");
    let compared = two.run(|_| {}).await.expect("a comparison");
    let runs = &compared.lengths[0].runs;
    let names: Vec<&str> = runs.iter().map(|run| run.strategy.as_str()).collect();
    assert_eq!(names, ["gpu-only", "mine"]);
    assert!(compared.lengths[0].same_tokens);
    let mut all = Vec::new();
    let every = compare.all_strategies();
    every.run(|progress| all.push(progress.strategy.clone())).await.expect("a comparison");
    all.dedup();
    assert_eq!(all.len(), strategies().len() + 1, "{all:?}");
    assert_eq!(all.last().map(String::as_str), Some("mine"));
}

#[test]
fn scenarios_and_sweeps_find_it_by_name() {
    let base = Scenario::new("sd8gen3").expect("a preset");
    let mut own = base.clone().strategies(with_mine());
    let unknown = own.set("strategy", "yours").expect_err("no such strategy").to_string();
    assert!(unknown.contains("pipe") && unknown.contains("mine"), "{unknown}");
    assert!(base.clone().set("strategy", "mine").is_err(), "no global state");
    let axes = || {
        let axes = ["strategy=gpu-only,mine", "prompt=64,300"];
        axes.map(|axis| Axis::parse(axis).expect("an axis")).to_vec()
    };
    let mut runs = Runs::default();
    let sweep = Sweep::run(&own, axes(), &mut runs).expect("a sweep");
    let ms = |sweep: &Sweep| -> Vec<f64> {
        let points = sweep.points.iter();
        points.map(|point| point.outcome.as_ref().expect("a run").prefill_ms).collect()
    };
    let on_gpu = ms(&sweep);
    assert_eq!(on_gpu[..2], on_gpu[2..], "the same route under two names");
    assert!(sweep.csv().contains("\nmine,300,"));
    // The same name in another registry is another strategy, also in a cache of runs.
    let other = Strategies::builtin().with("mine", "", |options: &StrategyOptions| LayerLevel {
        order_swap: options.order_swap,
    });
    let other = base.strategies(other.expect("a new name"));
    let on_npu = ms(&Sweep::run(&other, axes(), &mut runs).expect("a sweep"));
    assert_eq!(on_npu[..2], on_gpu[..2]);
    assert!(on_npu[3] < 0.7 * on_gpu[3], "{on_npu:?}, {on_gpu:?}");
}
