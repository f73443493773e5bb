//! The model that runs on a system, and how its processors synchronise.

use std::sync::Arc;

use lapwing_kernels::graph::Graph;

use crate::time::Job;
use crate::work::NodeWork;

/// How processors synchronise with each other (HeteroLLM, arXiv 2501.14794).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SyncMode {
    /// Fast synchronisation: the waiting processor polls a flag beside the output tensor, and the next
    /// kernel is already queued.
    #[default]
    Fast,
    /// The queue is drained (`clFinish`), and the next submission finds it empty.
    Slow,
}

/// Size of a weight in memory, in bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WeightBits {
    /// A fixed number, whatever the storage format in the graph.
    Fixed(f64),
    /// That of the storage format in the graph.
    Stored,
}

impl Default for WeightBits {
    /// 4 bits: the W4A16 quantisation of HeteroLLM.
    fn default() -> WeightBits {
        WeightBits::Fixed(4.0)
    }
}

/// The model that runs on a system.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The model's ops.
    pub graph: Arc<Graph>,
    /// Size of the weights in memory.
    pub bits: WeightBits,
}

impl Workload {
    /// What a device computes and moves for a node of a job, with weights of the workload's size.
    ///
    /// # Panics
    /// If the node does not exist.
    pub fn work(&self, job: &Job<'_>, node: usize) -> NodeWork {
        let work = NodeWork::of(&self.graph, job, node);
        let stored = self.stored_bits(node);
        match self.bits {
            WeightBits::Fixed(bits) if stored > 0.0 => {
                NodeWork { weight_bytes: work.weight_bytes * bits / stored, ..work }
            }
            WeightBits::Fixed(_) | WeightBits::Stored => work,
        }
    }

    /// Bits of a weight of a matmul or of experts, as stored; 0 for other nodes.
    fn stored_bits(&self, node: usize) -> f64 {
        let weights = self.graph.nodes()[node].op.matrices();
        let sums = weights.iter().fold([0.0, 0.0], |[bytes, values], id| {
            let spec = &self.graph.weights()[id.0];
            let row = spec.dtype.row_bytes(spec.cols).unwrap_or(0);
            [bytes + (row * spec.rows) as f64, values + (spec.cols * spec.rows) as f64]
        });
        8.0 * sums[0] / sums[1].max(1.0)
    }
}
