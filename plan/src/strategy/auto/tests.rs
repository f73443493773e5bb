//! `auto` against predictions that are known.

use super::*;
use std::time::Duration;

use crate::cost::Modelled;
use crate::phase::Phase;
use crate::rate::{RateModel, Rates};
use crate::strategy::{CpuOnly, LayerSplit};
use crate::time::TimeModel;
use lapwing_kernels::device::{DeviceInfo, DeviceKind};
use lapwing_kernels::formats::DType;
use lapwing_kernels::graph::{Graph, NewNode, WeightSpec};
use lapwing_kernels::op::Op;

fn graph() -> Arc<Graph> {
    let mut graph = Graph::default();
    let spec = WeightSpec { name: "w".into(), rows: 4, cols: 4, dtype: DType::F32 };
    let table = graph.add_weight(spec);
    let node = |op, layer| NewNode { op, inputs: &[], width: 4, layer, role: "test" };
    let mut x = graph.push(node(Op::Embed { table, scale: 1.0 }, None));
    for layer in 0..4 {
        let op = node(Op::SoftCap { cap: 1.0 }, Some(layer));
        x = graph.push(NewNode { inputs: &[x], ..op });
    }
    let op = node(Op::SelectRows, None);
    graph.push(NewNode { inputs: &[x], ..op });
    Arc::new(graph)
}

/// Two devices with 1 MFLOP/s.
fn cost(graph: &Arc<Graph>) -> Modelled {
    let submit = Duration::from_micros(10);
    let rate = Rates {
        gflops: 1e-3,
        gbps: 1.0,
        submit_queued: submit,
        submit_idle: submit,
        sync: Duration::ZERO,
    };
    let model = RateModel::new(Arc::clone(graph), rate).expect("a rate");
    let device: Arc<dyn TimeModel> = Arc::new(model);
    let devices = vec![Arc::clone(&device), device];
    Modelled { devices, sync: Duration::from_micros(1), copy_rate: 1e9 }
}

fn device(name: &str) -> DeviceInfo {
    DeviceInfo::new(name, DeviceKind::Cpu)
}

fn input<'a>(
    graph: &'a Arc<Graph>,
    cost: &'a Modelled,
    devices: &'a [DeviceInfo],
) -> PlanInput<'a> {
    PlanInput { model: Default::default(), graph, devices, cost, chunk_rows: 16 }
}

fn auto() -> Auto {
    Auto::new(vec![Arc::new(CpuOnly), Arc::new(LayerSplit)], 2)
}

#[test]
fn a_pipeline_wins_for_several_chunks_and_loses_for_one() {
    let graph = graph();
    let (cost, auto) = (cost(&graph), auto());
    let devices = [device("a"), device("b")];
    let input = input(&graph, &cost, &devices);
    let winner = |rows| {
        let explanation = auto.explain_prompt(&input, rows, 0).expect("routes");
        explanation.winner().strategy.clone()
    };
    assert_eq!(winner(160), "layer-split");
    assert_eq!(winner(16), "cpu-only");
}

#[test]
fn every_chunk_of_a_prompt_follows_its_winner() {
    let graph = graph();
    let (cost, auto) = (cost(&graph), auto());
    let devices = [device("a"), device("b")];
    let input = input(&graph, &cost, &devices);
    let work = Workload { prompt: 70, context: 0, in_flight: 2 };
    let chunks = plan(&auto, &input, work).expect("routes");
    let winner = auto.explain_prompt(&input, 70, 0).expect("routes");
    let name = &winner.winner().strategy;
    assert_eq!(chunks.iter().map(|c| c.shape.rows).sum::<usize>(), 70);
    assert!(chunks.iter().all(|c| c.route.reason.starts_with(name)), "{chunks:?}");
}

#[test]
fn no_candidate_with_a_route_is_an_error_and_no_panic() {
    let graph = graph();
    let cost = cost(&graph);
    let devices = [device("a")];
    let input = input(&graph, &cost, &devices);
    let step = ChunkShape { phase: Phase::Decode, rows: 1, selected: 1, context: 3, prompt: 0 };
    assert!(Auto::new(Vec::new(), 2).route(&input, &step).is_err());
    assert_eq!(Auto::new(Vec::new(), 2).chunk_rows(&input, PromptRows::new(99)), 16);
}
