//! What the graphs of a device with fixed scales share.

use std::collections::HashMap;
use std::sync::Arc;

use super::columns::Columns;
use super::counts::OutlierCounter;
use super::scales::Scales;
use lapwing_cpu::{Cpu, CpuDevice, Held, Pool, Weights};
use lapwing_model::device::DeviceError;
use lapwing_model::graph::{Graph, WeightId};
use lapwing_model::op::Op;

/// Scales, weights and threads of a device.
#[derive(Debug)]
pub(crate) struct Int8Parts {
    pub(super) device: String,
    /// Threads and kernels of the array.
    pub(super) cpu: Cpu,
    pub(super) weights: Arc<Weights>,
    pub(super) scales: Arc<Scales>,
    columns: HashMap<WeightId, Columns>,
    /// Two threads, the caller's included: one stands for the array, the other computes outliers.
    pub(super) beside: Pool,
    pub(super) counter: OutlierCounter,
}

impl Int8Parts {
    pub(crate) fn new(
        device: &str,
        engine: &CpuDevice,
        graph: &Graph,
        scales: Arc<Scales>,
    ) -> Int8Parts {
        let products = graph.nodes().iter().filter_map(|node| match node.op {
            Op::MatMul { weight, .. } => Some((weight, Columns::default())),
            _ => None,
        });
        Int8Parts {
            device: device.to_owned(),
            cpu: engine.cpu().clone(),
            weights: Arc::clone(engine.weights()),
            columns: products.collect(),
            beside: Pool::new(if scales.settings().outliers { 2 } else { 1 }),
            scales,
            counter: OutlierCounter::default(),
        }
    }

    /// The right to read the packed weights.
    pub(super) fn hold(&self) -> Result<Held<'_>, DeviceError> {
        self.weights.hold(&self.cpu).map_err(|lost| DeviceError::Failed {
            device: self.device.clone(),
            reason: lost.to_string(),
        })
    }

    /// The columns of a product's matrix.
    pub(super) fn columns(&self, matrix: WeightId) -> Option<&Columns> {
        self.columns.get(&matrix)
    }

    /// Bytes of the columns that are kept in f32.
    pub(crate) fn bytes(&self) -> u64 {
        self.columns.values().map(Columns::bytes).sum()
    }

    pub(crate) fn scales(&self) -> &Arc<Scales> {
        &self.scales
    }

    pub(crate) fn counter(&self) -> &OutlierCounter {
        &self.counter
    }
}
