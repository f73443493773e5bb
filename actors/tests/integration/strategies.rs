//! Strategies that give no route, or one that computes something twice or not at all.

use std::collections::HashMap;
use std::ops::Range;

use lapwing_kernels::device::{DeviceKind, Prepare};
use lapwing_kernels::graph::RowSet;
use lapwing_kernels::op::Op;
use lapwing_kernels::part::{OperandOrder, Part};
use lapwing_plan::Phase;
use lapwing_plan::strategy::{
    ChunkShape, MultiSequenceCut, OnlinePrepare, OrderSwap, PromptRows, Ratio, RowCut, SequenceCut,
    Strategy, StrategyOptions, all, by_name,
};
use lapwing_plan::{PlanError, Route, StagePart};
use proptest::prelude::*;

use crate::plan_support::{SIZES, Setup, decode, prefill};

const ROWS: [usize; 13] = [1, 31, 32, 33, 64, 135, 255, 256, 257, 300, 525, 600, 1000];
const DEVICES: [&str; 5] = ["cpu", "cpu npu", "cpu gpu", "cpu gpu npu", "gpu npu"];

/// Kind of device that a strategy must name where it has no route.
fn missing(strategy: &str, devices: &str) -> Option<DeviceKind> {
    let has = |name| devices.split(' ').any(|device| device == name);
    match strategy {
        "gpu-only" => (!has("gpu")).then_some(DeviceKind::Gpu),
        "cpu-only" => (!has("cpu")).then_some(DeviceKind::Cpu),
        "barrier-per-op" | "layer-split" | "auto-place" | "tensor-level" | "auto" => None,
        "row-cut" | "sequence-cut" | "multi-sequence-cut" => {
            (!devices.contains(' ')).then_some(DeviceKind::Npu)
        }
        _ => (!has("npu")).then_some(DeviceKind::Npu),
    }
}

#[test]
fn every_strategy_has_a_route_for_every_length_or_says_what_it_needs() {
    for model in ["llama", "gemma3", "qwen3"] {
        for names in DEVICES {
            let setup = Setup::new(model, names);
            for strategy in all(&StrategyOptions::default()) {
                for rows in ROWS {
                    let shapes = [
                        prefill(rows),
                        ChunkShape { selected: 0, context: 512, ..prefill(rows) },
                        ChunkShape { selected: rows, ..prefill(rows) },
                        ChunkShape { phase: Phase::Mixed, selected: rows.min(5), ..prefill(rows) },
                        decode(rows.min(40)),
                    ];
                    for shape in shapes {
                        check(&setup, &*strategy, (names, shape));
                    }
                }
            }
        }
    }
}

fn check(setup: &Setup, strategy: &dyn Strategy, (names, shape): (&str, ChunkShape)) {
    let what = format!("{} on {names}, {shape:?}", strategy.name());
    match (setup.route(strategy, shape), missing(strategy.name(), names)) {
        (Ok(route), None) => {
            covers_once(setup, &route, &shape);
            let ahead = route.compute_stages().filter(|stage| stage.prepare == Prepare::Ahead);
            let npu = |part: &&StagePart| !part.part.graphs.is_empty();
            let graphs = ahead.flat_map(|s| &s.parts).filter(npu).count();
            assert_eq!(graphs > 0, !route.graphs.is_empty(), "{what}");
        }
        (Err(PlanError::Needs { strategy: name, kind, .. }), Some(missing)) => {
            assert_eq!((name.as_str(), kind), (strategy.name(), missing), "{what}");
        }
        (found, expected) => panic!("{what}: {found:?}, missing {expected:?}"),
    }
    for due in [1, shape.rows, 5000] {
        let rows = strategy.chunk_rows(&setup.input(), PromptRows::new(due));
        assert!((1..=due.min(setup.chunk_rows)).contains(&rows), "{what}: {rows} of {due}");
    }
}

/// Rows and features of a part.
type Tile = (Range<usize>, Range<usize>);

