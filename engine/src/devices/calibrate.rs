//! Measures the speed of a native device within milliseconds, precisely enough to choose between
//! strategies. A profile measures every op and shape.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{
    Batch, Device, MemoryDomain, Payload, Prepare, Runs, Task, Tensor, TensorSet, Work,
};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::part::Part;
#[cfg(any(feature = "openvino", feature = "qnn"))]
use lapwing_kernels::{
    device::{GraphKey, ModelId},
    part::{OperandOrder, Share},
};
use lapwing_plan::blocks::{BlockKind, blocks};
use lapwing_traces::Clock;

/// Rows with which the compute rate is measured.
const ROWS: usize = 64;
/// Number of runs; the fastest counts.
const RUNS: usize = 3;

/// Compute rate in GFLOP/s with many rows, and bandwidth in GB/s with one row. `None` if the device
/// cannot run the model's matmuls.
pub(super) fn rates(
    device: &mut dyn Device,
    graph: &Graph,
    clock: &dyn Clock,
) -> Option<(f64, f64)> {
    let nodes = largest_product(graph)?;
    let cost = |rows: usize| {
        let batch = batch(rows);
        let costs = nodes.clone().map(|node| graph.cost(node, &batch));
        costs.fold((0, 0), |sum, cost| (sum.0 + cost.flops, sum.1 + cost.bytes))
    };
    let many = time(device, graph, &nodes, ROWS, clock)?;
    let one = time(device, graph, &nodes, 1, clock)?;
    let per_nano = |count: u64, time: Duration| count as f64 / time.as_nanos().max(1) as f64;
    Some((per_nano(cost(ROWS).0, many), per_nano(cost(1).1, one)))
}

/// Prepares the graphs with which [`rates`] measures, and times it, so that the device can predict how long others take.
#[cfg(any(feature = "openvino", feature = "qnn"))]
pub(super) fn graphs(device: &dyn Device, graph: &Graph, clock: &dyn Clock) {
    let (Some(mut preparer), Some(nodes)) = (device.preparer(), largest_product(graph)) else {
        return;
    };
    for rows in [ROWS, 1] {
        let (nodes, features, order) = (nodes.clone(), Share::WHOLE, OperandOrder::default());
        let key = GraphKey { model: ModelId::default(), nodes, features, rows, order };
        let begin = clock.now();
        // A graph that cannot be prepared has no rate either.
        if let Ok(prepared) = preparer.prepare(&[key], &[], &mut ()) {
            preparer.took(&prepared, clock.now().since(begin));
        }
    }
}

/// The largest group of matmuls of one layer, by weights.
fn largest_product(graph: &Graph) -> Option<Range<usize>> {
    let in_a_layer = |nodes: &Range<usize>| graph.nodes()[nodes.clone()][0].layer.is_some();
    let products = blocks(graph).into_iter().filter(|block| block.kind == BlockKind::Matmul);
    let batch = batch(1);
    let bytes = |nodes: &Range<usize>| -> u64 {
        nodes.clone().map(|node| graph.cost(node, &batch).bytes).sum()
    };
    products.map(|block| block.nodes).filter(in_a_layer).max_by_key(bytes)
}

fn batch(rows: usize) -> Batch {
    let mut batch = Batch::default();
    batch.push(&vec![0; rows], 0, Vec::new(), 0..rows);
    batch
}

/// The fastest of several runs, by the device's clock if it has one. Values stay in the device's memory.
fn time(
    device: &mut dyn Device,
    graph: &Graph,
    nodes: &Range<usize>,
    rows: usize,
    clock: &dyn Clock,
) -> Option<Duration> {
    let batch = batch(rows);
    let mut values = TensorSet::default();
    for id in graph.live_in(nodes.clone()) {
        let width = graph.value(id).width;
        // Values of both signs, like real activations.
        let rows: Vec<f32> = (0..rows * width).map(|at| (at % 7) as f32 - 3.0).collect();
        values.put(id, Tensor::new(width, rows));
    }
    let to = device.info().memory;
    let mut runs = Runs::start(device);
    if to != MemoryDomain::Host {
        let task = Task::Transfer { values: graph.live_in(nodes.clone()).into(), to };
        let payload = Arc::new(Payload { batch: batch.clone(), values });
        values = runs.run(device, Work { task, part: Part::WHOLE, payload }, &mut ()).ok()?;
    }
    let writes: Arc<[_]> = graph.writes(nodes.clone()).into();
    let payload = Arc::new(Payload { batch, values });
    let mut best = None;
    // Graphs are prepared by the first run, which is never the fastest.
    let (prepare, part) = match device.info().is_static() {
        true => (Prepare::OnTheSpot, Part { graphs: vec![rows], ..Part::WHOLE }),
        false => (Prepare::Ahead, Part::WHOLE),
    };
    for _ in 0..RUNS {
        let (nodes, writes) = (nodes.clone(), Arc::clone(&writes));
        let task = Task::Nodes { nodes, prepare, writes, to };
        let work = Work { task, part: part.clone(), payload: Arc::clone(&payload) };
        let start = clock.now();
        let completed = runs.complete(device, work, &mut ());
        let waited = Duration::from_nanos(clock.now().0.saturating_sub(start.0));
        let on_device = completed.stamps.map(|stamps| stamps.end.saturating_sub(stamps.begin));
        completed.result.ok()?;
        let time = on_device.filter(|time| !time.is_zero()).unwrap_or(waited);
        best = Some(best.map_or(time, |best: Duration| best.min(time)));
    }
    best
}
