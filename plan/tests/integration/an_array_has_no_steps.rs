//! Matmul times on a systolic array have the published properties of such devices (HeteroLLM,
//! characteristics of the NPU): steps, and sensitivity to operand order and shape. Preparation time
//! grows with a graph.

use std::path::Path;
use std::time::Duration;

use lapwing_kernels::device::GraphKey;
use lapwing_kernels::graph::Graph;
use lapwing_kernels::model::Model;
use lapwing_kernels::op::Op;
use lapwing_kernels::part::OperandOrder::{Straight, Swapped};
use lapwing_kernels::part::Share;
use lapwing_kernels::weights::WeightFile;
use lapwing_plan::array::{GraphSize, Preparation, SystolicArray};
use proptest::prelude::*;

const ARRAY: SystolicArray = SystolicArray { size: 32, flops: 4.56e12, ratio_floor: 1.0 / 6.0 };

#[test]
fn streaming_a_tall_weight_is_six_times_faster_until_there_are_many_rows() {
    // [14336, 4096] × [4096, K] is six times as fast as [K, 4096] × [4096, 14336] (HeteroLLM, order
    // sensitivity of the NPU) while K is small enough to stay on the floor.
    for rows in [1, 32, 256, 672] {
        let shape = [rows, 4096, 14_336];
        let (slow, fast) = (ARRAY.matmul_time(shape, Straight), ARRAY.matmul_time(shape, Swapped));
        let gain = slow.as_secs_f64() / fast.as_secs_f64();
        assert!((gain - 6.0).abs() < 1e-3, "{rows} rows: {gain}");
        assert_eq!(ARRAY.faster_order(shape), Swapped);
    }
    // From square activations on, both orders reach the full rate.
    for rows in [4096, 5000] {
        let shape = [rows, 4096, 14_336];
        assert_eq!(ARRAY.streaming(shape, Straight).rate, 1.0);
        assert_eq!(ARRAY.matmul_time(shape, Straight), ARRAY.matmul_time(shape, Swapped));
        assert_eq!(ARRAY.faster_order(shape), Straight);
    }
}

#[test]
fn a_full_array_reaches_its_stated_rate() {
    let time = ARRAY.matmul_time([256, 4096, 28_672], Swapped).as_secs_f64();
    let rate = 2.0 * 256.0 * 4096.0 * 28_672.0 / time;
    assert!((rate / 4.56e12 - 1.0).abs() < 1e-6, "{rate:e}");
}

fn side() -> impl Strategy<Value = usize> {
    1usize..6000
}

proptest! {
    #[test]
    fn time_is_constant_on_a_step_and_rises_with_the_next(
        step in 0usize..60, k in side(), n in side(), within in 1usize..=32,
    ) {
        for order in [Straight, Swapped] {
            let time = |m| ARRAY.matmul_time([m, k, n], order);
            let full = time(32 * (step + 1));
            prop_assert_eq!(time(32 * step + within), full);
            let next = time(32 * (step + 1) + 1);
            // A cycle takes half a nanosecond, and both are rounded.
            prop_assert!(next + Duration::from_nanos(2) >= full);
            // Straight, the rate rises with the rows until it is full: a plateau of its own.
            let on_plateau = order == Straight && ARRAY.streaming([32 * step + 33, k, n], order).rate
                > ARRAY.ratio_floor;
            prop_assert!(on_plateau || next > full, "{:?} {:?}", full, next);
        }
    }

    #[test]
    fn larger_dimensions_never_reduce_cycles_and_dimensions_below_the_array_size_cost_the_same(
        m in side(), k in side(), n in side(), more in 1usize..200,
    ) {
        for order in [Straight, Swapped] {
            let cycles = |shape| ARRAY.streaming(shape, order).cycles;
            let base = cycles([m, k, n]);
            // One cycle for the rounding of each.
            prop_assert!(cycles([m + more, k, n]) + 1 >= base);
            prop_assert!(cycles([m, k + more, n]) + 1 >= base);
            prop_assert!(cycles([m, k, n + more]) + 1 >= base);
            prop_assert_eq!(cycles([m % 32 + 1, k, n]), cycles([32, k, n]));
            prop_assert_eq!(cycles([m, k % 32 + 1, n]), cycles([m, 32, n]));
            prop_assert_eq!(cycles([m, k, n % 32 + 1]), cycles([m, k, 32]));
        }
    }

    #[test]
    fn operand_orders_differ_by_shape_only_and_by_at_most_one_over_the_floor(
        m in side(), k in side(), n in side(),
    ) {
        let (straight, swapped) = (ARRAY.streaming([m, k, n], Straight), ARRAY.streaming([m, k, n], Swapped));
        prop_assert_eq!(straight.tiles * straight.rows, swapped.tiles * swapped.rows);
        prop_assert_eq!(ARRAY.streaming([n, k, m], Straight).cycles, swapped.cycles);
        let gain = straight.cycles as f64 / swapped.cycles as f64;
        prop_assert!((1.0 / 6.01..6.01).contains(&gain), "{}", gain);
        let faster = ARRAY.streaming([m, k, n], ARRAY.faster_order([m, k, n]));
        prop_assert_eq!(faster.cycles, straight.cycles.min(swapped.cycles));
    }

    #[test]
    fn preparing_grows_with_rows_and_weights(
        rows in 1u64..1024, weights in 0u64..1 << 28, more in 1u64..1 << 20,
    ) {
        let cost = Preparation::default();
        let time = |rows, weights| cost.time(GraphSize { rows, weights });
        prop_assert!(time(rows, weights) >= cost.fixed);
        prop_assert!(time(rows, weights + more) >= time(rows, weights));
        prop_assert!(time(rows + 1, weights) >= time(rows, weights));
        // Affine: equal steps of rows cost the same, to the nanosecond.
        let steps = [time(rows + 1, weights) - time(rows, weights), time(rows + 2, weights) - time(rows + 1, weights)];
        prop_assert!(steps[0].abs_diff(steps[1]).as_nanos() <= 2);
    }
}

#[test]
fn the_size_of_a_graph_counts_the_weights_of_its_matmuls() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny");
    for name in ["llama", "qwen2", "gemma2"] {
        let file = WeightFile::open(&folder.join(name).with_extension("gguf")).expect("a file");
        let graph: Graph = Model::from_weights(&file).expect("a model").graph;
        let is_gated = |op: &Op| matches!(op, Op::Gated(_));
        let gated = graph.nodes().iter().position(|node| is_gated(&node.op)).expect("one");
        let nodes = gated - 2..gated + 1;
        let matmuls = &graph.nodes()[nodes.clone()][..2];
        let weights = matmuls
            .iter()
            .map(|node| graph.value(node.inputs[0]).width * graph.value(node.output).width);
        let key = GraphKey {
            model: Default::default(),
            nodes,
            features: Share::WHOLE,
            rows: 96,
            order: Straight,
        };
        let want = GraphSize { rows: 96, weights: weights.sum::<usize>() as u64 };
        assert_eq!(GraphSize::of(&graph, &key), want, "{name}");
    }
}
