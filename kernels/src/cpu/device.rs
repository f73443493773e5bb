//! The CPU as a [`Device`]: walks a stage's nodes, one op after another on the pool.

use std::ops::Range;
use std::sync::Arc;

use crate::cpu::{
    AttentionJob, AttentionSpan, Cpu, Matrix, MatrixError, RopeAngles, RopeFreqs, RopeShape, add,
    attention, embed_rows, gated, matmul, rms_norm, rope, soft_cap,
};
use crate::device::{Batch, Device, DeviceError, Tensor, TensorSet, Work};
use crate::graph::{Graph, Node, RowSet, ValueId, WeightId};
use crate::kv::KvStore;
use crate::op::{AttentionOp, Op, RopePairs, RopeSpec};
use crate::reference::dequantize;
use crate::weights::{WeightFile, WeightTensor};

/// A CPU with a model's weights and its KV cache.
#[derive(Debug)]
pub struct CpuDevice {
    cpu: Cpu,
    graph: Arc<Graph>,
    weights: Vec<Bound>,
    ropes: Vec<(RopeFreqs, RopePairs)>,
    kv: KvStore,
    /// Values that nothing reads any more; their memory is used again.
    spare: Vec<Vec<f32>>,
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

impl CpuDevice {
    /// Binds the graph's weights. Matrices are read where they are mapped.
    ///
    /// # Errors
    /// [`BindError`] when `file` is not the one that the graph was built from.
    pub fn new(
        cpu: Cpu,
        graph: Arc<Graph>,
        file: &WeightFile,
        kv: KvStore,
    ) -> Result<CpuDevice, BindError> {
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
        Ok(CpuDevice { cpu, graph, weights, ropes, kv, spare: Vec::new(), last_uses })
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
            device: "cpu".to_owned(),
            reason: error.to_string(),
        })
    }
}

impl Device for CpuDevice {
    fn name(&self) -> &str {
        "cpu"
    }

    fn run(&mut self, work: Work<'_>) -> Result<(), DeviceError> {
        let Work { nodes, batch, tensors, observer } = work;
        let graph = Arc::clone(&self.graph);
        let angles: Vec<RopeAngles> =
            self.ropes.iter().map(|(freqs, _)| freqs.angles(&batch.positions)).collect();
        let mut values: Vec<Option<Vec<f32>>> = vec![None; graph.value_count()];
        take_in(&graph, nodes.clone(), tensors, &mut values)?;
        let live_out = graph.live_out(nodes.clone());
        for index in nodes {
            let node = &graph.nodes()[index];
            let step = Step { node, batch, angles: &angles, values: &values };
            let output = self.compute(&step)?;
            values[node.output.0] = Some(output);
            for position in 0..self.last_uses[index].len() {
                let dead = self.last_uses[index][position];
                if let Some(memory) = values[dead.0].take() {
                    self.keep(memory);
                }
            }
            observer.node_done(index);
        }
        for id in live_out {
            if let Some(data) = values[id.0].take() {
                tensors.put(id, Tensor { width: graph.value(id).width, data });
            }
        }
        values.into_iter().flatten().for_each(|memory| self.keep(memory));
        Ok(())
    }

    fn recycle(&mut self, tensor: Tensor) {
        self.keep(tensor.data);
    }
}

/// What one node computes from.
struct Step<'a> {
    node: &'a Node,
    batch: &'a Batch,
    angles: &'a [RopeAngles],
    values: &'a [Option<Vec<f32>>],
}

impl Step<'_> {
    fn input(&self, index: usize) -> Result<&[f32], DeviceError> {
        let id = self.node.inputs[index];
        self.values[id.0]
            .as_deref()
            .ok_or(DeviceError::MissingValue { value: id.0, role: self.node.role })
    }
}

impl CpuDevice {
    /// Keeps memory to be used again; the smallest goes when there is more than any graph needs.
    fn keep(&mut self, memory: Vec<f32>) {
        const SPARE_MAX: usize = 16;
        self.spare.push(memory);
        if self.spare.len() > SPARE_MAX
            && let Some(least) = (0..self.spare.len()).min_by_key(|i| self.spare[*i].capacity())
        {
            self.spare.swap_remove(least);
        }
    }

