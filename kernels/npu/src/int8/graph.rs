//! A prepared graph that runs its nodes one after another, with int8 products of fixed scales.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::parts::Int8Parts;
use super::product::{Product, ProductScratch};
use crate::backend::PreparedGraph;
use crate::spec::{GraphSpec, Operand, Source};
use lapwing_cpu::{add, gated, rms_norm, scale, scale_by, soft_cap};
use lapwing_model::device::{DeviceError, Observer};
use lapwing_model::op::Op;

/// A prepared graph: buffers of all its values.
#[derive(Debug)]
pub(crate) struct Int8Graph {
    parts: Arc<Int8Parts>,
    spec: GraphSpec,
    /// The products among the nodes.
    products: Vec<Option<Product>>,
    /// `[rows][width]` of each port.
    inputs: Vec<Vec<f32>>,
    /// `[rows][features]` of each node.
    values: Vec<Vec<f32>>,
    scratch: ProductScratch,
    /// The first run is the check of the graph, which is not counted.
    is_checked: bool,
}

impl Int8Graph {
    /// Prepares a graph: reads the columns of the channels in which outliers are expected.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] if a product has no scale; [`DeviceError::Failed`] if the packed weights are lost.
    pub(crate) fn new(parts: &Arc<Int8Parts>, spec: &GraphSpec) -> Result<Int8Graph, DeviceError> {
        let rows = spec.key.rows;
        let products = spec.nodes.iter().map(|node| {
            let Op::MatMul { weight: matrix, bias } = node.op else { return Ok(None) };
            let unsupported = || DeviceError::Unsupported {
                device: parts.device.clone(),
                what: format!("'{}', whose activations have no scale", node.name),
            };
            let scale = Arc::clone(parts.scales.product(matrix).ok_or_else(unsupported)?);
            if let Some(columns) = parts.columns(matrix) {
                let _held = parts.hold()?;
                columns.keep_hot(parts.weights.packed(matrix), &scale.hot);
            }
            Ok(Some(Product { matrix, bias, features: node.features.clone(), scale }))
        });
        let products = products.collect::<Result<Vec<_>, DeviceError>>()?;
        Ok(Int8Graph {
            parts: Arc::clone(parts),
            inputs: spec.inputs.iter().map(|port| vec![0.0; rows * port.width]).collect(),
            values: spec.nodes.iter().map(|node| vec![0.0; rows * node.features.len()]).collect(),
            spec: spec.clone(),
            products,
            scratch: ProductScratch::default(),
            is_checked: false,
        })
    }

    fn source(&self, source: Source) -> &[f32] {
        match source {
            Source::Input(port) => &self.inputs[port],
            Source::Node(at) => &self.values[at],
        }
    }

    /// The columns of an operand, `[rows][columns]`.
    fn operand(&self, operand: &Operand) -> Cow<'_, [f32]> {
        let values = self.source(operand.source);
        let width = values.len() / self.spec.key.rows.max(1);
        let Range { start, end } = operand.columns;
        if start == 0 && end == width {
            return Cow::Borrowed(values);
        }
        values.chunks_exact(width.max(1)).flat_map(|row| &row[start..end]).copied().collect()
    }

    fn compute(
        &self,
        at: usize,
        scratch: &mut ProductScratch,
        out: &mut [f32],
    ) -> Result<(), DeviceError> {
        let node = &self.spec.nodes[at];
        let parts = &*self.parts;
        let operand = |index: usize| self.operand(&node.inputs[index]);
        match &node.op {
            Op::MatMul { .. } => {
                let product = self.products[at].as_ref();
                let product = product.unwrap_or_else(|| unreachable!("every product is prepared"));
                let _held = parts.hold()?;
                let run = product.run(parts, &operand(0), scratch, out);
                let counts = run.map_err(|error| DeviceError::Failed {
                    device: parts.device.clone(),
                    reason: format!("'{}': {error}", node.name),
                })?;
                if self.is_checked {
                    parts.counter.add(&counts);
                }
            }
            Op::RmsNorm { weight, group, eps } => {
                let (gain, x) = (parts.weights.gains(*weight, *group), operand(0));
                if out.len() == x.len() {
                    rms_norm(&parts.cpu, &x, gain, *eps, out);
                } else {
                    let mut whole = vec![0.0; x.len()];
                    rms_norm(&parts.cpu, &x, gain, *eps, &mut whole);
                    self.copy_columns(&whole, &node.features, out);
                }
            }
            Op::Gated(activation) => {
                gated(&parts.cpu, *activation, &operand(0), &operand(1), out);
            }
            Op::Add => add(&parts.cpu, &operand(0), &operand(1), out),
            Op::Scale { factor } => {
                out.copy_from_slice(&operand(0));
                scale(&parts.cpu, out, *factor);
            }
            Op::ScaleBy { weight } => {
                out.copy_from_slice(&operand(0));
                let factors = parts.weights.factors(*weight, node.features.clone());
                scale_by(&parts.cpu, out, factors);
            }
            Op::SoftCap { cap } => {
                out.copy_from_slice(&operand(0));
                soft_cap(&parts.cpu, out, *cap);
            }
            Op::Embed { .. }
            | Op::Lookup { .. }
            | Op::Columns { .. }
            | Op::JoinHeads { .. }
            | Op::Given
            | Op::LayerNorm { .. }
            | Op::AddRow { .. }
            | Op::Curve(_)
            | Op::Multiply
            | Op::ShortConv(_)
            | Op::LinearAttention(_)
            | Op::Temperature(_)
            | Op::Rope { .. }
            | Op::Attention(_)
            | Op::WeightedSum { .. }
            | Op::Excess { .. }
            | Op::WithLength
            | Op::Route(_)
            | Op::Experts(_)
            | Op::Mix { .. }
            | Op::SelectRows => {
                let what = format!("{} '{}' in a static graph", node.op.name(), node.name);
                return Err(DeviceError::Unsupported { device: parts.device.clone(), what });
            }
        }
        Ok(())
    }

    /// Copies some columns of whole rows.
    fn copy_columns(&self, whole: &[f32], features: &Range<usize>, out: &mut [f32]) {
        let width = (whole.len() / self.spec.key.rows.max(1)).max(1);
        let rows = whole.chunks_exact(width).zip(out.chunks_exact_mut(features.len().max(1)));
        rows.for_each(|(from, to)| to.copy_from_slice(&from[features.clone()]));
    }
}

impl PreparedGraph for Int8Graph {
    fn input(&mut self, port: usize) -> &mut [f32] {
        &mut self.inputs[port]
    }

    fn run(&mut self, observer: &mut dyn Observer) -> Result<(), DeviceError> {
        for at in 0..self.spec.nodes.len() {
            let mut out = std::mem::take(&mut self.values[at]);
            let mut scratch = std::mem::take(&mut self.scratch);
            let result = self.compute(at, &mut scratch, &mut out);
            (self.values[at], self.scratch) = (out, scratch);
            result?;
            let node = self.spec.nodes[at].node;
            observer.nodes_done(node..node + 1);
        }
        self.is_checked = true;
        Ok(())
    }

    fn output(&self, port: usize) -> &[f32] {
        self.source(self.spec.outputs[port].source)
    }

    fn bytes(&self) -> u64 {
        self.spec.buffer_bytes()
    }
}
