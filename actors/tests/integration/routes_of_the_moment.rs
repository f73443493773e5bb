//! Which of several routes chunks take, and which graphs are prepared for that.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lapwing_kernels::device::DeviceKind;
use lapwing_plan::strategy::{ChunkGraph, ChunkShape, OrderSwap, PlanInput, Strategy};
use lapwing_plan::time::{Job, TimeModel};
use lapwing_plan::{DeviceId, Phase, PlanError, Route, Stage};

use crate::support::{Setup, World, foretell, generate, prompt};

/// Time of a row of an op, in µs.
#[derive(Clone, Copy)]
struct Rates {
    /// Of a stage with one op, and of a step.
    short: u64,
    /// Of a longer stage.
    long: u64,
    /// Of a graph.
    graph: u64,
}

impl TimeModel for Rates {
    fn overhead(&self, _job: &Job<'_>) -> Duration {
        Duration::from_micros(1)
    }

    fn node_time(&self, job: &Job<'_>, _node: usize) -> Duration {
        let rows = job.part.row_count(job.batch) as u64;
        let row = match job.part.graphs.is_empty() {
            false => self.graph,
            true if rows > 1 && job.end - job.first > 1 => self.long,
            true => self.short,
        };
        Duration::from_micros(row * rows)
    }
}

fn stages_on(world: &World, device: usize) -> usize {
    world.stages_run[device].load(Ordering::Relaxed)
}

/// Serves a prompt from now on until nothing is left to do.
fn serve(world: &mut World, seed: u32, rows: usize, tokens: usize) {
    let ids = prompt(seed, rows);
    let mut stream = world.submit(world.sim.now(), &ids, generate(&ids, tokens));
    while stream.end.is_none() {
        assert!(world.sim.step(), "the engine stands still");
        stream.drain();
    }
    assert_eq!(stream.tokens, foretell(&ids, tokens).0);
}

/// Prompts may take many short stages on the first device, or one long stage on the second. Steps take one stage on the first.
struct ManyOrOne;

impl ManyOrOne {
    fn many(input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let nodes = 0..input.graph.nodes().len();
        let stages = nodes.map(|node| Stage::whole(DeviceId(0), node..node + 1)).collect();
        Route::new(stages, "many stages".to_owned(), None, input.route_for(shape))
    }

    fn one(
        device: usize,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
    ) -> Result<Arc<Route>, PlanError> {
        let stages = vec![Stage::whole(DeviceId(device), 0..input.graph.nodes().len())];
        Route::new(stages, "one stage".to_owned(), None, input.route_for(shape))
    }
}

impl Strategy for ManyOrOne {
    fn name(&self) -> &str {
        "many-or-one"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        match shape.phase {
            Phase::Prefill => ManyOrOne::many(input, shape),
            Phase::Decode | Phase::Mixed => ManyOrOne::one(0, input, shape),
        }
    }

    fn routes(
        &self,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
    ) -> Result<Vec<Arc<Route>>, PlanError> {
        let first = self.route(input, shape)?;
        let other = (shape.phase == Phase::Prefill).then(|| ManyOrOne::one(1, input, shape));
        Ok([first].into_iter().chain(other.transpose()?).collect())
    }
}

#[test]
fn a_prompt_after_a_stream_has_ended_does_not_wait_for_its_steps() {
    let setup = Setup {
        devices: 2,
        chunk_rows: 64,
        strategy: Some(Arc::new(ManyOrOne)),
        time: Some(Arc::new(Rates { short: 10, long: 11, graph: 10 })),
        ..Setup::default()
    };
    let mut world = World::new(&setup);
    for seed in 0..3 {
        serve(&mut world, seed, 60, 40);
        assert_eq!(stages_on(&world, 1), 0, "prompt {seed}: the first device is idle and faster");
    }
    // Beside a stream, each of the many stages would wait for a step.
    let [ids, beside] = [(5, 4), (6, 60)].map(|(seed, rows)| prompt(seed, rows));
    let mut stream = world.submit(world.sim.now(), &ids, generate(&ids, 100));
    while stream.tokens.len() < 20 {
        assert!(world.sim.step(), "the engine stands still");
        stream.drain();
    }
    let _prompt = world.submit(world.sim.now(), &beside, generate(&beside, 1));
    world.sim.run();
    assert!(stages_on(&world, 1) > 0, "the second device is free");
    world.assert_empty();
}

/// Chunks take the CPU, or the NPU if this is faster.
struct CpuOrNpu;

const CPU: usize = 0;
const NPU: usize = 1;

impl Strategy for CpuOrNpu {
    fn name(&self) -> &str {
        "cpu-or-npu"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        ManyOrOne::one(CPU, input, shape)
    }

    fn routes(
        &self,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
    ) -> Result<Vec<Arc<Route>>, PlanError> {
        let graphs = ChunkGraph { chunk: 16, order_swap: OrderSwap::Off };
        Ok(vec![self.route(input, shape)?, graphs.route(input, shape)?])
    }
}

fn cpu_and_npu(budget: usize) -> Setup {
    Setup {
        devices: 2,
        kinds: vec![DeviceKind::Cpu, DeviceKind::Npu],
        graphs: (budget, None),
        strategy: Some(Arc::new(CpuOrNpu)),
        time: Some(Arc::new(Rates { short: 100, long: 100, graph: 1 })),
        ..Setup::default()
    }
}

#[test]
fn graphs_of_a_route_that_would_end_earlier_are_prepared_while_the_engine_is_idle() {
    let mut world = World::new(&cpu_and_npu(64));
    serve(&mut world, 1, 40, 3);
    assert_eq!(stages_on(&world, NPU), 0, "no request waits for these graphs");
    world.sim.run();
    let graphs = world.sim.scheduler().stats().graphs;
    assert!(graphs.ready > 0 && graphs.wanted == 0, "{graphs:?}");
    serve(&mut world, 2, 40, 3);
    assert!(stages_on(&world, NPU) > 0, "the NPU ends first");
    world.sim.run();
    world.assert_empty();
}

#[test]
fn graphs_of_such_a_route_that_do_not_fit_are_given_up() {
    let mut world = World::new(&cpu_and_npu(1));
    for seed in 0..3 {
        serve(&mut world, seed, 40, 3);
        world.sim.run();
        let graphs = world.sim.scheduler().stats().graphs;
        assert!(graphs.ready <= 1 && graphs.wanted == 0, "{graphs:?}");
    }
    assert_eq!(stages_on(&world, NPU), 0);
    world.assert_empty();
}
