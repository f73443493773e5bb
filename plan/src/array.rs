//! Time model of a systolic array: cycles of a matmul and the time to prepare a static graph, as
//! pure functions of shapes.
//!
//! The array has `size` × `size` cells. One operand is *stationary*: its tiles of `size` × `size`
//! are loaded one after another. For each tile, the rows of the other operand, the *streamed* one,
//! pass through at one row per cycle (weight-stationary dataflow; HeteroLLM, characteristics of
//! the NPU). Hence:
//!
//! * Every dimension is padded to a multiple of `size`, so time is a step function:
//!   cycles = (K′ / size) · (S′ / size) · R′, for R′ streamed rows, K′ inner values and S′ rows of
//!   the stationary operand, all padded.
//! * The array is fast while many rows pass through each tile. If there are fewer streamed rows
//!   than streamed columns, it slows down by the ratio r = R′ / K′, but never below a floor:
//!   time = cycles / clamp(r, floor, 1).
//! * The order of the operands changes the time although the product is the same: with a few rows
//!   of activations and a tall weight, streaming the weight is up to 1 / floor times faster.

use std::time::Duration;

use lapwing_kernels::device::GraphKey;
use lapwing_kernels::graph::Graph;
use lapwing_kernels::op::Op;
use lapwing_kernels::part::OperandOrder;

/// A systolic array, or several arrays that work as one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SystolicArray {
    /// Cells along each side.
    pub size: usize,
    /// Floating-point operations per second while rows stream through full tiles; a multiply-add
    /// counts as two.
    pub flops: f64,
    /// Smallest fraction of that rate, however few rows are streamed.
    pub ratio_floor: f64,
}

impl Default for SystolicArray {
    /// 32 × 32 cells, 4.56 TFLOP/s and a floor of 1/6, derived from the operator times in Table 3
    /// of HeteroInfer (SOSP 2025).
    fn default() -> SystolicArray {
        SystolicArray { size: 32, flops: 4.56e12, ratio_floor: 1.0 / 6.0 }
    }
}

/// How a matmul x `[m, k]` · Wᵀ `[k, n]` is mapped onto an array. All counts are after padding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Streaming {
    /// Rows of the streamed operand.
    pub rows: u64,
    /// Columns of the streamed operand: the inner dimension.
    pub columns: u64,
    /// Stationary tiles; the streamed rows pass through each of them.
    pub tiles: u64,
    /// Fraction of the array's rate that is reached, `ratio_floor ..= 1`.
    pub rate: f64,
    /// Cycles, including the slow-down caused by the shape.
    pub cycles: u64,
}

impl SystolicArray {
    /// The mapping of x `[m, k]` · Wᵀ `[k, n]`: `m` rows of activations, `k` inner values, `n`
    /// output channels. There are no cycles if a dimension is zero.
    pub fn streaming(&self, [m, k, n]: [usize; 3], order: OperandOrder) -> Streaming {
        let size = self.size.max(1);
        let padded = |len: usize| len.next_multiple_of(size) as u64;
        let (streamed, stationary) = match order {
            OperandOrder::Straight => (padded(m), padded(n)),
            OperandOrder::Swapped => (padded(n), padded(m)),
        };
        let columns = padded(k);
        let size = size as u64;
        let tiles = (columns / size).saturating_mul(stationary / size);
        let ratio = if columns == 0 { 1.0 } else { streamed as f64 / columns as f64 };
        let rate = self.rate_at(ratio);
        let cycles = (tiles.saturating_mul(streamed) as f64 / rate).ceil() as u64;
        Streaming { rows: streamed, columns, tiles, rate, cycles }
    }

    /// Fraction of the full rate, `ratio_floor ..= 1`, for a streamed operand with `ratio` rows per
    /// column.
    pub fn rate_at(&self, ratio: f64) -> f64 {
        // `max` turns a NaN floor into a number.
        ratio.max(self.ratio_floor.max(f64::MIN_POSITIVE)).min(1.0)
    }

    /// Time of x `[m, k]` · Wᵀ `[k, n]`, without submission and without the time for memory
    /// traffic.
    pub fn matmul_time(&self, shape: [usize; 3], order: OperandOrder) -> Duration {
        let cells = (self.size.max(1) as f64).powi(2);
        let flops = self.streaming(shape, order).cycles as f64 * cells * 2.0;
        seconds(flops / self.flops)
    }

