//! Experts on modelled processors.

use std::sync::Arc;

use lapwing_kernels::device::DeviceKind;
use lapwing_kernels::op::Op;
use lapwing_kernels::part::Part;
use lapwing_plan::place::{Placed, Places};
use lapwing_plan::soc::{Soc, SyncMode, WeightBits, Workload};
use lapwing_plan::strategy::{ChunkShape, CpuOnly, OrderSwap};
use lapwing_plan::time::Job;

use crate::setup::Setup;
use crate::support::{graph, prefill};

const MODELS: [&str; 4] = ["qwen3moe", "gpt-oss", "llama4", "deepseek2"];

/// The time of the experts of the first layer that has some, in ns, on a GPU with these numbers, and of its law: for two kernels
/// min(2·c0 + d·W + F / F_g, W·b/8 / B_g + [rows of an expert > 1] F / F_s) with W weights that are touched and F operations.
fn times(model: &str, rows: usize, bits: f64) -> (f64, f64) {
    let graph = graph(model);
    let mut soc = Soc::preset("sd8gen3").expect("a preset");
    soc.set("gpu.kernel", 3.0).expect("a number");
    let workload = Workload { graph: Arc::clone(&graph), bits: WeightBits::Fixed(bits) };
    let times = soc.times(&[DeviceKind::Gpu], &workload, SyncMode::Fast);
    let is_experts = |node: usize| matches!(graph.nodes()[node].op, Op::Experts(_));
    let node = (0..graph.nodes().len()).find(|node| is_experts(*node)).expect("experts");
    // The last layer computes selected rows only, and may be the first with experts.
    let batch = ChunkShape { selected: rows, ..prefill(rows) }.batch();
    let (first, end) = (node, node + 1);
    let part = Part::WHOLE;
    let job = Job::alone(first..end, &part, &batch);
    let found = times[0].node_time(&job, node).as_nanos() as f64;

    let Op::Experts(op) = &graph.nodes()[node].op else { panic!("experts") };
    let one: usize = op.matrices().map(|m| m.rows * graph.weights()[m.weight.0].cols).sum();
    let (count, used) = (op.count as f64, op.used as f64);
    let touched = count * (1.0 - (1.0 - used / count).powi(rows as i32));
    let (weights, of) = (touched * one as f64, |path| soc.value(path).expect("a number"));
    let flops = graph.part_cost(node, &Part::WHOLE, &batch).flops as f64 * 1e-3;
    let gemm =
        2.0 * of("gpu.kernel") * 1e3 + of("gpu.weight_time") * weights + flops / of("gpu.rate");
    let compute = flops / of("gpu.small_rate");
    let many = (rows as f64 * used / touched).round() > 1.0;
    let gemv = weights * bits / 8.0 / of("gpu.bandwidth") + if many { compute } else { 0.0 };
    (found, gemm.min(gemv))
}

#[test]
fn experts_follow_the_law_of_matmuls_with_the_weights_that_are_touched() {
    for model in MODELS {
        for rows in [1, 2, 7, 64, 500] {
            for bits in [4.0, 8.0] {
                let (found, law) = times(model, rows, bits);
                // Whole bytes are counted of weights that are touched on average.
                let near = (found - law).abs() <= 2e-2 * law + 1.0;
                assert!(near, "{model}, {rows} rows, {bits} bits: {found} instead of {law}");
            }
        }
    }
}

#[test]
fn an_npu_names_the_ops_of_experts_that_it_cannot_run() {
    for model in MODELS {
        let setup = Setup::new(model, "cpu npu");
        let places = Places::parse(["layers.*.experts=npu"]).expect("placements");
        let placed = Placed { inner: Arc::new(CpuOnly), places, order_swap: OrderSwap::On };
        let error = setup.route(&placed, prefill(32)).expect_err("no kernels").to_string();
        for op in ["experts.choose", "experts.compute", "experts.mix"] {
            assert!(error.contains(op) && error.contains("'npu'"), "{model}: {error}");
        }
    }
}

#[test]
fn cpus_and_gpus_without_a_driver_of_their_own_run_experts() {
    for names in ["cpu gpu", "gpu npu", "cpu npu"] {
        let setup = Setup::new("qwen3moe", names);
        for info in &setup.devices {
            let runs = setup.graph.nodes().iter().all(|node| info.runs(&node.op));
            assert_eq!(runs, info.kind != DeviceKind::Npu, "{}", info.name);
        }
    }
}
