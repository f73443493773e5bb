//! Measures the magnitudes of a model's activations at its products.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ranges::{ActivationRange, ActivationRanges};
use crate::model_weights::ModelWeights;
use lapwing_cpu::{BindError, Cpu, CpuDevice, CpuDeviceParts};
use lapwing_model::device::{Batch, DeviceError, Prepare, SlotPool, StageRun, Tensor, TensorSet};
use lapwing_model::graph::{Graph, ValueId};
use lapwing_model::kv::{KvLayout, KvLease, KvPool, KvStore, KvTooLarge};
use lapwing_model::op::Op;
use lapwing_model::part::Part;
use lapwing_model::weights::WeightFile;

/// Why ranges cannot be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureRangesError {
    /// The weights cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The keys and values of a window do not fit in memory.
    #[error(transparent)]
    Memory(#[from] KvTooLarge),
    /// An op fails.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A window is longer than said.
    #[error("a window has {tokens} tokens, but at most {most} were announced")]
    Window {
        /// Tokens of the window.
        tokens: usize,
        /// The most.
        most: usize,
    },
    /// An activation overflows.
    #[error(
        "the input or output of the product with '{matrix}' has a value that is not a finite number; measure with another text, or check the model"
    )]
    NotFinite {
        /// Name of the matrix.
        matrix: String,
    },
}

/// Rows of the last product that are computed at a time: its output is as wide as the vocabulary.
const LAST_ROWS: usize = 64;

/// Runs a model on the CPU, op by op, and records the inputs and outputs of its products.
#[derive(Debug)]
pub struct RangeRecorder {
    device: CpuDevice,
    graph: Arc<Graph>,
    weights: ModelWeights,
    lease: KvLease,
    window: usize,
    /// One past the last product: nothing is measured behind it.
    end: usize,
    products: BTreeMap<String, ActivationRange>,
    rows: u64,
}

impl RangeRecorder {
    /// Binds a model. Windows have at most `window` tokens, and keys and values the layout `layout`.
    ///
    /// # Errors
    /// [`MeasureRangesError`] if there is not enough memory, or `graph` was not built from `file`.
    pub fn new(
        cpu: Cpu,
        graph: &Arc<Graph>,
        file: &WeightFile,
        layout: KvLayout,
        window: usize,
    ) -> Result<RangeRecorder, MeasureRangesError> {
        let pages = u32::try_from(window.div_ceil(layout.page_rows)).unwrap_or(u32::MAX);
        let mut lease = KvLease::default();
        let kv = Arc::new(KvStore::new(layout.clone(), pages)?);
        let granted = lease.grow(&KvPool::new(pages), &layout, window);
        granted.map_err(|_| MeasureRangesError::Window { tokens: window, most: 0 })?;
        let (name, slots) = ("ranges".to_owned(), SlotPool::default());
        let parts = CpuDeviceParts { name, cpu, graph: Arc::clone(graph), kv, slots };
        let device = CpuDevice::new(parts, file)?;
        let is_product = |op: &Op| matches!(op, Op::MatMul { .. });
        let last = graph.nodes().iter().rposition(|node| is_product(&node.op));
        let end = last.map_or(0, |last| last + 1);
        let weights = ModelWeights::new("ranges", graph, file);
        let (graph, products) = (Arc::clone(graph), BTreeMap::new());
        Ok(RangeRecorder { device, graph, weights, lease, window, end, products, rows: 0 })
    }

    /// Runs the tokens of a window, which starts with an empty context, and records all of its rows.
    ///
    /// # Errors
    /// [`MeasureRangesError`] if an op fails or an activation is not finite.
    pub fn add(&mut self, ids: &[u32]) -> Result<(), MeasureRangesError> {
        if ids.len() > self.window {
            return Err(MeasureRangesError::Window { tokens: ids.len(), most: self.window });
        }
        let mut batch = Batch::default();
        batch.push(ids, 0, self.lease.page_ids().to_vec(), 0..ids.len());
        let mut values = TensorSet::default();
        for at in 0..self.end {
            self.record_input(at, &values)?;
            if at + 1 == self.end {
                self.run_last(at, ids, &values)?;
                break;
            }
            let outputs = self.run(at, &batch, &values)?;
            self.record_output(at, &outputs)?;
            values.keep(&self.graph.live_out(at..at + 1));
            values.append(outputs);
        }
        self.rows += ids.len() as u64;
        Ok(())
    }

