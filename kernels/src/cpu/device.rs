//! The CPU as a [`Device`]: walks a stage's nodes, one op after another on the pool.

use std::sync::Arc;

use crate::cpu::{Cpu, Matrix, MatrixError, RopeAngles, RopeFreqs};
use crate::device::{Device, DeviceError, Slot, SlotPool, Tensor, Work};
use crate::graph::{Graph, ValueId, WeightId};
use crate::kv::KvStore;
use crate::op::{Op, RopePairs, RopeSpec};
use crate::reference::dequantize;
use crate::weights::{WeightFile, WeightTensor};

mod ops;

use ops::OpRun;

/// A CPU with a model's weights.
#[derive(Debug)]
pub struct CpuDevice {
    name: String,
    cpu: Cpu,
    graph: Arc<Graph>,
    weights: Vec<Bound>,
    ropes: Vec<(RopeFreqs, RopePairs)>,
    kv: Arc<KvStore>,
    slots: SlotPool,
    last_uses: Vec<Vec<ValueId>>,
}

/// A weight at hand: matrices stay where the file is mapped, vectors are small and copied.
#[derive(Debug)]
enum Bound {
    Matrix { tensor: WeightTensor, rows: usize, cols: usize },
    Vector(Vec<f32>),
}

/// Why a model's weights cannot be put on a device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// A tensor of the graph is not in the file.
    #[error(
        "tensor '{name}' is not in the weight file; use the file that the graph was built from"
    )]
    Missing {
        /// Tensor name.
        name: String,
    },
    /// A tensor has the wrong size.
    #[error("tensor '{name}': {source}")]
    Size {
        /// Tensor name.
        name: String,
        /// What is wrong.
        source: MatrixError,
    },
}

/// What a [`CpuDevice`] is made of.
#[derive(Debug)]
pub struct CpuDeviceParts {
    /// Its name in the engine.
    pub name: String,
    /// Threads and instruction set.
    pub cpu: Cpu,
    /// The model's ops.
    pub graph: Arc<Graph>,
    /// Keys and values, shared with the other devices of this address space.
    pub kv: Arc<KvStore>,
    /// Where its results lie, shared too.
    pub slots: SlotPool,
}

impl CpuDevice {
    /// Binds the graph's weights. Matrices are read where they are mapped.
    ///
    /// # Errors
    /// [`BindError`] when `file` is not the one that the graph was built from.
    pub fn new(parts: CpuDeviceParts, file: &WeightFile) -> Result<CpuDevice, BindError> {
        let CpuDeviceParts { name, cpu, graph, kv, slots } = parts;
        let vectors = vector_weights(&graph);
        let weights: Vec<Bound> = graph
            .weights()
            .iter()
            .enumerate()
            .map(|(id, spec)| {
                let tensor = file
                    .tensor(&spec.name)
                    .ok_or_else(|| BindError::Missing { name: spec.name.clone() })?;
                Matrix::new(spec.dtype, spec.rows, spec.cols, tensor.bytes())
                    .map_err(|source| BindError::Size { name: spec.name.clone(), source })?;
                Ok(if vectors.contains(&WeightId(id)) {
                    Bound::Vector(dequantize(spec.dtype, tensor.bytes()))
                } else {
                    Bound::Matrix { tensor, rows: spec.rows, cols: spec.cols }
                })
            })
            .collect::<Result<_, BindError>>()?;
        let ropes = graph.ropes().iter().map(|spec| bind_rope(spec, &weights)).collect();
        let last_uses = graph.last_uses();
        Ok(CpuDevice { name, cpu, graph, weights, ropes, kv, slots, last_uses })
    }

    /// The threads and instruction set in use.
    pub fn cpu(&self) -> &Cpu {
        &self.cpu
    }

    fn vector(&self, id: WeightId) -> &[f32] {
        match &self.weights[id.0] {
            Bound::Vector(values) => values,
            Bound::Matrix { .. } => unreachable!("weight {} is bound as a vector", id.0),
        }
    }

    fn matrix(&self, id: WeightId) -> Result<Matrix<'_>, DeviceError> {
        let spec = &self.graph.weights()[id.0];
        let Bound::Matrix { tensor, rows, cols } = &self.weights[id.0] else {
            unreachable!("weight {} is bound as a matrix", id.0)
        };
        Matrix::new(spec.dtype, *rows, *cols, tensor.bytes()).map_err(|error| DeviceError::Failed {
            device: self.name.clone(),
            reason: error.to_string(),
        })
    }
}

impl Device for CpuDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn threads(&self) -> usize {
        self.cpu.pool().threads()
    }

    fn run(&mut self, work: Work<'_>) -> Result<(), DeviceError> {
        self.run_shared(work)
    }
}

impl CpuDevice {
    /// As [`Device::run`], also for several threads at once: while one of them has the pool's
    /// threads, the others compute alone.
    ///
    /// # Errors
    /// As [`Device::run`].
    pub fn run_shared(&self, work: Work<'_>) -> Result<(), DeviceError> {
        let Work { nodes, part, batch, inputs, writes, outputs, observer, .. } = work;
        let positions = match &part.rows {
            Some(rows) => &batch.positions[rows.clone()],
            None => &batch.positions[..],
        };
        let uses_rope =
            self.graph.nodes()[nodes.clone()].iter().any(|n| matches!(n.op, Op::Rope { .. }));
        let angles: Vec<RopeAngles> = match uses_rope {
            true => self.ropes.iter().map(|(freqs, _)| freqs.angles(positions)).collect(),
            false => Vec::new(),
        };
        let first = nodes.start;
        let mut written: Vec<Option<Slot>> = Vec::with_capacity(nodes.len());
        for index in nodes {
            let node = &self.graph.nodes()[index];
            let run = OpRun {
                device: self,
                node,
                part,
                batch,
                angles: &angles,
                inputs,
                written: (first, &written),
            };
            let output = run.compute()?;
            written.push(Some(output));
            for dead in &self.last_uses[index] {
                if let Some(slot) = dead.0.checked_sub(first).and_then(|at| written.get_mut(at)) {
                    *slot = None;
                }
            }
            observer.node_done(index);
        }
        for &id in writes {
            if let Some(data) = written.get_mut(id.0 - first).and_then(Option::take) {
                let width = part.features.of_width(self.graph.value(id).width).len();
                outputs.put(id, Tensor { width, data });
            }
        }
        Ok(())
    }
}

/// Weights that are read as vectors of f32: norms, biases, rotary factors.
fn vector_weights(graph: &Graph) -> Vec<WeightId> {
    let of_nodes = graph.nodes().iter().filter_map(|node| match &node.op {
        Op::RmsNorm { weight, .. } => Some(*weight),
        Op::MatMul { bias, .. } => *bias,
        _ => None,
    });
    of_nodes.chain(graph.ropes().iter().filter_map(|r| r.factors)).collect()
}

fn bind_rope(spec: &RopeSpec, weights: &[Bound]) -> (RopeFreqs, RopePairs) {
    let factors = spec.factors.and_then(|id| match &weights[id.0] {
        Bound::Vector(values) => Some(values.as_slice()),
        Bound::Matrix { .. } => None,
    });
    (RopeFreqs::new(spec.base, spec.dims, spec.scaling, factors), spec.pairs)
}
