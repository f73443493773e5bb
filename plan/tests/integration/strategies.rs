//! Strategies that make another route than the published or documented one.

use lapwing_kernels::device::Prepare;
use lapwing_kernels::graph::RowSet;
use lapwing_kernels::npu::BUCKETS;
use lapwing_kernels::op::Op;
use lapwing_kernels::part::OperandOrder;
use lapwing_plan::strategy::{
    MultiSequenceCut, OnlinePrepare, OrderSwap, PromptRows, Ratio, RowCut, SequenceCut, Strategy,
    StrategyOptions, all, by_name,
};
use lapwing_plan::{Phase, PlanError, Route, StagePart};
use proptest::prelude::*;

use crate::setup::{Setup, decode};
use crate::support::{SIZES, prefill};

/// The parts of the first divided stage, as (device, rows, graph sizes).
fn sequence_cut_parts(
    strategy: &dyn Strategy,
    names: &str,
    rows: usize,
) -> Vec<(String, usize, Vec<usize>)> {
    let setup = Setup::new("llama", names);
    let route = setup.route(strategy, prefill(rows)).expect("a route");
    let cuts = Setup::cuts(&route);
    let first = cuts.first().expect("a divided stage");
    assert!(cuts.iter().all(|stage| stage.parts.len() == 2));
    first
        .parts
        .iter()
        .map(|StagePart { device, part }| {
            let rows = part.rows.as_ref().map_or(rows, ExactSizeIterator::len);
            (setup.devices[device.0].name.clone(), rows, part.graphs.clone())
        })
        .collect()
}

#[test]
fn sequence_cuts_divide_rows_as_published() {
    let part = |device: &str, rows, graphs: &[usize]| (device.to_owned(), rows, graphs.to_vec());
    let multi = MultiSequenceCut::default();
    let one = SequenceCut::default();
    for (strategy, rows, main, edge) in [
        (&one as &dyn Strategy, 300, vec![256], 44),
        (&one, 525, vec![512], 13),
        (&one, 600, vec![512], 88),
        (&multi, 300, vec![256], 44),
        (&multi, 525, vec![512], 13),
        (&multi, 600, vec![512, 32], 56),
    ] {
        let held = main.iter().sum();
        for (names, helper) in [("cpu gpu npu", "gpu"), ("cpu npu", "cpu"), ("gpu npu", "gpu")] {
            let found = sequence_cut_parts(strategy, names, rows);
            assert_eq!(found, [part("npu", held, &main), part(helper, edge, &[])], "{names}");
        }
        let found = sequence_cut_parts(strategy, "cpu gpu", rows);
        assert_eq!(found, [part("gpu", held, &[]), part("cpu", edge, &[])]);
    }
}

/// Graph sizes of the NPU's stages, which are all equal.
fn npu_graphs(name: &str, rows: usize) -> Vec<usize> {
    let setup = Setup::new("llama", "cpu gpu npu");
    let strategy = by_name(name, &StrategyOptions::default()).expect("is known");
    let route = setup.route(&*strategy, prefill(rows)).expect("a route");
    let mut graphs = route.compute_stages().flat_map(|s| &s.parts).filter(|p| p.device.0 == 2);
    let first = graphs.next().expect("the NPU has a part").part.graphs.clone();
    assert!(graphs.all(|part| part.part.graphs == first));
    first
}

#[test]
fn rows_are_padded_as_published() {
    for (name, rows, graphs) in [
        ("npu-padding", 300, &[512][..]),
        ("npu-padding", 525, &[1024]),
        ("layer-level", 300, &[512]),
        ("pipe", 300, &[256, 64]),
        ("pipe", 525, &[512, 32]),
        ("pipe", 600, &[512, 64, 32]),
        ("online-prepare", 525, &[544]),
        ("online-prepare", 135, &[160]),
        ("chunked", 44, &[256]),
        ("chunk-graph", 44, &[128]),
        ("hybrid-cut", 300, &[512]),
        ("row-cut", 300, &[256, 64]),
    ] {
        assert_eq!(npu_graphs(name, rows), graphs, "{name} {rows}");
    }
}

#[test]
fn a_chunk_size_is_rounded_up_to_a_graph_size() {
    let setup = Setup::new("llama", "cpu npu");
    let options = StrategyOptions { chunk: Some(100), ..StrategyOptions::default() };
    for name in ["chunked", "chunk-graph"] {
        let strategy = by_name(name, &options).expect("is known");
        assert_eq!(strategy.chunk_rows(&setup.input(), PromptRows::new(1000)), 128, "{name}");
        assert_eq!(strategy.chunk_rows(&setup.input(), PromptRows::new(100)), 100, "{name}");
    }
    let padding = by_name("npu-padding", &options).expect("is known");
    assert_eq!(padding.chunk_rows(&setup.input(), PromptRows::new(3000)), 1024);
}

