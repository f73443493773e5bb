//! A stage that is cut by experts has each expert on one device, costs what its experts cost, and takes the memory of these.

use std::ops::Range;
use std::sync::Arc;

use lapwing_kernels::device::{CacheBytes, NodeOnDevice, Packing, Room, RoomNeed};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::op::Op;
use lapwing_kernels::part::{Part, Share};
use lapwing_plan::strategy::{ChunkShape, ExpertCut, Ratio};
use lapwing_plan::{DeviceId, PlanError, Route, Stage, StagePart};

use crate::setup::{Setup, decode};
use crate::support::prefill;

const MODELS: [&str; 4] = ["qwen3moe", "gpt-oss", "llama4", "deepseek2"];

fn is_experts(graph: &Graph, node: usize) -> bool {
    matches!(graph.nodes()[node].op, Op::Experts(_))
}

/// The first node of experts, and how many it has.
fn experts(graph: &Graph) -> (usize, usize) {
    let of = |node: usize| match &graph.nodes()[node].op {
        Op::Experts(op) => Some((node, op.count)),
        _ => None,
    };
    (0..graph.nodes().len()).find_map(of).expect("experts")
}

/// A route of whole stages around one of experts that has these parts.
fn route(setup: &Setup, parts: Vec<Part>) -> Result<Arc<Route>, PlanError> {
    let (node, _) = experts(&setup.graph);
    let part = |(device, part)| StagePart { device: DeviceId(device), part };
    let parts = parts.into_iter().enumerate().map(part).collect();
    let stages = vec![
        Stage::whole(DeviceId(0), 0..node),
        Stage { parts, ..Stage::whole(DeviceId(0), node..node + 1) },
        Stage::whole(DeviceId(0), node + 1..setup.graph.nodes().len()),
    ];
    Route::new(stages, "by hand".to_owned(), None, setup.input().route_for(&prefill(20)))
}

#[test]
fn a_route_has_each_expert_on_one_device() {
    for model in MODELS {
        let setup = Setup::new(model, "cpu gpu");
        let (node, count) = experts(&setup.graph);
        let of = |ranges: [Range<usize>; 2]| ranges.map(Part::of_experts).to_vec();
        for border in 1..count {
            route(&setup, of([0..border, border..count])).expect("a route");
            route(&setup, of([border..count, 0..border])).expect("in any order");
        }
        for ranges in [[0..1, 2..count], [0..2, 1..count], [0..1, 1..count - 1], [0..0, 0..count]] {
            let error = route(&setup, of(ranges.clone())).expect_err("some experts");
            assert!(matches!(error, PlanError::Parts { .. }), "{model} {ranges:?}: {error}");
        }
        let half = Share { from: 0, to: 1, of: 2 };
        let wrong = [
            vec![Part::of_experts(0..1), Part::WHOLE],
            vec![Part::of_experts(0..1), Part { rows: Some(0..20), ..Part::of_experts(1..count) }],
            vec![Part::of_experts(0..1), Part { features: half, ..Part::of_experts(1..count) }],
        ];
        for parts in wrong {
            let error = route(&setup, parts.clone()).expect_err("another cut beside it");
            assert!(matches!(error, PlanError::Parts { .. }), "{model} {parts:?}: {error}");
        }
        let other = Stage {
            parts: vec![StagePart { device: DeviceId(0), part: Part::of_experts(0..count) }],
            ..Stage::whole(DeviceId(0), node..node + 2)
        };
        let stages = vec![
            Stage::whole(DeviceId(0), 0..node),
            other,
            Stage::whole(DeviceId(0), node + 2..setup.graph.nodes().len()),
        ];
        let shape = prefill(20);
        let made = Route::new(stages, String::new(), None, setup.input().route_for(&shape));
        assert!(matches!(made, Err(PlanError::Parts { .. })), "{model}: {made:?}");
    }
}

#[test]
fn parts_together_cost_what_the_whole_costs() {
    for model in MODELS {
        let graph = Setup::new(model, "cpu").graph;
        let (node, count) = experts(&graph);
        for shape in [prefill(1), prefill(40), decode(3)] {
            // The last layer computes selected rows only, and may be the first with experts.
            let batch = ChunkShape { selected: shape.rows, ..shape }.batch();
            let whole = graph.part_cost(node, &Part::WHOLE, &batch);
            let [few, many] = [0..1, 1..count].map(Part::of_experts);
            let [few, many] = [few, many].map(|part| graph.part_cost(node, &part, &batch));
            assert!(whole.flops - few.flops - many.flops <= 2, "{model}: {few:?} {many:?}");
            assert!(count as u64 * few.flops <= whole.flops, "{model}: {few:?} of {whole:?}");
            // Both read the rows and their routes.
            let inputs = graph.nodes()[node].inputs.iter();
            let widths: usize = inputs.map(|input| graph.value(*input).width).sum();
            let again = (4 * widths * shape.rows) as u64;
            let differ = (few.bytes + many.bytes).abs_diff(whole.bytes + again);
            assert!(differ <= 8, "{model}: {few:?} and {many:?} of {whole:?}, {again} twice");
        }
    }
}