    /// Memory for `len` values; their content is whatever it was.
    fn memory(&mut self, len: usize) -> Vec<f32> {
        let best = (0..self.spare.len())
            .filter(|i| self.spare[*i].capacity() >= len)
            .min_by_key(|i| self.spare[*i].capacity());
        let mut memory = match best {
            Some(at) => self.spare.swap_remove(at),
            None => self.spare.pop().unwrap_or_default(),
        };
        memory.resize(len, 0.0);
        memory
    }

    fn compute(&mut self, step: &Step<'_>) -> Result<Vec<f32>, DeviceError> {
        let spec = self.graph.value(step.node.output);
        let rows = match spec.rows {
            RowSet::All => step.batch.rows(),
            RowSet::Selected => step.batch.selected.len(),
        };
        let mut out = self.memory(rows * spec.width);
        match &step.node.op {
            Op::Embed { table, scale } => {
                let table = self.matrix(*table)?;
                embed_rows(&self.cpu, &table, &step.batch.ids, *scale, &mut out).map_err(
                    |crate::cpu::EmbedError::Id { id, rows }| DeviceError::TokenId {
                        id,
                        vocab: rows,
                    },
                )?;
            }
            Op::RmsNorm { weight, eps } => {
                rms_norm(&self.cpu, step.input(0)?, self.vector(*weight), *eps, &mut out);
            }
            Op::MatMul { weight, bias } => {
                let bias = bias.map(|b| self.vector(b));
                matmul(&self.cpu, &self.matrix(*weight)?, step.input(0)?, bias, &mut out);
            }
            Op::Rope { heads, rope: index } => {
                out.copy_from_slice(step.input(0)?);
                let pairs = self.ropes[*index].1;
                let shape = RopeShape { heads: *heads, head_dim: spec.width / heads, pairs };
                rope(&self.cpu, &mut out, shape, &step.angles[*index]);
            }
            Op::Attention(op) => self.attend(op, step, &mut out)?,
            Op::Gated(activation) => {
                gated(&self.cpu, *activation, step.input(0)?, step.input(1)?, &mut out);
            }
            Op::Add => add(&self.cpu, step.input(0)?, step.input(1)?, &mut out),
            Op::SelectRows => {
                let (x, width) = (step.input(0)?, spec.width);
                for (out, row) in out.chunks_exact_mut(width).zip(&step.batch.selected) {
                    out.copy_from_slice(&x[row * width..(row + 1) * width]);
                }
            }
            Op::SoftCap { cap } => {
                out.copy_from_slice(step.input(0)?);
                soft_cap(&self.cpu, &mut out, *cap);
            }
        }
        Ok(out)
    }

    fn attend(
        &mut self,
        op: &AttentionOp,
        step: &Step<'_>,
        out: &mut [f32],
    ) -> Result<(), DeviceError> {
        let (q, k, v) = (step.input(0)?, step.input(1)?, step.input(2)?);
        let layout = *self.kv.layout();
        let width = layout.kv_heads * layout.head_dim;
        let mut spans = Vec::with_capacity(step.batch.spans.len());
        for span in &step.batch.spans {
            let values = span.rows.start * width..span.rows.end * width;
            let rows = (&k[values.clone()], &v[values]);
            self.kv.write(op.layer, &span.pages, span.start, rows);
            spans.push(AttentionSpan {
                rows: span.rows.clone(),
                start_pos: span.start,
                pages: &span.pages,
            });
        }
        let job = AttentionJob {
            kv: &self.kv,
            layer: op.layer,
            q,
            spans: &spans,
            heads: q.len() / step.batch.rows() / layout.head_dim,
            scale: op.scale,
            window: op.window,
            soft_cap: op.soft_cap,
        };
        attention(&self.cpu, &job, out);
        Ok(())
    }
}

fn take_in(
    graph: &Graph,
    nodes: Range<usize>,
    tensors: &mut TensorSet,
    values: &mut [Option<Vec<f32>>],
) -> Result<(), DeviceError> {
    for id in graph.live_in(nodes.clone()) {
        let tensor = tensors.take(id).ok_or_else(|| {
            let reader = graph.nodes()[nodes.clone()].iter().find(|n| n.inputs.contains(&id));
            DeviceError::MissingValue { value: id.0, role: reader.map_or("", |n| n.role) }
        })?;
        values[id.0] = Some(tensor.data);
    }
    Ok(())
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
