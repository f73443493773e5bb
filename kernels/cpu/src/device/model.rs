//! A model that is bound to a CPU: graph, weights and KV cache.

use std::sync::Arc;

use super::fusion_context::FusionContext;
use crate::context::Cpu;
use crate::embed::Table;
use crate::rope::RopeFreqs;
use crate::weights::{BindError, Held, Weights};
use lapwing_model::device::{DeviceError, SlotPool};
use lapwing_model::graph::{Graph, Node, ValueId, WeightId};
use lapwing_model::kv::KvStore;
use lapwing_model::op::{ExpertMatrix, Op, RopePairs, RopeSpec};
use lapwing_model::weights::WeightFile;

/// Parts of a [`CpuDevice`](crate::CpuDevice).
#[derive(Debug)]
pub struct CpuDeviceParts {
    /// Name of the device in the engine.
    pub name: String,
    /// Threads and instruction set.
    pub cpu: Cpu,
    /// The model's op graph.
    pub graph: Arc<Graph>,
    /// KV cache, shared with the other devices of this address space.
    pub kv: Arc<KvStore>,
    /// Memory of its results, shared too.
    pub slots: SlotPool,
}

/// A model that is bound to a CPU.
#[derive(Debug)]
pub(super) struct BoundModel {
    /// Name of the device.
    pub(super) name: String,
    pub(super) cpu: Cpu,
    pub(super) graph: Arc<Graph>,
    pub(super) weights: Arc<Weights>,
    /// Frequencies of each rotary embedding of the graph.
    pub(super) ropes: Vec<(RopeFreqs, RopePairs)>,
    pub(super) kv: Arc<KvStore>,
    pub(super) slots: SlotPool,
    /// As [`Graph::last_uses`].
    pub(super) last_uses: Vec<Vec<ValueId>>,
}

impl BoundModel {
    /// Binds the graph's weights from `file`.
    ///
    /// # Errors
    /// As [`Weights::of`].
    pub(super) fn new(parts: CpuDeviceParts, file: &WeightFile) -> Result<BoundModel, BindError> {
        let CpuDeviceParts { name, cpu, graph, kv, slots } = parts;
        let weights = Weights::of(&cpu, &graph, file)?;
        let ropes = graph.ropes().iter().map(|spec| bind_rope(spec, &weights)).collect();
        let last_uses = graph.last_uses();
        Ok(BoundModel { name, cpu, graph, weights, ropes, kv, slots, last_uses })
    }

    pub(super) fn context(&self) -> FusionContext<'_> {
        let BoundModel { graph, weights, last_uses, .. } = self;
        FusionContext { graph, weights, last_uses }
    }

    pub(super) fn table(&self, id: WeightId) -> Result<Table<'_>, DeviceError> {
        self.weights.table(id).map_err(|error| self.failed(error))
    }

    /// Bytes of packed weights that each node reads for a row, all rows of a matmul's matrix.
    pub(super) fn packed_bytes(&self) -> Vec<usize> {
        let of_expert = |matrix: &ExpertMatrix| {
            let packed = self.weights.packed(matrix.weight);
            packed.bytes() / packed.rows() * matrix.rows
        };
        let of = |node: &Node| match &node.op {
            Op::MatMul { weight, .. } => self.weights.packed(*weight).bytes(),
            Op::Experts(op) => op.used * op.matrices().map(of_expert).sum::<usize>(),
            _ => 0,
        };
        self.graph.nodes().iter().map(of).collect()
    }

    /// The right to read the weights.
    pub(super) fn hold(&self) -> Result<Held<'_>, DeviceError> {
        self.weights.hold(&self.cpu).map_err(|lost| self.failed(lost))
    }

    pub(super) fn failed(&self, error: impl std::error::Error) -> DeviceError {
        DeviceError::Failed { device: self.name.clone(), reason: error.to_string() }
    }
}

fn bind_rope(spec: &RopeSpec, weights: &Weights) -> (RopeFreqs, RopePairs) {
    let factors = spec.factors.map(|id| weights.vector(id));
    (RopeFreqs::new(spec.base, spec.dims, spec.scaling, factors), spec.pairs)
}