#[test]
fn the_memory_is_that_of_the_experts() {
    for model in MODELS {
        let graph = Setup::new(model, "cpu").graph;
        let (node, count) = experts(&graph);
        let need = |experts: Range<usize>| {
            let nodes = [NodeOnDevice { node, experts: Some(experts) }];
            RoomNeed::of(&graph, nodes, &CacheBytes::default(), Packing::FILE).weights
        };
        let all = RoomNeed::of(&graph, [node], &CacheBytes::default(), Packing::FILE).weights;
        assert_eq!(need(0..count), all, "{model}");
        assert_eq!(need(1..2) * count as u64, all, "{model}");
        // Of two routes, what both need counts once.
        let nodes = [0..2, 1..3].map(|experts| NodeOnDevice { node, experts: Some(experts) });
        let both = RoomNeed::of(&graph, nodes, &CacheBytes::default(), Packing::FILE).weights;
        assert_eq!(both, need(0..3), "{model}");
        let twice = Packing::new(|dtype, rows, cols| 2 * Packing::FILE.bytes(dtype, rows, cols));
        assert_eq!(
            RoomNeed::of(&graph, [node], &CacheBytes::default(), twice).weights,
            2 * all,
            "{model}"
        );
    }
}

/// The experts of each device in the cut stages of a route.
fn divided(setup: &Setup, route: &Route) -> Vec<Vec<(usize, usize)>> {
    let cuts = Setup::cuts(route).into_iter();
    let own = |part: &StagePart| (part.device.0, part.part.experts_of(usize::MAX).len());
    cuts.map(|stage| {
        assert!(is_experts(&setup.graph, stage.nodes.start) && stage.nodes.len() == 1);
        stage.parts.iter().map(own).collect()
    })
    .collect()
}

#[test]
fn every_layer_is_divided_by_a_ratio_or_by_time() {
    for model in MODELS {
        let setup = Setup::new(model, "cpu gpu");
        let layers = (0..setup.graph.nodes().len()).filter(|node| is_experts(&setup.graph, *node));
        let (layers, (_, count)) = (layers.count(), experts(&setup.graph));
        for shape in [prefill(1), prefill(300), decode(1), decode(8)] {
            let ratio = Some(Ratio::new(&[3, 1]).expect("a ratio"));
            let route = setup.route(&ExpertCut { ratio }, shape).expect("a route");
            let found = divided(&setup, &route);
            assert_eq!(found.len(), layers, "{model}");
            for parts in &found {
                let gpu = (3 * count + 2) / 4;
                assert_eq!(parts[..], [(1, gpu), (0, count - gpu)], "{model} {shape:?}");
            }
            let by_time = setup.route(&ExpertCut::default(), shape).expect("a route");
            let parts = divided(&setup, &by_time);
            // The GPU is ten times as fast, and has all of few experts.
            assert!(parts.iter().flatten().all(|(device, own)| *device == 1 || *own < count / 2));
        }
    }
}

#[test]
fn a_small_memory_has_as_many_experts_as_fit() {
    for model in ["qwen3moe", "gpt-oss"] {
        let mut setup = Setup::new(model, "cpu gpu");
        let (_, count) = experts(&setup.graph);
        let nodes = 0..setup.graph.nodes().len();
        let need = |own: usize| {
            let part = |node| match is_experts(&setup.graph, node) {
                true => NodeOnDevice { node, experts: Some(0..own) },
                false => node.into(),
            };
            RoomNeed::of(
                &setup.graph,
                nodes.clone().map(part),
                &CacheBytes::default(),
                Packing::FILE,
            )
            .bytes()
        };
        let bytes: Vec<u64> = (1..count).map(need).collect();
        for (own, bytes) in (1..count).zip(bytes) {
            setup.devices[1].room = Some(Room { bytes: bytes + 1, cache: CacheBytes::default() });
            let mut found = Vec::new();
            for shape in [prefill(1), prefill(4000), decode(1), decode(8)] {
                let route = setup.route(&ExpertCut::default(), shape).expect("a route");
                found.extend(divided(&setup, &route));
                let reason = &route.reason;
                assert!(reason.contains("fit into its memory"), "{model}, {own}: {reason}");
            }
            assert!(
                found.iter().all(|parts| parts[..] == [(1, own), (0, count - own)]),
                "{found:?}"
            );
        }
    }
}

#[test]
fn a_model_without_experts_or_a_second_device_is_not_cut() {
    for (model, devices) in [("llama", "cpu gpu"), ("qwen3moe", "cpu"), ("qwen3moe", "cpu npu")] {
        let setup = Setup::new(model, devices);
        let route = setup.route(&ExpertCut::default(), prefill(30)).expect("a route");
        assert!(!route.is_cut() && route.compute_stages().count() == 1, "{model} on {devices}");
        let why = ["no experts to divide", "no second device computes experts"];
        assert!(why.iter().any(|why| route.reason.contains(why)), "{}", route.reason);
    }
}
