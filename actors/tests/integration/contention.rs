//! Devices that share the bandwidth of a memory: how long stages take beside others is learned, and the choice of routes knows it.

use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::drive::simulated::{Environment, Noise};
use lapwing_actors::scheduler::StageErrors;
use lapwing_plan::strategy::{ChunkShape, PlanInput, Strategy};
use lapwing_plan::time::{Job, NodeLoad, TimeModel};
use lapwing_plan::{DeviceId, PlanError, Route, Stage};
use lapwing_traces::{Nanos, Recording, Scope};

use crate::support::{Setup, World, foretell, generate, prompt};

/// Each op is a stage of its own; all are on one of the devices, on any of them.
struct OneOfThem;

impl OneOfThem {
    fn on(
        device: usize,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
    ) -> Result<Arc<Route>, PlanError> {
        let nodes = 0..input.graph.nodes().len();
        let stages = nodes.map(|node| Stage::whole(DeviceId(device), node..node + 1)).collect();
        Route::new(stages, format!("on device {device}"), None, input.route_for(shape))
    }
}

impl Strategy for OneOfThem {
    fn name(&self) -> &str {
        "one-of-them"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        OneOfThem::on(0, input, shape)
    }

    fn routes(
        &self,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
    ) -> Result<Vec<Arc<Route>>, PlanError> {
        (0..input.devices.len()).map(|device| OneOfThem::on(device, input, shape)).collect()
    }
}

/// Time of a row of an op, in µs, and the bytes that it moves in this time, for each ns.
const ROW: u64 = 2;
const RATE: f64 = 6.0;

/// Every op waits for the memory.
struct Bound;

impl TimeModel for Bound {
    fn overhead(&self, _job: &Job<'_>) -> Duration {
        Duration::from_micros(1)
    }

    fn node_time(&self, job: &Job<'_>, _node: usize) -> Duration {
        Duration::from_micros(ROW * job.part.row_count(job.batch) as u64)
    }

    fn load(&self, job: &Job<'_>, node: usize) -> NodeLoad {
        let bytes = self.node_time(job, node).as_nanos() as f64 * RATE;
        NodeLoad { bytes, memory_bound: true, joins: false }
    }
}

/// Two prompts on two devices that share so much bandwidth, in GB/s: errors of predicted times, and a recording.
fn errors(memory: f64, spread: f64, rows: usize) -> (Option<StageErrors>, Recording) {
    let mut setup = Setup {
        chunk_rows: 64,
        pages: 4096,
        devices: 2,
        strategy: Some(Arc::new(OneOfThem)),
        time: Some(Arc::new(Bound)),
        ..Setup::default()
    };
    setup.config.context = 8192;
    let noise = Some(Noise { seed: 7, spread });
    let env = Environment { memory: Some(memory), noise, ..Environment::default() };
    let mut world = World::within(&setup, env);
    world.sim.recorder().set_scope(Scope::All);
    let mut streams: Vec<_> = (0..2)
        .map(|seed| {
            let ids = prompt(seed, rows);
            (world.submit(Nanos(0), &ids, generate(&ids, 1)), foretell(&ids, 1).0)
        })
        .collect();
    world.sim.run();
    world.assert_empty();
    for (stream, expected) in &mut streams {
        stream.drain();
        assert_eq!(stream.tokens, *expected);
    }
    (world.sim.scheduler().stage_errors(), world.sim.recorder().recording())
}

#[test]
fn what_stages_take_beside_others_is_learned() {
    // Both devices together would move 12 GB/s: each is slowed down by half beside the other.
    let (found, _) = errors(8.0, 0.03, 2000);
    let StageErrors { stages, predicted, learned } = found.expect("stages beside others");
    assert_eq!(stages, 200);
    assert!((0.25..0.40).contains(&predicted), "{predicted}");
    assert!(learned <= 0.10, "{learned}");
    // Nothing is to be learned where there is enough for both.
    let (found, _) = errors(12.0, 0.0, 2000);
    let StageErrors { predicted, learned, .. } = found.expect("stages beside others");
    assert!(predicted < 0.01 && learned < 0.01, "{predicted} {learned}");
}

#[test]
fn what_is_learned_is_the_same_each_time() {
    let run = || {
        let (found, recording) = errors(7.0, 0.05, 600);
        (found, recording.events)
    };
    assert_eq!(run(), run());
}
