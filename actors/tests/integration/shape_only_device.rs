//! Devices without values compared with live ones: both report the same steps, evictions and errors.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use lapwing_actors::simulate::shape_only_device::ShapeOnlyDevice;
use lapwing_kernels::cpu::{Cpu, Isa};
use lapwing_kernels::device::{
    Batch, BlockingDevice, DeviceError, DeviceInfo, GraphKey, ModelId, Observer, Prepare, SlotPool,
    StageRun, Step, Tensor, TensorSet,
};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::model::Model;
use lapwing_kernels::npu::array::{Array, graph_bytes};
use lapwing_kernels::npu::{NpuDevice, NpuDeviceParts};
use lapwing_kernels::op::Op;
use lapwing_kernels::part::{OperandOrder, Part};
use lapwing_kernels::weights::WeightFile;
use proptest::prelude::*;

#[derive(Default)]
struct Steps(Vec<Step>);

impl Observer for Steps {
    fn nodes_done(&mut self, _nodes: Range<usize>) {}

    fn step_done(&mut self, step: Step) {
        self.0.push(step);
    }
}

/// A piece of work for both devices.
struct Asked {
    product: usize,
    rows: usize,
    graphs: Vec<usize>,
    prepare: Prepare,
}

fn run(
    device: &mut dyn BlockingDevice,
    graph: &Graph,
    asked: &Asked,
) -> (Vec<Step>, Result<(), DeviceError>) {
    let nodes = asked.product..asked.product + 1;
    let mut batch = Batch::default();
    batch.push(&vec![0; asked.rows], 0, Vec::new(), 0..asked.rows);
    let mut inputs = TensorSet::default();
    for id in graph.live_in(nodes.clone()) {
        let width = graph.value(id).width;
        inputs.put(id, Tensor::new(width, vec![0.5; asked.rows * width]));
    }
    let part = Part { graphs: asked.graphs.clone(), order: OperandOrder::Swapped, ..Part::WHOLE };
    let mut steps = Steps::default();
    let result = device.run(StageRun {
        nodes: nodes.clone(),
        part: &part,
        prepare: asked.prepare,
        batch: &batch,
        inputs: &inputs,
        writes: &graph.writes(nodes),
        outputs: &mut TensorSet::default(),
        observer: &mut steps,
    });
    (steps.0, result)
}

/// A live device and one that knows shapes only, each with a budget in bytes.
fn pair(graph: &Arc<Graph>, file: &WeightFile, budget: u64) -> [Box<dyn BlockingDevice>; 2] {
    let parts = NpuDeviceParts {
        name: "npu".to_owned(),
        graph: Arc::clone(graph),
        slots: SlotPool::default(),
        budget,
    };
    let (cpu, array) = (Cpu::new(1, Isa::best()), Array::default());
    let live = NpuDevice::systolic(parts, cpu, array, file).expect("a device");
    let info: DeviceInfo = live.info().clone();
    [Box::new(live), Box::new(ShapeOnlyDevice::new(&info, graph))]
}

/// A tiny model, its ops, and the first matmuls of its layers.
fn tiny() -> (WeightFile, Arc<Graph>, Vec<usize>) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/reference/tiny/llama.gguf");
    let file = WeightFile::open(Path::new(path)).expect("a model");
    let graph = Arc::new(Model::from_weights(&file).expect("a graph").graph);
    let is_product = |at: &usize| {
        let node = &graph.nodes()[*at];
        matches!(node.op, Op::MatMul { .. }) && node.layer.is_some()
    };
    let products = (0..graph.nodes().len()).filter(is_product).take(6).collect();
    (file, graph, products)
}

fn key(product: usize, rows: usize) -> GraphKey {
    GraphKey {
        model: ModelId::default(),
        nodes: product..product + 1,
        features: Part::WHOLE.features,
        rows,
        order: OperandOrder::Swapped,
    }
}