    /// The ranges of everything recorded.
    pub fn finish(self) -> ActivationRanges {
        ActivationRanges::new(self.products, self.rows)
    }

    /// Records the input of a node, if the node is a product.
    fn record_input(&mut self, at: usize, values: &TensorSet) -> Result<(), MeasureRangesError> {
        let node = &self.graph.nodes()[at];
        let Op::MatMul { weight, .. } = node.op else { return Ok(()) };
        let spec = &self.graph.weights()[weight.0];
        let x = host(values, node.inputs[0], node.role)?;
        let product = self.products.entry(spec.name.clone());
        match product.or_insert_with(|| ActivationRange::new(spec.cols)).add(x) {
            true => Ok(()),
            false => Err(MeasureRangesError::NotFinite { matrix: spec.name.clone() }),
        }
    }

    /// Records the output of a node, if the node is a product.
    fn record_output(&mut self, at: usize, values: &TensorSet) -> Result<(), MeasureRangesError> {
        let node = &self.graph.nodes()[at];
        let Op::MatMul { weight, bias } = node.op else { return Ok(()) };
        let spec = &self.graph.weights()[weight.0];
        let y = host(values, node.output, node.role)?;
        let bias = match bias {
            Some(bias) => self.weights.vector(bias)?,
            None => vec![0.0],
        };
        let product = self.products.entry(spec.name.clone());
        let product = product.or_insert_with(|| ActivationRange::new(spec.cols));
        match product.add_output(y.iter().zip(bias.iter().cycle()).map(|(y, bias)| y - bias)) {
            true => Ok(()),
            false => Err(MeasureRangesError::NotFinite { matrix: spec.name.clone() }),
        }
    }

    /// Runs the last product on a few rows at a time, and records its output.
    fn run_last(
        &mut self,
        at: usize,
        ids: &[u32],
        values: &TensorSet,
    ) -> Result<(), MeasureRangesError> {
        let node = &self.graph.nodes()[at];
        let (value, role) = (node.inputs[0], node.role);
        let width = self.graph.value(value).width.max(1);
        let x = host(values, value, role)?;
        for (ids, x) in ids.chunks(LAST_ROWS).zip(x.chunks(LAST_ROWS * width)) {
            let mut batch = Batch::default();
            batch.push(ids, 0, Vec::new(), 0..ids.len());
            let mut inputs = TensorSet::default();
            inputs.put(value, Tensor::new(width, x.to_vec()));
            let outputs = self.run(at, &batch, &inputs)?;
            self.record_output(at, &outputs)?;
        }
        Ok(())
    }

    /// The outputs of a node.
    fn run(&self, at: usize, batch: &Batch, inputs: &TensorSet) -> Result<TensorSet, DeviceError> {
        let mut outputs = TensorSet::default();
        self.device.run_shared(StageRun {
            nodes: at..at + 1,
            part: &Part::WHOLE,
            prepare: Prepare::Ahead,
            batch,
            inputs,
            writes: &self.graph.writes(at..at + 1),
            outputs: &mut outputs,
            observer: &mut (),
        })?;
        Ok(outputs)
    }
}

/// The values of a node's input or output, in host memory.
fn host<'a>(
    values: &'a TensorSet,
    value: ValueId,
    role: &'static str,
) -> Result<&'a [f32], DeviceError> {
    let missing = DeviceError::MissingValue { value: value.0, role };
    values.get(value).and_then(|x| x.host()).ok_or(missing)
}
