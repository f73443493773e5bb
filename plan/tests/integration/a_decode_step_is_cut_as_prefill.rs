//! Row cuts of decode steps, which are bound by memory bandwidth, and of prefill, which is not.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::graph::{Graph, Node};
use lapwing_kernels::npu::BUCKETS;
use lapwing_plan::Stage;
use lapwing_plan::strategy::{OrderSwap, RowCut, StrategyOptions, by_name};
use lapwing_plan::time::{Job, TimeModel};

use crate::setup::{Setup, decode};
use crate::support::prefill;

/// The roofline of a rate of computation, in units of 100 GFLOP/s, and one of reading and writing.
struct Roofline {
    graph: Arc<Graph>,
    hundred_gigaflops: f64,
    gigabytes: f64,
}

impl TimeModel for Roofline {
    fn overhead(&self, _job: &Job<'_>) -> Duration {
        Duration::ZERO
    }

    fn node_time(&self, job: &Job<'_>, node: usize) -> Duration {
        let cost = self.graph.part_cost(node, job.part, job.batch);
        let (flops, bytes) = (cost.flops as f64, cost.bytes as f64);
        Duration::from_nanos(
            (flops / self.hundred_gigaflops / 100.0).max(bytes / self.gigabytes) as u64
        )
    }
}

/// A GPU and an NPU that computes three times as fast, with these bandwidths.
fn setup(gigabytes: [f64; 2]) -> Setup {
    let mut setup = Setup::new("llama", "gpu npu");
    setup.devices[1].sizes = BUCKETS.to_vec();
    let rates = [1.0, 3.0].into_iter().zip(gigabytes);
    let models = rates.map(|(hundred_gigaflops, gigabytes)| -> Arc<dyn TimeModel> {
        Arc::new(Roofline { graph: Arc::clone(&setup.graph), hundred_gigaflops, gigabytes })
    });
    setup.cost.devices = models.collect();
    setup
}

/// Devices whose order by computation is not their order by memory bandwidth.
#[test]
fn row_cut_divides_decode_by_memory_bandwidth_and_prefill_by_computation() {
    let is_gate = |node: &Node| node.role == "ffn_gate";
    // The 96 output channels of gate and up are three units of 32: those of the NPU.
    let channels = |gigabytes: [f64; 2], ratio: Option<&str>, shape| {
        let setup = setup(gigabytes);
        let ratio = ratio.map(|ratio| ratio.parse().expect("a ratio"));
        let route = setup.route(&RowCut { ratio, order_swap: OrderSwap::On }, shape);
        let route = route.expect("a route");
        let nodes = setup.graph.nodes();
        let has_gate = |stage: &&Stage| nodes[stage.nodes.clone()].iter().any(is_gate);
        let stage = route.compute_stages().find(has_gate).expect("a stage");
        let parts = stage.parts.iter().filter(|part| part.device.0 == 1);
        parts.map(|part| part.part.features.of_width(96).len()).sum::<usize>()
    };
    for (gigabytes, expected) in [([2.0, 1.0], 32), ([1.0, 2.0], 64), ([100.0, 1.0], 0)] {
        assert_eq!(channels(gigabytes, None, decode(1)), expected, "{gigabytes:?} GB/s");
        assert_eq!(channels(gigabytes, Some("2:1"), decode(1)), 64, "a given ratio is kept");
        // Three quarters are rounded up to three units of 32.
        assert_eq!(channels(gigabytes, None, prefill(256)), 96, "prefill is bound by computation");
    }
}

#[test]
fn the_default_strategy_cuts_a_decode_step_only_where_that_is_faster() {
    let options = StrategyOptions::default();
    for (gigabytes, sync, cuts) in [
        // Two equal devices take half as long as one, if synchronisation is free.
        ([0.1, 0.1], 0, true),
        ([0.1, 0.1], 10_000, false),
        ([100.0, 0.1], 0, false),
    ] {
        let mut setup = setup(gigabytes);
        setup.cost.sync = Duration::from_micros(sync);
        setup.cost.copy_rate = 1e12;
        let auto = by_name("auto", &options).expect("is known");
        let route = setup.route(&*auto, decode(1)).expect("a route");
        assert_eq!(!Setup::cuts(&route).is_empty(), cuts, "{}", route.reason);
        let names: Vec<String> = route.compute_stages().map(|stage| setup.names(stage)).collect();
        assert!(cuts || names == ["gpu"], "{names:?}: {}", route.reason);
        assert!(cuts || route.reason.starts_with("gpu-only (predicted"), "{}", route.reason);
    }
}