    /// The faster operand order for a shape; straight if both take the same time.
    pub fn faster_order(&self, shape: [usize; 3]) -> OperandOrder {
        let cycles = |order| self.streaming(shape, order).cycles;
        match cycles(OperandOrder::Swapped) < cycles(OperandOrder::Straight) {
            true => OperandOrder::Swapped,
            false => OperandOrder::Straight,
        }
    }
}

/// Sizes of a static graph that determine how long its preparation takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GraphSize {
    /// Rows.
    pub rows: u64,
    /// Weights of its matmuls, counting only the output channels that it computes.
    pub weights: u64,
}

impl GraphSize {
    /// Sizes of the graph with this key.
    ///
    /// # Panics
    /// If the model's graph has no such nodes.
    pub fn of(graph: &Graph, key: &GraphKey) -> GraphSize {
        let weights = graph.nodes()[key.nodes.clone()].iter().map(|node| match node.op {
            Op::MatMul { weight, .. } => {
                let features = key.features.of_width(graph.value(node.output).width);
                (features.len() * graph.weights()[weight.0].cols) as u64
            }
            _ => 0,
        });
        GraphSize { rows: key.rows as u64, weights: weights.sum() }
    }
}

/// Time to prepare a static graph: `fixed` + `per_row_weight` · rows · weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preparation {
    /// Time that every graph takes.
    pub fixed: Duration,
    /// Seconds per row and weight.
    pub per_row_weight: f64,
}

impl Default for Preparation {
    /// HeteroInfer prepares the four matmuls of a Llama-3-8B layer (218.1 M weights) at run time in
    /// 408.4 ms for 135 rows and in 2050 ms for 1000: 38.05 ms per graph and 8.70 ps per row and
    /// weight.
    fn default() -> Preparation {
        Preparation { fixed: Duration::from_micros(38_050), per_row_weight: 8.702e-12 }
    }
}

impl Preparation {
    /// No time at all.
    pub const FREE: Preparation = Preparation { fixed: Duration::ZERO, per_row_weight: 0.0 };

    /// Time to prepare one graph.
    pub fn time(&self, graph: GraphSize) -> Duration {
        let work = graph.rows as f64 * graph.weights as f64;
        self.fixed.saturating_add(seconds(self.per_row_weight * work))
    }
}

/// A time in seconds; the longest [`Duration`] if it does not fit or is not a number.
fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARRAY: SystolicArray = SystolicArray { size: 32, flops: 4.56e12, ratio_floor: 1.0 / 6.0 };

    #[test]
    fn ffn_down_is_slower_by_the_ratio_of_its_sides() {
        // N/K = 2/7 at 4.56 TFLOP/s is 1.30 TFLOP/s; 1.28 was measured (docs/simulation.md).
        let shape = [256, 14_336, 4096];
        let time = ARRAY.matmul_time(shape, OperandOrder::Swapped).as_secs_f64();
        let rate = 2.0 * 256.0 * 14_336.0 * 4096.0 / time;
        assert!((rate / 1.303e12 - 1.0).abs() < 1e-3, "{rate:e}");
    }

    #[test]
    fn four_graphs_of_a_layer_take_the_published_time() {
        for (rows, milliseconds) in [(135, 408.4), (1000, 2050.0)] {
            let weights = [6144 * 4096, 4096 * 4096, 28_672 * 4096, 4096 * 14_336];
            let graphs = weights.map(|weights| GraphSize { rows, weights });
            let total: Duration = graphs.map(|g| Preparation::default().time(g)).iter().sum();
            let error = total.as_secs_f64() * 1e3 / milliseconds - 1.0;
            assert!(error.abs() < 1e-3, "{rows} rows: {total:?}");
        }
    }

    #[test]
    fn impossible_rates_give_a_time_and_no_panic() {
        let odd = SystolicArray { size: 0, flops: 0.0, ratio_floor: f64::NAN };
        assert_eq!(odd.matmul_time([1, 1, 1], OperandOrder::Straight), Duration::MAX);
        assert_eq!(ARRAY.matmul_time([0, 64, 64], OperandOrder::Straight), Duration::ZERO);
    }
}
