//! Every strategy computes every row and output channel of every value exactly once, or names the
//! device that it needs.

use std::collections::HashMap;
use std::ops::Range;

use lapwing_kernels::device::{DeviceKind, Prepare};
use lapwing_kernels::part::Part;
use lapwing_plan::strategy::{
    ChunkShape, PromptRows, Ratio, Strategy, StrategyOptions, all, by_name,
};
use lapwing_plan::{Phase, PlanError, Route, StagePart};
use proptest::prelude::*;

use crate::setup::{Setup, decode};
use crate::support::prefill;

const ROWS: [usize; 13] = [1, 31, 32, 33, 64, 135, 255, 256, 257, 300, 525, 600, 1000];
const DEVICES: [&str; 5] = ["cpu", "cpu npu", "cpu gpu", "cpu gpu npu", "gpu npu"];

/// The kind of device that a strategy must name if it has no route.
fn missing(strategy: &str, devices: &str) -> Option<DeviceKind> {
    let has = |name| devices.split(' ').any(|device| device == name);
    match strategy {
        "gpu-only" => (!has("gpu")).then_some(DeviceKind::Gpu),
        "cpu-only" => (!has("cpu")).then_some(DeviceKind::Cpu),
        "barrier-per-op" | "layer-split" | "auto-place" | "tensor-level" | "expert-cut"
        | "auto" => None,
        strategy if divides_over_any_kinds(strategy) => {
            (!devices.contains(' ')).then_some(DeviceKind::Npu)
        }
        _ => (!has("npu")).then_some(DeviceKind::Npu),
    }
}

/// Whether a strategy needs two kinds of device, whichever they are.
fn divides_over_any_kinds(strategy: &str) -> bool {
    ["row-cut", "sequence-cut", "multi-sequence-cut"].contains(&strategy)
}

#[test]
fn every_strategy_has_a_route_for_every_length_or_names_the_missing_device() {
    for model in ["llama", "gemma3", "qwen3", "minicpm3"] {
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
                        check(&setup, &*strategy, names, shape);
                    }
                }
            }
        }
    }
}

fn check(setup: &Setup, strategy: &dyn Strategy, names: &str, shape: ChunkShape) {
    let what = format!("{} on {names}, {shape:?}", strategy.name());
    match (setup.route(strategy, shape), missing(strategy.name(), names)) {
        (Ok(route), None) => {
            covers_once(setup, &route, &shape);
            let ahead = route.compute_stages().filter(|stage| stage.prepare == Prepare::Ahead);
            let npu = |part: &&StagePart| !part.part.graphs.is_empty();
            let graphs = ahead.flat_map(|s| &s.parts).filter(npu).count();
            assert_eq!(graphs > 0, !route.graphs.is_empty(), "{what}");
        }
        (Err(PlanError::NeedsTwoKinds { strategy: name, .. }), Some(_)) => {
            assert!(name == strategy.name() && divides_over_any_kinds(&name), "{what}");
        }
        (Err(PlanError::Needs { strategy: name, kind, .. }), Some(missing)) => {
            assert_eq!((name.as_str(), kind), (strategy.name(), missing), "{what}");
        }
        (found, expected) => panic!("{what}: {found:?}, missing {expected:?}"),
    }
    for prompt in [1, shape.rows, 5000] {
        let rows = strategy.chunk_rows(&setup.input(), PromptRows::new(prompt));
        assert!((1..=prompt.min(setup.chunk_rows)).contains(&rows), "{what}: {rows} of {prompt}");
    }
}

/// Rows and output channels of a part.
type Tile = (Range<usize>, Range<usize>);

/// Asserts that every row and output channel of every node is computed exactly once.
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
            // Only the borders of tiles are checked: between them the count is constant.
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
                for &channel in &points.1 {
                    let inside = |t: &&Tile| t.0.contains(&row) && t.1.contains(&channel);
                    times.insert((row, channel), tiles.iter().filter(inside).count());
                }
            }
            assert!(times.values().all(|n| *n == 1), "{:?}: {times:?}", node.role);
        }
    }
    assert_eq!(next, setup.graph.nodes().len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn cuts_cover_all_rows_and_output_channels_once(
        rows in 1..1300usize,
        units in proptest::collection::vec(1..40usize, 2..4),
        edge_rows in 0..300usize,
        devices in 0..DEVICES.len(),
        model in 0..3usize,
        decodes in proptest::bool::ANY,
    ) {
        let setup = Setup::new(["llama", "gemma2", "qwen2"][model], DEVICES[devices]);
        let ratio = Ratio::new(&units).expect("a ratio");
        let (ratio, edge_rows) = (Some(ratio), Some(edge_rows));
        let options = StrategyOptions { ratio, edge_rows, ..StrategyOptions::default() };
        for name in ["row-cut", "sequence-cut", "multi-sequence-cut", "hybrid-cut"] {
            let strategy = by_name(name, &options).expect("is known");
            let shape = if decodes { decode(rows % 64 + 1) } else { prefill(rows) };
            match setup.route(&*strategy, shape) {
                Ok(route) => covers_once(&setup, &route, &shape),
                Err(PlanError::Needs { .. } | PlanError::NeedsTwoKinds { .. }) => {
                    prop_assert!(missing(name, DEVICES[devices]).is_some());
                }
                Err(error) => prop_assert!(false, "{name}: {error}"),
            }
        }
    }
}
