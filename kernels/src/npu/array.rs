//! What matrix products cost on a systolic array, and what static graphs cost to prepare: pure
//! functions of shapes.
//!
//! The array has `size` × `size` cells. Of the two operands one is *stationary*: its tiles of
//! `size` × `size` are loaded one after another, and for each tile the rows of the other, the
//! *streamed* operand, pass through, one row per cycle (S2-14). Hence
//!
//! * every dimension is padded to a multiple of `size`, and time is a step function (S2-15):
//!   cycles = (K′ / size) · (S′ / size) · R′, for R′ streamed rows, K′ inner values and S′ rows of
//!   the stationary operand, all padded;
//! * the array is fast while many rows pass through each tile. Below one streamed row per streamed
//!   column it slows down by the ratio r = R′ / K′, but never below a floor (S2-17):
//!   time = cycles / clamp(r, floor, 1);
//! * the order of the operands matters although the product is the same (S2-16, S2-24): with a few
//!   rows of activations and a tall weight, streaming the weight is up to 1 / floor times faster.

use std::time::Duration;

use crate::device::GraphKey;
use crate::graph::Graph;
use crate::op::Op;
use crate::part::OperandOrder;

/// A systolic array, or several that work as one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Array {
    /// Cells along each side.
    pub size: usize,
    /// Floating-point operations per second while rows stream through full tiles; a multiply-add
    /// is two.
    pub flops: f64,
    /// Least share of that rate, however few rows are streamed.
    pub ratio_floor: f64,
}

impl Default for Array {
    /// 32 × 32, 4.56 TFLOP/s and a floor of 1/6: what HeteroInfer's operator times show
    /// (S2-16, S2-40).
    fn default() -> Array {
        Array { size: 32, flops: 4.56e12, ratio_floor: 1.0 / 6.0 }
    }
}

/// How a product x `[m, k]` · Wᵀ `[k, n]` lies on an array. All counts are after padding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Streaming {
    /// Rows of the streamed operand.
    pub rows: u64,
    /// Columns of the streamed operand: the inner dimension.
    pub columns: u64,
    /// Stationary tiles; the streamed rows pass through each of them.
    pub tiles: u64,
    /// Share of the array's rate that is reached, `ratio_floor ..= 1`.
    pub rate: f64,
    /// Cycles, the slow-down by the shape included.
    pub cycles: u64,
}

impl Array {
    /// How x `[m, k]` · Wᵀ `[k, n]` is computed: `m` rows of activations, `k` inner values, `n`
    /// output features. Nothing is computed where a dimension is zero.
    pub fn streaming(&self, [m, k, n]: [usize; 3], order: OperandOrder) -> Streaming {
        let size = self.size.max(1);
        let padded = |len: usize| len.next_multiple_of(size) as u64;
        let (streamed, still) = match order {
            OperandOrder::Straight => (padded(m), padded(n)),
            OperandOrder::Swapped => (padded(n), padded(m)),
        };
        let columns = padded(k);
        let size = size as u64;
        let tiles = (columns / size).saturating_mul(still / size);
        let ratio = if columns == 0 { 1.0 } else { streamed as f64 / columns as f64 };
        // A floor that is no number becomes one.
        let floor = self.ratio_floor.max(f64::MIN_POSITIVE);
        let rate = ratio.max(floor).min(1.0);
        let cycles = (tiles.saturating_mul(streamed) as f64 / rate).ceil() as u64;
        Streaming { rows: streamed, columns, tiles, rate, cycles }
    }

    /// Time of x `[m, k]` · Wᵀ `[k, n]`, without submission and without the time that memory
    /// needs.
    pub fn matmul_time(&self, shape: [usize; 3], order: OperandOrder) -> Duration {
        let cells = (self.size.max(1) as f64).powi(2);
        let flops = self.streaming(shape, order).cycles as f64 * cells * 2.0;
        seconds(flops / self.flops)
    }

    /// The faster order for a shape; the straight one where both take the same time.
    pub fn faster_order(&self, shape: [usize; 3]) -> OperandOrder {
        let cycles = |order| self.streaming(shape, order).cycles;
        match cycles(OperandOrder::Swapped) < cycles(OperandOrder::Straight) {
            true => OperandOrder::Swapped,
            false => OperandOrder::Straight,
        }
    }

    /// Rows that a graph computes when it is given `rows`.
    pub fn padded_rows(&self, rows: usize) -> usize {
        rows.next_multiple_of(self.size.max(1))
    }
}

/// Sizes of a static graph, as far as they set the cost of having it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GraphFacts {
    /// Rows.
    pub rows: u64,
    /// Weights of its matrices that its features need.
    pub weights: u64,
    /// Values per row that are handed in.
    pub inputs: u64,
    /// Values per row that are handed out.
    pub outputs: u64,
}