#[test]
fn a_device_without_values_reports_what_a_live_one_reports() {
    let (file, graph, products) = tiny();
    let one = graph_bytes(&graph, &key(products[0], 64));
    let mut evicted = 0;
    for budget in [u64::MAX, 5 * one, 2 * one, one / 2] {
        let [mut live, mut shapes] = pair(&graph, &file, budget);
        let mut lanes = [&live, &shapes].map(|device| device.preparer().expect("a lane"));
        // Multiplicative hashing: repeatable pseudo-random numbers.
        let mut state = 7u64;
        let mut any = |of: usize| {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            (state >> 33) as usize % of
        };
        for _ in 0..120 {
            let product = products[any(products.len())];
            if any(3) == 0 {
                let keys = [key(product, [32, 64][any(2)]), key(products[any(6)], 64)];
                let keep = [key(products[any(6)], 64)];
                let mut steps = [Steps::default(), Steps::default()];
                let [a, b] = &mut steps;
                let a = lanes[0].prepare(&keys, &keep, a);
                let b = lanes[1].prepare(&keys, &keep, b);
                evicted += a.as_ref().map_or(0, |prepared| prepared.evicted.len());
                assert_eq!(a, b, "{keys:?} within {budget}");
                assert_eq!(steps[0].0, steps[1].0, "{keys:?} within {budget}");
                continue;
            }
            let graphs =
                [vec![32], vec![64], vec![32, 32], vec![64, 32], Vec::new()][any(5)].clone();
            let prepare = [Prepare::OnTheSpot, Prepare::Ahead][any(2)];
            let asked = Asked { product, rows: 1 + any(100), graphs, prepare };
            let (a, b) = (run(&mut *live, &graph, &asked), run(&mut *shapes, &graph, &asked));
            let what = format!("{} rows of {:?} within {budget}", asked.rows, asked.graphs);
            assert_eq!(a, b, "{what}, {:?}", asked.prepare);
        }
    }
    assert!(evicted > 0, "nothing ever had to go");
}

/// A request for graphs: of a preparer that keeps others, or of the device for rows.
#[derive(Clone, Debug)]
enum Request {
    Preparer { keys: Vec<(usize, usize)>, keep: Vec<(usize, usize)> },
    Device { product: usize, rows: usize, graphs: Vec<usize>, prepare: Prepare },
}

fn request() -> impl Strategy<Value = Request> {
    let size = || prop::sample::select(vec![32usize, 64, 96]);
    let keys = move |most| prop::collection::vec((0usize..4, size()), 0..most);
    let preparer =
        (keys(5), keys(3)).prop_map(|(keys, keep)| Request::Preparer { keys, keep }).boxed();
    let prepare = prop::sample::select(vec![Prepare::OnTheSpot, Prepare::Ahead]);
    let device = (0usize..4, 1usize..160, prop::collection::vec(size(), 0..5), prepare);
    let device = device.prop_map(|(product, rows, graphs, prepare)| Request::Device {
        product,
        rows,
        graphs,
        prepare,
    });
    prop_oneof![preparer, device.boxed()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn graphs_with_and_without_values_are_evicted_alike(
        requests in prop::collection::vec(request(), 1..30),
        budget in 1u64..14,
    ) {
        let (file, graph, products) = tiny();
        let budget = budget * graph_bytes(&graph, &key(products[0], 32));
        let [mut live, mut shapes] = pair(&graph, &file, budget);
        let [mut live_lane, mut shapes_lane] =
            [&live, &shapes].map(|device| device.preparer().expect("a preparer"));
        for request in requests {
            match request {
                Request::Preparer { keys, keep } => {
                    let graphs = |of: Vec<(usize, usize)>| -> Vec<GraphKey> {
                        of.into_iter().map(|(at, rows)| key(products[at], rows)).collect()
                    };
                    let (keys, keep) = (graphs(keys), graphs(keep));
                    let (mut a, mut b) = (Steps::default(), Steps::default());
                    prop_assert_eq!(
                        live_lane.prepare(&keys, &keep, &mut a),
                        shapes_lane.prepare(&keys, &keep, &mut b)
                    );
                    prop_assert_eq!(a.0, b.0);
                }
                Request::Device { product, rows, graphs, prepare } => {
                    let asked = Asked { product: products[product], rows, graphs, prepare };
                    let (a, b) = (run(&mut *live, &graph, &asked), run(&mut *shapes, &graph, &asked));
                    prop_assert_eq!(a, b);
                }
            }
        }
    }
}
