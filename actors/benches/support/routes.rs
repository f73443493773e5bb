//! Eight routes on three devices, and what a choice among them costs.

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{DeviceInfo, DeviceKind, ModelId};
use lapwing_kernels::formats::DType;
use lapwing_kernels::graph::{Graph, NewNode, WeightSpec};
use lapwing_kernels::op::Op;
use lapwing_plan::cost::Modelled;
use lapwing_plan::moment::{Haste, LaneWork, Moment, Prices, StepLoad};
use lapwing_plan::planner::{Planner, PlannerParts};
use lapwing_plan::strategy::{ChunkShape, PlanInput, Strategy};
use lapwing_plan::time::{FixedRate, TimeModel};
use lapwing_plan::{DeviceId, Phase, PlanError, Route, Rule, Stage};
use lapwing_traces::{Clock, OsClock};

/// Routes of a shape.
pub(crate) const ROUTES: usize = 8;

/// The devices of every fourth op.
const DEVICES: [[usize; 4]; ROUTES] = [
    [0, 0, 0, 0],
    [1, 1, 1, 1],
    [2, 2, 2, 2],
    [0, 1, 0, 1],
    [0, 2, 0, 2],
    [1, 2, 1, 2],
    [0, 1, 2, 0],
    [0, 0, 0, 1],
];

/// Each op is a stage of its own.
pub(crate) struct Routes;

impl Routes {
    fn on(
        devices: [usize; 4],
        input: &PlanInput<'_>,
        shape: &ChunkShape,
    ) -> Result<Arc<Route>, PlanError> {
        let stage = |node: usize| Stage::whole(DeviceId(devices[node % 4]), node..node + 1);
        let stages = (0..input.graph.nodes().len()).map(stage).collect();
        let route = Route::new(stages, "a route".to_owned(), None, input.route_for(shape))?;
        let mut mixed = Route::clone(&route);
        mixed.rule = Rule::Mix;
        Ok(Arc::new(mixed))
    }
}

impl Strategy for Routes {
    fn name(&self) -> &str {
        "routes"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        Routes::on(DEVICES[0], input, shape)
    }

    fn routes(
        &self,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
    ) -> Result<Vec<Arc<Route>>, PlanError> {
        DEVICES.iter().map(|devices| Routes::on(*devices, input, shape)).collect()
    }
}

/// Median time of a choice among the routes, in ns.
pub(crate) fn choice() -> Result<f64, Box<dyn Error>> {
    let mut graph = Graph::default();
    let spec = WeightSpec { name: "w".to_owned(), rows: 64, cols: 64, dtype: DType::F32 };
    let weight = graph.add_weight(spec);
    let node = |op| NewNode { op, inputs: &[], width: 64, layer: None, role: "op" };
    let mut x = graph.push(node(Op::Embed { table: weight, scale: 1.0 }));
    for _ in 0..30 {
        x = graph.push(NewNode { inputs: &[x], ..node(Op::MatMul { weight, bias: None }) });
    }
    let rate =
        |micros| FixedRate { per_stage: Duration::from_micros(micros), per_row: Duration::ZERO };
    let devices = [3, 4, 5].map(|micros| Arc::new(rate(micros)) as Arc<dyn TimeModel>);
    let cost = Modelled { devices: devices.to_vec(), sync: Duration::ZERO, copy_rate: 1e9 };
    let mut planner = Planner::new(PlannerParts {
        model: ModelId::default(),
        graph: Arc::new(graph),
        devices: ["a", "b", "c"].map(|name| DeviceInfo::new(name, DeviceKind::Cpu)).to_vec(),
        cost: Arc::new(cost),
        strategy: Arc::new(Routes),
        chunk_rows: 256,
    });
    let (phase, prompt) = (Phase::Prefill, 256);
    let shape = ChunkShape { phase, rows: 256, selected: 1, context: 0, prompt };
    let candidates = planner.candidates(shape)?;
    let time = Duration::from_micros(90);
    let lane = |at: u32| LaneWork { time: time * at, longest: time / 30, parts: 30 };
    let step = StepLoad { share: 0.3, part: time / 30 };
    let crossing = Duration::from_micros(2);
    let (lanes, slow) = ([0, 2, 5].map(lane).to_vec(), vec![1.1, 1.0, 1.4]);
    let prices = Prices::of(3);
    let (steps, behind, has_other_models) = (vec![step; 3], 5.0, false);
    let moment = Moment { lanes, steps, crossing, slow, has_other_models, behind, prices };
    let clock = OsClock::start();
    let mut times: Vec<f64> = (0..1000)
        .map(|_| {
            let since = clock.now();
            for haste in [Haste::InTurn, Haste::Step, Haste::Due, Haste::InTurn] {
                black_box(moment.choose(black_box(&candidates), haste, |_| true));
            }
            clock.now().since(since).as_nanos() as f64 / 4.0
        })
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    println!("a choice among {} routes: {:.0} ns", candidates.len(), times[times.len() / 2]);
    Ok(times[times.len() / 2])
}