/// Every value of every node is computed once, each row and each feature.
fn covers_once(setup: &Setup, route: &Route, shape: &ChunkShape) {
    let batch = shape.batch();
    let mut next = 0;
    for stage in route.compute_stages() {
        assert_eq!(stage.nodes.start, next);
        next = stage.nodes.end;
        for node in &setup.graph.nodes()[stage.nodes.clone()] {
            let value = setup.graph.value(node.output);
            let rows = Part::WHOLE.rows_of(value, &batch).len();
            let tiles: Vec<Tile> = stage
                .parts
                .iter()
                .map(|p| (p.part.rows_of(value, &batch), p.part.features.of_width(value.width)))
                .collect();
            let mut times: HashMap<(usize, usize), usize> = HashMap::new();
            // Borders of tiles suffice: between them nothing changes.
            let borders = |of: &dyn Fn(&Tile) -> Range<usize>, all| {
                let ends = tiles.iter().flat_map(|t| [of(t).start, of(t).end]);
                let mut ends: Vec<usize> = ends.chain([0, all]).collect();
                ends.sort_unstable();
                ends.dedup();
                assert_eq!(ends.last(), Some(&all));
                ends.pop();
                ends
            };
            let points = (borders(&|t| t.0.clone(), rows), borders(&|t| t.1.clone(), value.width));
            for &row in &points.0 {
                for &feature in &points.1 {
                    let inside = |t: &&Tile| t.0.contains(&row) && t.1.contains(&feature);
                    times.insert((row, feature), tiles.iter().filter(inside).count());
                }
            }
            assert!(times.values().all(|n| *n == 1), "{:?}: {times:?}", node.role);
        }
    }
    assert_eq!(next, setup.graph.nodes().len());
}

/// The row parts of the first divided stage, as (device, rows, graphs).
fn token_cut(
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
fn the_published_token_cuts_are_made() {
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
            let found = token_cut(strategy, names, rows);
            assert_eq!(found, [part("npu", held, &main), part(helper, edge, &[])], "{names}");
        }
        let found = token_cut(strategy, "cpu gpu", rows);
        assert_eq!(found, [part("gpu", held, &[]), part("cpu", edge, &[])]);
    }
}

