//! Placements within the memory of a device.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{CacheBytes, DeviceKind, MemoryDomain, Packing, Room, RoomNeed};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::op::Op;
use lapwing_plan::PlanError;
use lapwing_plan::predict::{Workload, plan};
use lapwing_plan::rate::{Link, RateModel, Rates};
use lapwing_plan::strategy::{
    Auto, AutoPlace, ChunkShape, GpuOnly, Strategies, Strategy, StrategyOptions,
};
use lapwing_plan::time::{TimeModel, TimePerModel};

use crate::setup::{Setup, decode};
use crate::support::{Rate, prefill};

/// Bytes of keys and values of a layer.
const LAYER_KV: u64 = 1000;

fn cache() -> CacheBytes {
    CacheBytes { layers: vec![LAYER_KV; 64].into(), states: Arc::default() }
}

fn need(graph: &Graph, nodes: impl IntoIterator<Item = usize>) -> RoomNeed {
    RoomNeed::of(graph, nodes, &cache(), Packing::FILE)
}

/// All bytes that a GPU would keep.
fn all(graph: &Graph) -> u64 {
    need(graph, 0..graph.nodes().len()).bytes()
}

/// Bytes without those of experts.
fn without_experts(graph: &Graph) -> u64 {
    let is_other = |node: &usize| !matches!(graph.nodes()[*node].op, Op::Experts(_));
    need(graph, (0..graph.nodes().len()).filter(is_other)).bytes()
}

/// A model on a CPU and a GPU that is ten times as fast, with so many bytes of room in a memory of its own.
fn setup(model: &str, room: impl Fn(&Graph) -> u64) -> Setup {
    let mut setup = Setup::new(model, "cpu gpu");
    let bytes = room(&setup.graph);
    let gpu = &mut setup.devices[1];
    gpu.memory = MemoryDomain::Device(1);
    gpu.room = Some(Room { bytes, cache: cache() });
    // Prompts are so long that their copies between memories are worth it.
    let rate = |stage: u64, flops_per_us| -> Arc<dyn TimeModel> {
        let (graph, per_stage) = (Arc::clone(&setup.graph), Duration::from_nanos(stage));
        Arc::new(Rate { graph, per_stage, flops_per_us })
    };
    setup.cost.devices = vec![rate(10, 100), rate(10, 1000)];
    setup.cost.sync = Duration::from_nanos(100);
    setup.cost.copy_rate = 1e12;
    setup.chunk_rows = 512;
    setup
}

fn shapes() -> Vec<ChunkShape> {
    let prefills = [1, 7, 64, 512].map(prefill);
    let later = ChunkShape { context: 512, selected: 0, ..prefill(512) };
    prefills.into_iter().chain([later, decode(1), decode(8)]).collect()
}

/// The nodes that a strategy has on the GPU in any shape.
fn on_gpu(setup: &Setup, strategy: &dyn Strategy) -> BTreeSet<usize> {
    let mut nodes = BTreeSet::new();
    for shape in shapes() {
        let route = setup.route(strategy, shape).expect("a route");
        for stage in route.compute_stages() {
            if stage.parts.iter().any(|part| part.device.0 == 1) {
                nodes.extend(stage.nodes.clone());
            }
        }
    }
    nodes
}

fn auto() -> Auto {
    Auto::new(Strategies::builtin().candidates(&StrategyOptions::default()), 4)
}

#[test]
fn all_shapes_together_take_no_more_than_fits() {
    for model in ["qwen3moe", "gpt-oss", "llama", "gemma2", "glm4moe"] {
        for percent in [0, 3, 20, 50, 80, 99, 100] {
            let setup = setup(model, |graph| all(graph) * percent / 100);
            let room = setup.devices[1].room.as_ref().expect("a room").bytes;
            for strategy in [&AutoPlace::default() as &dyn Strategy, &auto()] {
                let nodes = on_gpu(&setup, strategy);
                let found = need(&setup.graph, nodes.iter().copied());
                assert!(found.bytes() <= room, "{model}, {percent} %: {found:?} in {room}");
                let name = strategy.name();
                assert!(
                    percent < 20 || found.bytes() > 0,
                    "{model}, {percent} %: {name} leaves it"
                );
            }
        }
    }
}

