//! Lesson: write a strategy of your own, which decides which device runs which op and how prompts are
//! cut.
//!
//! ```text
//!                     chunk of 300 tokens                    decode step
//!          ┌──────────────────────────────────────┐
//!  layer   │ norm, q k v, rope, attention ... gpu │           everything
//!          ├───────────────────┬──────────────────┤           on the cpu:
//!          │ ffn, tokens 0-255 │ ffn, 256-299     │           one stage,
//!          │ npu (graph of 256)│ gpu              │           one message
//!          ├───────────────────┴──────────────────┤
//!          │ join: the last part to end sends on  │
//!          └──────────────────────────────────────┘
//! ```
//!
//! A strategy is a pure function: it maps the model's ops, the devices and the shape of a chunk to a
//! *route*, the stages that the chunk passes through. The engine validates the route, prepares the
//! graphs that it names, and runs it. A strategy cannot change a token: here the answer is compared
//! with the CPU's.
//!
//! A registry gives the strategy a name, by which engines, scenarios, sweeps and comparisons find it
//! beside the built-in ones, and a parameter, as in `feed-forward-apart:largest=64`. The same strategy then runs in virtual time, with a model of 8 billion
//! weights on the modelled processors of a phone. With the argument `simulate`, only that part runs.

use std::sync::Arc;

use lapwing::devices::DeviceSpec;
use lapwing::models::{FetchEvent, ModelCache, ModelName, fetch};
use lapwing::plan::{
    ChunkShape, DeviceKind, NameError, Parameter, Part, Phase, PlanError, PlanInput, Route,
    RouteBuilder, Strategies, Strategy,
};
use lapwing::simulate::{Axis, Runs, Scenario, Sweep};
use lapwing::{Engine, Request};

/// Cuts the feed-forward by tokens: as many as fill a prepared graph run on the NPU, the rest on the
/// GPU, which also runs everything else of a prompt.
struct FeedForwardApart {
    /// Most tokens of a graph.
    largest: usize,
}

/// A parameter of the strategy: its name, meaning, default and range.
const LARGEST: Parameter =
    Parameter::new("largest", "most tokens of a graph", 1024.0, 32.0..=1024.0);

impl Strategy for FeedForwardApart {
    fn name(&self) -> &str {
        NAME
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let [cpu, gpu, npu] = [DeviceKind::Cpu, DeviceKind::Gpu, DeviceKind::Npu]
            .map(|kind| input.need(self.name(), kind));
        let (cpu, gpu, npu) = (cpu?, gpu?, npu?);
        let mut route = RouteBuilder::new(input, shape);
        // The largest graph that the chunk fills: 300 tokens become 256 and 44.
        let sizes = input.devices[npu.0].sizes.iter().filter(|size| **size <= self.largest);
        let full = sizes.rev().find(|size| **size < shape.rows).copied();
        let (Phase::Prefill, Some(full)) = (shape.phase, full) else {
            route.on(cpu, route.nodes());
            return route.finish("too few rows to divide".to_owned());
        };
        // Matmuls of the feed-forward: gate and up with their activation, then down.
        let is_divided = |node: usize| {
            let role = input.graph.nodes()[node].role;
            role.starts_with("ffn") && input.graph.can_cut_rows(node..node + 1)
        };
        for (nodes, is_divided) in route.runs(is_divided) {
            if is_divided {
                let on_npu = Part::of_rows(0..full).in_graphs([full]);
                let on_gpu = Part::of_rows(full..shape.rows);
                route.divided(nodes, vec![(npu, on_npu), (gpu, on_gpu)]);
            } else {
                route.on(gpu, nodes);
            }
        }
        route.finish(format!("feed-forward of {full} tokens on the NPU, of the rest on the GPU"))
    }
}

/// Name of the strategy in engines, scenarios and comparisons.
const NAME: &str = "feed-forward-apart";

/// The built-in strategies, and beside them the one above.
fn strategies() -> Result<Strategies, NameError> {
    let about = "the feed-forward divided by tokens between NPU and GPU, all else on the GPU";
    Strategies::builtin().with_parameters(NAME, about, &[LARGEST], |_options, parameters| {
        FeedForwardApart { largest: parameters.count(LARGEST.name) }
    })
}

/// Runs the strategy live and in virtual time.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() != Some("simulate") {
        live().await?;
    }
    simulated()
}

/// On this machine, with true values.
async fn live() -> Result<(), Box<dyn std::error::Error>> {
    let name = ModelName::default_model();
    let model = fetch(&ModelCache::open(None)?, &name, &mut |_: FetchEvent| {}).await?;

    // CPU threads emulate a GPU and an NPU: they compute true values, and are throttled to the
    // stated rates.
    let builder = Engine::builder().model(&model).context(512);
    let builder = builder.devices(DeviceSpec::list("cpu+gpu+npu")?).strategies(strategies()?);
    let engine = builder.strategy(NAME).build().await?;
    for chunk in engine.plan(300)? {
        println!("{chunk}");
        assert!(chunk.stages.iter().any(|stage| stage.parts.len() == 2), "nothing is cut");
    }

    let question = "Gravity keeps the planets on their ways. ".repeat(8) + "What is gravity?";
    let request = || Request::ask(&question).greedy().max_tokens(24);
    let answer = engine.generate(request()).await?.into_text().await?;
    println!("{answer}");

    let cpu = Engine::builder().model(&model).context(512).build().await?;
    let expected = cpu.generate(request()).await?.into_text().await?;
    assert_eq!(answer, expected, "a strategy never changes a token");
    Ok(())
}

/// On a phone, in virtual time: a sweep over two built-in strategies, this one with two values of its
/// parameter, and `auto`, which chooses among all of them.
fn simulated() -> Result<(), Box<dyn std::error::Error>> {
    let scenario = Scenario::new("sd8gen3")?.strategies(strategies()?);
    println!("\n{}, time to first token in virtual time", scenario.model);
    let strategies = format!("strategy=gpu-only,tensor-level,{NAME},{NAME}:largest=64,auto");
    let axes = vec![Axis::parse(&strategies)?, Axis::parse("prompt=64,300")?];
    let sweep = Sweep::run(&scenario, axes, &mut Runs::default())?;
    for point in &sweep.points {
        let run = point.outcome.as_ref().map_err(String::clone)?;
        let watts = run.prefill_w.map_or_else(String::new, |watts| format!(", {watts:.2} W"));
        let (ms, overlap) = (run.prefill_ms, run.overlap * 100.0);
        let [strategy, prompt] = &point.values[..] else { return Err("two axes".into()) };
        println!("{strategy:29} {prompt:>4} tokens {ms:7.0} ms, {overlap:3.0} % overlap{watts}");
    }
    Ok(())
}