impl GraphFacts {
    /// Sizes of the graph that a key stands for.
    ///
    /// # Panics
    /// When the model's graph has no such nodes.
    pub fn of(graph: &Graph, key: &GraphKey) -> GraphFacts {
        let weights = graph.nodes()[key.nodes.clone()].iter().map(|node| match node.op {
            Op::MatMul { weight, .. } => {
                let features = key.features.of_width(graph.value(node.output).width);
                (features.len() * graph.weights()[weight.0].cols) as u64
            }
            _ => 0,
        });
        let weights = weights.sum();
        let inputs = graph.live_in(key.nodes.clone());
        let outputs = graph.writes(key.nodes.clone());
        let written = |width| key.features.of_width(width).len() as u64;
        GraphFacts {
            rows: key.rows as u64,
            weights,
            inputs: inputs.iter().map(|v| graph.value(*v).width as u64).sum(),
            outputs: outputs.iter().map(|v| written(graph.value(*v).width)).sum(),
        }
    }

    /// Bytes of the buffers that a graph has for itself: what is handed in and out, in f32.
    /// Weights are shared.
    pub fn buffer_bytes(&self) -> u64 {
        self.rows * (self.inputs + self.outputs) * size_of::<f32>() as u64
    }
}

/// Bytes that a graph keeps in software, and counts towards its device's budget: the buffers of
/// what is handed in and out, [`GraphFacts::buffer_bytes`]. Weights, and what lies between two
/// nodes, are shared and do not count.
///
/// # Panics
/// When the model's graph has no such nodes.
pub fn graph_bytes(graph: &Graph, key: &GraphKey) -> u64 {
    GraphFacts::of(graph, key).buffer_bytes()
}

/// What it takes to prepare a graph: time = `fixed` + `per_row_weight` · rows · weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preparation {
    /// Time of any graph.
    pub fixed: Duration,
    /// Seconds per row and weight.
    pub per_row_weight: f64,
}

impl Default for Preparation {
    /// HeteroInfer's online preparation of the four products of a Llama-3-8B layer (218.1 M
    /// weights) takes 408.4 ms for 135 rows and 2050 ms for 1000 (S2-49): 38.05 ms per graph and
    /// 8.70 ps per row and weight.
    fn default() -> Preparation {
        Preparation { fixed: Duration::from_micros(38_050), per_row_weight: 8.702e-12 }
    }
}

impl Preparation {
    /// No time at all.
    pub const FREE: Preparation = Preparation { fixed: Duration::ZERO, per_row_weight: 0.0 };

    /// Time to prepare one graph.
    pub fn time(&self, graph: GraphFacts) -> Duration {
        let work = graph.rows as f64 * graph.weights as f64;
        self.fixed.saturating_add(seconds(self.per_row_weight * work))
    }
}

/// A time in seconds; one that is too long for a [`Duration`], or no number, is the longest.
fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARRAY: Array = Array { size: 32, flops: 4.56e12, ratio_floor: 1.0 / 6.0 };

    #[test]
    fn ffn_down_is_slower_by_the_ratio_of_its_sides() {
        // N/K = 2/7 at 4.56 TFLOP/s is 1.30 TFLOP/s; 1.28 was measured (device model, 3.2).
        let shape = [256, 14_336, 4096];
        let time = ARRAY.matmul_time(shape, OperandOrder::Swapped).as_secs_f64();
        let rate = 2.0 * 256.0 * 14_336.0 * 4096.0 / time;
        assert!((rate / 1.303e12 - 1.0).abs() < 1e-3, "{rate:e}");
    }

    #[test]
    fn four_graphs_of_a_layer_take_what_was_published() {
        for (rows, milliseconds) in [(135, 408.4), (1000, 2050.0)] {
            let weights = [6144 * 4096, 4096 * 4096, 28_672 * 4096, 4096 * 14_336];
            let graphs = weights.map(|weights| GraphFacts { rows, weights, ..Default::default() });
            let total: Duration = graphs.map(|g| Preparation::default().time(g)).iter().sum();
            let error = total.as_secs_f64() * 1e3 / milliseconds - 1.0;
            assert!(error.abs() < 1e-3, "{rows} rows: {total:?}");
        }
    }

    #[test]
    fn impossible_rates_give_a_time_and_no_panic() {
        let odd = Array { size: 0, flops: 0.0, ratio_floor: f64::NAN };
        assert_eq!(odd.matmul_time([1, 1, 1], OperandOrder::Straight), Duration::MAX);
        assert_eq!(ARRAY.matmul_time([0, 64, 64], OperandOrder::Straight), Duration::ZERO);
    }
}