#[test]
fn parameters_reach_their_strategy() {
    let (setup, options) = (Setup::new("llama", "cpu gpu npu"), StrategyOptions::default());
    let by = |text: &str| by_name(text, &options).expect(text);
    for name in ["chunked", "chunk-graph"] {
        let strategy = by(&format!("{name}:chunk=500"));
        assert_eq!(strategy.chunk_rows(&setup.input(), PromptRows::new(1000)), 512, "{name}");
    }
    let route = |strategy: &dyn Strategy| setup.route(strategy, prefill(600)).expect("a route");
    let own = MultiSequenceCut { edge_rows: 90, ..MultiSequenceCut::default() };
    let (named, default) = (by("multi-sequence-cut:edge-rows=90"), by("multi-sequence-cut"));
    assert_eq!(route(&*named).stages, route(&own).stages);
    assert_ne!(route(&*named).stages, route(&*default).stages);
    let undivided = route(&*by("tensor-level:gain=100"));
    assert!(Setup::cuts(&undivided).is_empty(), "nothing gains that much");
}

#[test]
fn a_run_of_static_ops_is_one_stage() {
    let setup = Setup::new("llama", "cpu npu");
    let layers = setup.graph.nodes().iter().filter_map(|n| n.layer).max().expect("layers") + 1;
    for name in ["npu-padding", "pipe", "chunk-graph"] {
        let options = StrategyOptions { order_swap: OrderSwap::Off, ..Default::default() };
        let strategy = by_name(name, &options).expect("is known");
        let route = setup.route(&*strategy, prefill(100)).expect("a route");
        // The embedding; per layer the static ops and the attention; the selected rows.
        assert_eq!(route.compute_stages().count(), 2 * layers + 3, "{name}");
        let decoded = setup.route(&*strategy, decode(1)).expect("a route");
        assert_eq!(decoded.compute_stages().count(), 1, "{name}");
    }
    let cpu = by_name("cpu-only", &StrategyOptions::default()).expect("is known");
    assert_eq!(setup.route(&*cpu, prefill(7)).expect("a route").compute_stages().count(), 1);
}

#[test]
fn layer_level_runs_only_matmuls_on_the_npu() {
    let setup = Setup::new("qwen3", "cpu gpu npu");
    let strategy = by_name("layer-level", &StrategyOptions::default()).expect("is known");
    let route = setup.route(&*strategy, prefill(300)).expect("a route");
    for stage in route.compute_stages() {
        let name = setup.names(stage);
        for node in &setup.graph.nodes()[stage.nodes.clone()] {
            let all = setup.graph.value(node.output).rows == RowSet::All;
            let on_npu = matches!(node.op, Op::MatMul { .. }) && all;
            assert_eq!(name, if on_npu { "npu" } else { "gpu" }, "{}", node.role);
        }
    }
}

#[test]
fn chunk_graph_runs_attention_on_the_cpu_even_beside_a_gpu() {
    let setup = Setup::new("llama", "cpu gpu npu");
    let strategy = by_name("chunk-graph", &StrategyOptions::default()).expect("is known");
    for shape in [prefill(128), decode(1)] {
        let route = setup.route(&*strategy, shape).expect("a route");
        assert!(route.compute_stages().all(|stage| setup.names(stage) != "gpu"));
    }
}

#[test]
fn row_cut_divides_every_matmul_by_the_ratio_also_in_decode() {
    let setup = Setup::new("llama", "cpu gpu npu");
    // The 96 output channels of gate and up of the tiny model are three units of 32.
    for (ratio, names, channels) in
        [("1:1", "npu|gpu", &[64, 32][..]), ("1:1:1", "npu|gpu|cpu", &[32, 32, 32])]
    {
        let ratio: Ratio = ratio.parse().expect("a ratio");
        let strategy = RowCut { ratio: Some(ratio), order_swap: OrderSwap::On };
        for shape in [prefill(64), decode(2)] {
            let route = setup.route(&strategy, shape).expect("a route");
            for stage in route.compute_stages() {
                let nodes = &setup.graph.nodes()[stage.nodes.clone()];
                let rows = setup.graph.value(nodes[0].output).rows;
                let is_matmul = matches!(nodes[0].op, Op::MatMul { .. });
                let divided = is_matmul && (rows == RowSet::All || shape.phase == Phase::Decode);
                assert!(divided || stage.parts.len() == 1, "{}", nodes[0].role);
                if !divided {
                    assert_eq!(setup.names(stage), "gpu", "{}", nodes[0].role);
                }
                if divided && nodes[0].role == "ffn_gate" {
                    let roles: Vec<&str> = nodes.iter().map(|node| node.role).collect();
                    assert_eq!(roles, ["ffn_gate", "ffn_up", "ffn_gated"]);
                    assert_eq!(setup.names(stage), names);
                    let widths = stage.parts.iter().map(|p| p.part.features.of_width(96).len());
                    assert_eq!(widths.collect::<Vec<_>>(), channels);
                }
            }
            let cuts = Setup::cuts(&route).len();
            assert!(cuts >= if shape.phase == Phase::Decode { 5 } else { 3 }, "{cuts}");
        }
        let route = setup.route(&strategy, decode(2)).expect("a route");
        assert!(!route.graphs.is_empty());
        assert!(route.graphs.iter().all(|(_, key)| key.rows == 32));
    }
}