/// Graphs of the NPU's stages, which are all the same.
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
fn the_published_paddings_are_made() {
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
fn chunks_are_of_one_size_that_a_graph_has() {
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
fn a_run_of_static_ops_is_one_stage_and_so_is_one_device() {
    let setup = Setup::new("llama", "cpu npu");
    let layers = setup.graph.nodes().iter().filter_map(|n| n.layer).max().expect("layers") + 1;
    for name in ["npu-padding", "pipe", "chunk-graph"] {
        let options = StrategyOptions { order_swap: OrderSwap::Off, ..Default::default() };
        let strategy = by_name(name, &options).expect("is known");
        let route = setup.route(&*strategy, prefill(100)).expect("a route");
        // embed, then per layer the static ops and the attention, at last the selected rows.
        assert_eq!(route.compute_stages().count(), 2 * layers + 3, "{name}");
        let decoded = setup.route(&*strategy, decode(1)).expect("a route");
        assert_eq!(decoded.compute_stages().count(), 1, "{name}");
    }
    let cpu = by_name("cpu-only", &StrategyOptions::default()).expect("is known");
    assert_eq!(setup.route(&*cpu, prefill(7)).expect("a route").compute_stages().count(), 1);
}

#[test]
fn layer_level_gives_the_npu_products_and_nothing_else() {
    let setup = Setup::new("qwen3", "cpu gpu npu");
    let strategy = by_name("layer-level", &StrategyOptions::default()).expect("is known");
    let route = setup.route(&*strategy, prefill(300)).expect("a route");
    for stage in route.compute_stages() {
        let name = setup.names(stage);
        for node in &setup.graph.nodes()[stage.nodes.clone()] {
            let all = setup.graph.value(node.output).rows == RowSet::All;
            let product = matches!(node.op, Op::MatMul { .. }) && all;
            assert_eq!(name, if product { "npu" } else { "gpu" }, "{}", node.role);
        }
    }
}

#[test]
fn chunk_graph_keeps_attention_on_the_cpu_although_there_is_a_gpu() {
    let setup = Setup::new("llama", "cpu gpu npu");
    let strategy = by_name("chunk-graph", &StrategyOptions::default()).expect("is known");
    for shape in [prefill(128), decode(1)] {
        let route = setup.route(&*strategy, shape).expect("a route");
        assert!(route.compute_stages().all(|stage| setup.names(stage) != "gpu"));
    }
}

#[test]
fn every_product_is_divided_by_the_ratio_also_in_decode() {
    let setup = Setup::new("llama", "cpu gpu npu");
    // Tiny: the 96 features of gate and up have three borders.
    for (ratio, names, features) in
        [("1:1", "npu|gpu", &[64, 32][..]), ("1:1:1", "npu|gpu|cpu", &[32, 32, 32])]
    {
        let ratio: Ratio = ratio.parse().expect("a ratio");
        let strategy = RowCut { ratio, order_swap: OrderSwap::On };
        for shape in [prefill(64), decode(2)] {
            let route = setup.route(&strategy, shape).expect("a route");
            for stage in route.compute_stages() {
                let nodes = &setup.graph.nodes()[stage.nodes.clone()];
                let rows = setup.graph.value(nodes[0].output).rows;
                let product = matches!(nodes[0].op, Op::MatMul { .. });
                let divided = product && (rows == RowSet::All || shape.phase == Phase::Decode);
                assert!(divided || stage.parts.len() == 1, "{}", nodes[0].role);
                if !divided {
                    assert_eq!(setup.names(stage), "gpu", "{}", nodes[0].role);
                }
                if divided && nodes[0].role == "ffn_gate" {
                    let roles: Vec<&str> = nodes.iter().map(|node| node.role).collect();
                    assert_eq!(roles, ["ffn_gate", "ffn_up", "ffn_gated"]);
                    assert_eq!(setup.names(stage), names);
                    let widths = stage.parts.iter().map(|p| p.part.features.of_width(96).len());
                    assert_eq!(widths.collect::<Vec<_>>(), features);
                }
            }
            let gates = Setup::cuts(&route).len();
            assert!(gates >= if shape.phase == Phase::Decode { 5 } else { 3 }, "{gates}");
        }
        let route = setup.route(&strategy, decode(2)).expect("a route");
        assert!(!route.graphs.is_empty());
        assert!(route.graphs.iter().all(|(_, key)| key.rows == 32));
    }
}

#[test]
fn every_op_is_a_stage_of_its_own_between_barriers() {
    let setup = Setup::new("llama", "cpu gpu npu");
    let strategy = by_name("barrier-per-op", &StrategyOptions::default()).expect("is known");
    let route = setup.route(&*strategy, prefill(300)).expect("a route");
    assert_eq!(route.compute_stages().count(), setup.graph.nodes().len());
    let used: Vec<String> = route.compute_stages().map(|stage| setup.names(stage)).collect();
    assert!(["cpu", "npu"].iter().all(|name| used.iter().any(|u| u == name)), "{used:?}");
}

#[test]
fn only_graphs_made_on_the_spot_may_have_any_length() {
    let setup = Setup::new("llama", "cpu npu");
    let route = setup.route(&OnlinePrepare::default(), prefill(135)).expect("a route");
    assert!(route.graphs.is_empty(), "nothing is prepared ahead");
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
fn operands_are_swapped_only_where_that_is_allowed() {
    let setup = Setup::new("llama", "cpu npu");
    let orders = |order_swap| {
        let options = StrategyOptions { order_swap, ..StrategyOptions::default() };
        let strategy = by_name("npu-padding", &options).expect("is known");
        let route = setup.route(&*strategy, prefill(32)).expect("a route");
        let parts = route.compute_stages().flat_map(|stage| &stage.parts);
        parts.map(|part| part.part.order).collect::<Vec<_>>()
    };
    assert!(orders(OrderSwap::Off).iter().all(|o| *o == OperandOrder::Straight));
    assert!(orders(OrderSwap::On).contains(&OperandOrder::Swapped));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn cuts_cover_all_rows_and_features_once(
        rows in 1..1300usize,
        units in proptest::collection::vec(1..40usize, 2..4),
        edge_rows in 0..300usize,
        devices in 0..DEVICES.len(),
        model in 0..3usize,
        decodes in proptest::bool::ANY,
    ) {
        let setup = Setup::new(["llama", "gemma2", "qwen2"][model], DEVICES[devices]);
        let ratio = Ratio::new(&units).expect("a ratio");
        let options = StrategyOptions { ratio, edge_rows, ..StrategyOptions::default() };
        for name in ["row-cut", "sequence-cut", "multi-sequence-cut", "hybrid-cut"] {
            let strategy = by_name(name, &options).expect("is known");
            let shape = if decodes { decode(rows % 64 + 1) } else { prefill(rows) };
            match setup.route(&*strategy, shape) {
                Ok(route) => covers_once(&setup, &route, &shape),
                Err(PlanError::Needs { .. }) => {
                    prop_assert!(missing(name, DEVICES[devices]).is_some());
                }
                Err(error) => prop_assert!(false, "{name}: {error}"),
            }
        }
    }

    #[test]
    fn graphs_hold_the_rows_of_their_part(rows in 1..1300usize, which in 0..1000usize) {
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