#[test]
fn keys_and_values_stay_on_one_device_if_not_everything_fits() {
    let setup = setup("qwen3moe", |graph| without_experts(graph) * 6 / 10);
    let mut found: Vec<BTreeSet<usize>> = Vec::new();
    for shape in shapes() {
        let route = setup.route(&AutoPlace::default(), shape).expect("a route");
        let stages = route.compute_stages().filter(|stage| setup.names(stage) == "gpu");
        let nodes = stages.flat_map(|stage| stage.nodes.clone());
        let attends = |node: &usize| matches!(setup.graph.nodes()[*node].op, Op::Attention(_));
        found.push(nodes.filter(attends).collect());
    }
    assert!(found.iter().all(|nodes| *nodes == found[0]), "{found:?}");
}

#[test]
fn experts_that_are_too_large_stay_on_the_cpu_and_attention_goes_to_the_gpu() {
    for model in ["qwen3moe", "gpt-oss"] {
        let setup = setup(model, without_experts);
        let route = setup.route(&AutoPlace::default(), prefill(512)).expect("a route");
        for stage in route.compute_stages() {
            for node in stage.nodes.clone() {
                let wanted = match setup.graph.nodes()[node].op {
                    Op::Attention(_) => "gpu",
                    Op::Experts(_) => "cpu",
                    _ => continue,
                };
                assert_eq!(setup.names(stage), wanted, "{model}: node {node}");
            }
        }
        let layers =
            setup.graph.nodes().iter().filter_map(|node| node.layer).max().expect("some") + 1;
        for said in [
            format!("'gpu' keeps attention of {layers} of {layers} layers"),
            format!("experts of 0 of {layers} layers"),
            "which bound the choice".to_owned(),
            "more than the least within the memory".to_owned(),
        ] {
            assert!(route.reason.contains(&said), "{model}: '{said}' in {}", route.reason);
        }
        let again = setup.route(&AutoPlace::default(), prefill(512)).expect("a route");
        assert_eq!(route, again);
    }
}

#[test]
fn what_does_not_fit_is_said_by_name_and_nothing_is_said_of_what_fits() {
    let small = setup("qwen3moe", without_experts);
    let error = small.route(&GpuOnly, prefill(64)).expect_err("too large");
    assert!(matches!(&error, PlanError::Memory { device, .. } if device == "gpu"), "{error}");
    assert!(error.to_string().contains("auto-place"), "{error}");
    let input = small.input();
    let explained = auto().explain_prompt(&input, 64, 0).expect("a winner");
    let of = |name: &str| {
        let found = explained.rated.iter().find(|rated| rated.strategy == name);
        &found.expect("is rated").outcome
    };
    assert!(matches!(of("gpu-only"), Err(PlanError::Memory { .. })));
    assert!(of("cpu-only").is_ok() && of("auto-place").is_ok());
    let large = setup("qwen3moe", all);
    let route = large.route(&AutoPlace::default(), prefill(64)).expect("a route");
    assert!(!route.reason.contains("keeps"), "{}", route.reason);
    let chunks = plan(&GpuOnly, &large.input(), Workload { prompt: 64, context: 0, in_flight: 1 });
    assert_eq!(chunks.expect("it fits").len(), 1);
}

#[test]
fn a_transfer_takes_the_time_of_the_link_in_predictions_and_in_models() {
    let setup = Setup::new("llama", "cpu gpu");
    let link = Link { gbps: 2.0, latency: Duration::from_micros(3) };
    let model = || RateModel::new(Arc::clone(&setup.graph), Rates::GPU).expect("rates");
    let linked: Arc<dyn TimeModel> = Arc::new(model().with_link(link).expect("a link"));
    // Each value is read and written: half of the bytes cross.
    let wanted = Duration::from_nanos(3000 + 4000 / 2 / 2);
    assert_eq!(linked.transfer_time(4000), wanted);
    assert_eq!(TimePerModel::new(Arc::clone(&linked), []).link_time(4000), Some(wanted));
    let mut cost = setup.cost.clone();
    cost.devices = vec![Arc::new(model()), linked];
    let time = |device| lapwing_plan::cost::CostModel::transfer_time(&cost, device, 4000);
    assert_eq!(time(lapwing_plan::DeviceId(1)), wanted);
    assert_eq!(time(lapwing_plan::DeviceId(0)), Duration::from_secs_f64(4000.0 / 1e9));
    assert!(model().with_link(Link { gbps: 0.0, ..link }).is_err());
    assert_eq!(setup.devices[1].kind, DeviceKind::Gpu);
}
