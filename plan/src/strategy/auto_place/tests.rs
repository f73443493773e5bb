//! What is kept, against all choices of what to keep.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{CacheBytes, DeviceInfo, DeviceKind, Room};
use lapwing_kernels::formats::DType;
use lapwing_kernels::graph::{Graph, NewNode, WeightSpec};
use lapwing_kernels::op::Op;

use super::kept::Kept;
use super::search::Search;
use crate::chunk::ChunkShape;
use crate::cost::{CostModel, Modelled};
use crate::phase::Phase;
use crate::strategy::PlanInput;
use crate::time::{Job, TimeModel};

/// A time for each node, in a prompt and in a decode step, and one for each stage.
struct Times {
    stage: Duration,
    nodes: [Vec<Duration>; 2],
}

impl TimeModel for Times {
    fn overhead(&self, _job: &Job<'_>) -> Duration {
        self.stage
    }

    fn node_time(&self, job: &Job<'_>, node: usize) -> Duration {
        self.nodes[usize::from(job.batch.rows() == 1)][node]
    }
}

/// A number below `end`, another one at each call.
fn roll(state: &mut u64, end: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % end
}

/// A chain of matmuls of 32 × 32, each of which is a block, in these formats.
fn chain(formats: &[DType]) -> Graph {
    let mut graph = Graph::default();
    let mut weight =
        |dtype| graph.add_weight(WeightSpec { name: "w".to_owned(), rows: 32, cols: 32, dtype });
    let table = weight(DType::F32);
    let matrices: Vec<_> = formats.iter().map(|dtype| weight(*dtype)).collect();
    let mut push =
        |op, inputs: &[_]| graph.push(NewNode { op, inputs, width: 32, layer: None, role: "test" });
    let mut value = push(Op::Embed { table, scale: 1.0 }, &[]);
    for weight in matrices {
        value = push(Op::MatMul { weight, bias: None }, &[value]);
    }
    graph
}

/// Rows of the prompt, so that there is one decode step for it.
const ROWS: usize = 8;

struct Case {
    graph: Graph,
    devices: Vec<DeviceInfo>,
    cost: Modelled,
}

impl Case {
    /// A CPU, and a GPU with room for `room` bytes, with times below these in µs.
    fn new(dice: &mut u64, formats: &[DType], room: u64, [own, sync]: [u64; 2]) -> Case {
        let graph = chain(formats);
        let mut times = |end: u64| -> Vec<Duration> {
            graph.nodes().iter().map(|_| Duration::from_micros(1 + roll(dice, end))).collect()
        };
        let models: Vec<Arc<dyn TimeModel>> = vec![
            Arc::new(Times { stage: Duration::ZERO, nodes: [times(own), times(own)] }),
            Arc::new(Times { stage: Duration::ZERO, nodes: [times(own / 2), times(own / 2)] }),
        ];
        let sync = Duration::from_micros(roll(dice, sync));
        let room = Room { bytes: room, cache: CacheBytes::default() };
        let gpu = DeviceInfo::new("gpu", DeviceKind::Gpu).with_room(room);
        let devices = vec![DeviceInfo::new("cpu", DeviceKind::Cpu), gpu];
        Case { graph, devices, cost: Modelled { devices: models, sync, copy_rate: 1e9 } }
    }

    fn input(&self) -> PlanInput<'_> {
        let Case { graph, devices, cost } = self;
        let cost = cost as &dyn CostModel;
        PlanInput { model: Default::default(), graph, devices, cost, chunk_rows: ROWS }
    }
}

fn shapes() -> [ChunkShape; 2] {
    let prompt =
        ChunkShape { phase: Phase::Prefill, rows: ROWS, selected: 1, context: 0, prompt: ROWS };
    [prompt, ChunkShape { phase: Phase::Decode, rows: 1, context: ROWS, prompt: 0, ..prompt }]
}