/// The row cut of a decode step or a verification, with the graph sizes of the software NPU.
#[test]
fn few_rows_take_a_graph_of_their_own_size() {
    let mut setup = Setup::new("llama", "cpu gpu npu");
    setup.devices[2].sizes = BUCKETS.to_vec();
    let strategy =
        RowCut { ratio: Some("1:1".parse().expect("a ratio")), order_swap: OrderSwap::On };
    for (rows, graph) in [(1, 1), (2, 2), (4, 4), (5, 8), (16, 16), (17, 32)] {
        let route = setup.route(&strategy, decode(rows)).expect("a route");
        let mut graphs = route.compute_stages().flat_map(|s| &s.parts).map(|p| &p.part.graphs);
        assert!(route.graphs.iter().all(|(_, key)| key.rows == graph), "{rows} rows");
        assert!(graphs.any(|graphs| graphs == &[graph]), "{rows} rows: the NPU has no part");
    }
}

#[test]
fn barrier_per_op_makes_every_op_a_stage() {
    let setup = Setup::new("llama", "cpu gpu npu");
    let strategy = by_name("barrier-per-op", &StrategyOptions::default()).expect("is known");
    let route = setup.route(&*strategy, prefill(300)).expect("a route");
    assert_eq!(route.compute_stages().count(), setup.graph.nodes().len());
    let used: Vec<String> = route.compute_stages().map(|stage| setup.names(stage)).collect();
    assert!(["cpu", "npu"].iter().all(|name| used.iter().any(|u| u == name)), "{used:?}");
}

#[test]
fn only_graphs_prepared_on_the_spot_may_have_any_length() {
    let setup = Setup::new("llama", "cpu npu");
    let route = setup.route(&OnlinePrepare::default(), prefill(135)).expect("a route");
    assert!(route.graphs.is_empty(), "no graph is prepared ahead");
    let mut stages: Vec<lapwing_plan::Stage> = route.compute_stages().cloned().collect();
    let of = setup.input();
    let shape = prefill(135);
    for stage in &mut stages {
        stage.prepare = Prepare::Ahead;
    }
    let error = Route::new(stages, String::new(), None, of.route_for(&shape));
    assert!(matches!(error, Err(PlanError::Device { .. })), "{error:?}");
    let mut stages: Vec<lapwing_plan::Stage> = route.compute_stages().cloned().collect();
    for part in stages.iter_mut().flat_map(|stage| &mut stage.parts) {
        part.part.graphs.iter_mut().for_each(|rows| *rows += 1);
    }
    let error = Route::new(stages, String::new(), None, of.route_for(&shape));
    assert!(matches!(error, Err(PlanError::Device { .. })), "{error:?}");
}

#[test]
fn operands_are_swapped_only_with_order_swap_on() {
    let setup = Setup::new("llama", "cpu gpu npu");
    let orders = |name: &str, order_swap| {
        let options = StrategyOptions { order_swap, ..StrategyOptions::default() };
        let strategy = by_name(name, &options).expect("is known");
        let route = setup.route(&*strategy, prefill(32)).expect("a route");
        let parts = route.compute_stages().flat_map(|stage| &stage.parts);
        let on_npu = parts.filter(|part| !part.part.graphs.is_empty());
        on_npu.map(|part| part.part.order).collect::<Vec<_>>()
    };
    // The other strategies run nothing on the NPU, or always take the better order.
    for name in [
        "npu-padding",
        "online-prepare",
        "pipe",
        "chunked",
        "layer-level",
        "row-cut",
        "sequence-cut",
        "multi-sequence-cut",
        "hybrid-cut",
        "chunk-graph",
    ] {
        let off = orders(name, OrderSwap::Off);
        assert!(!off.is_empty(), "{name} runs something on the NPU");
        assert!(off.iter().all(|order| *order == OperandOrder::Straight), "{name}: {off:?}");
        // These take a graph of 256 rows, which streams at the full rate in straight order.
        let full_rate = ["chunked", "chunk-graph"].contains(&name);
        let swaps = orders(name, OrderSwap::On).contains(&OperandOrder::Swapped);
        assert_eq!(swaps, !full_rate, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn the_graphs_of_a_part_hold_all_its_rows(rows in 1..1300usize, which in 0..1000usize) {
        let setup = Setup::new("llama", "cpu gpu npu");
        let options = StrategyOptions::default();
        let strategies = all(&options);
        let strategy = &strategies[which % strategies.len()];
        let route = setup.route(&**strategy, prefill(rows)).expect("a route");
        for part in route.compute_stages().flat_map(|s| &s.parts).filter(|p| p.device.0 == 2) {
            let held: usize = part.part.graphs.iter().sum();
            let selected = part.part.rows.is_none() && held < rows;
            prop_assert!(selected || held >= part.part.rows.as_ref().map_or(rows, |r| r.len()));
            let sizes = part.part.graphs.iter().all(|size| SIZES.contains(size));
            prop_assert!(sizes || strategy.name() == "online-prepare");
        }
    }
}
