//! The size of a systolic array, and what its graphs take.

use std::time::Duration;

use lapwing_kernels::npu::StaticInt8;

use crate::devices::micros;

/// A systolic array without its rates, which are in [`Pace`](crate::devices::Pace).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArraySettings {
    /// Cells along each side; dimensions are padded to multiples of it.
    pub array: usize,
    /// Smallest fraction of the rate that an unfavourable shape reaches, above 0 and at most 1.
    pub floor: f64,
    /// Fixed time to prepare a graph.
    pub prepare: Duration,
    /// Additional time to prepare a graph, per 10⁹ row-weights (rows × weights).
    pub prepare_gweight: Duration,
    /// Int8 activations with one fixed scale for each product's input, which needs measured
    /// [`ranges`](crate::ranges). By default products take the precision of the engine's
    /// [`activations`](crate::EngineBuilder::activations).
    pub int8: Option<StaticInt8>,
}

impl Default for ArraySettings {
    /// 32 × 32 cells, a floor of 1/6, and a preparation time in the proportions that HeteroLLM
    /// section 5 reports: 2 ms for a graph and 90 ms for each 10⁹ row-weights.
    fn default() -> ArraySettings {
        ArraySettings {
            array: 32,
            floor: 1.0 / 6.0,
            prepare: micros(2000),
            prepare_gweight: micros(90_000),
            int8: None,
        }
    }
}