/// The least time of both chains over all sets of blocks that fit.
fn least(search: &Search<'_>, case: &Case) -> f64 {
    let gpu = &case.devices[1];
    let room = gpu.room.as_ref().expect("a room");
    let blocks = search.is_kept.len();
    let fits = |set: &u32| {
        let own = (0..blocks).filter(|block| set >> block & 1 == 1);
        gpu.need(&case.graph, own.flat_map(|block| search.chain.nodes(block))).bytes() <= room.bytes
    };
    let time = |set: u32| {
        let allowed = |block: usize, device: usize| device == 0 || set >> block & 1 == 1;
        let time = |table: &super::chain::Table| table.solve(allowed).expect("a chain").0;
        search.pair.tables.iter().map(|table| time(table).as_nanos() as f64).sum::<f64>()
    };
    (0..1_u32 << blocks).filter(fits).map(time).fold(f64::INFINITY, f64::min)
}

/// The time of what the search keeps, and its bound.
fn found(search: &mut Search<'_>) -> (f64, f64) {
    search.run();
    search.is_banned.iter_mut().flatten().for_each(|banned| *banned = true);
    let placed = search.solve(0.0).expect("a placement");
    (placed.time, search.bound)
}

#[test]
fn what_is_kept_fits_and_is_on_average_within_a_few_percent_of_the_optimum_which_the_bound_is_below()
 {
    let mut dice = 7;
    let formats = [DType::F32, DType::F16, DType::Q8_0, DType::Q4_0];
    let (mut exact, mut ratios, mut cases) = (0, 0.0, 0);
    for _ in 0..300 {
        let count = 3 + roll(&mut dice, 6);
        let formats: Vec<DType> =
            (0..count).map(|_| formats[roll(&mut dice, 4) as usize]).collect();
        let room = 600 + roll(&mut dice, 14_000);
        let case = Case::new(&mut dice, &formats, room, [200, 40]);
        let (input, [prompt, step]) = (case.input(), shapes());
        let mut search = Search::new(&input, [&prompt, &step]);
        let optimum = least(&search, &case);
        let (time, bound) = found(&mut search);
        assert!(search.fits(&[]), "it does not fit");
        assert!(time >= optimum - 1.0, "{time} is less than the least, {optimum}");
        if Kept::of(&input).is_none() {
            continue;
        }
        assert!(bound <= optimum + 1.0, "the bound {bound} is above the optimum {optimum}");
        cases += 1;
        exact += usize::from(time <= optimum + 1.0);
        ratios += time / optimum;
    }
    assert!(cases > 200 && 10 * exact >= 6 * cases, "{exact} of {cases} are exact");
    // A block of these is up to a third of the room, so that the last one to fit matters.
    let mean = ratios / cases as f64;
    assert!(mean < 1.02, "{mean} times the optimum on average, {exact} of {cases} are exact");
}

#[test]
fn of_equal_blocks_as_many_are_kept_as_fit() {
    for room in 0..9 {
        let mut dice = 3;
        let mut case = Case::new(&mut dice, &[DType::F32; 8], 4096 * room + 100, [100, 1]);
        let times = |micros| -> Arc<dyn TimeModel> {
            let nodes = vec![Duration::from_micros(micros); case.graph.nodes().len()];
            Arc::new(Times { stage: Duration::ZERO, nodes: [nodes.clone(), nodes] })
        };
        case.cost =
            Modelled { devices: vec![times(100), times(10)], sync: Duration::ZERO, copy_rate: 1e9 };
        let (input, [prompt, step]) = (case.input(), shapes());
        let mut search = Search::new(&input, [&prompt, &step]);
        let optimum = least(&search, &case);
        let (time, bound) = found(&mut search);
        let kept = search.is_kept.iter().filter(|kept| kept[1]).count();
        assert_eq!((kept as u64, time), (room, optimum));
        assert!(bound <= optimum + 1.0 && bound > 0.8 * optimum, "{bound} {optimum}");
    }
}
