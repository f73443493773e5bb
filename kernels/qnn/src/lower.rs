//! Writes the specification of a graph as a graph of QNN.
//!
//! Every value is `[1, 1, rows, width]` in binary16, apart from those that [`fixed`](super::fixed) adds.

use std::ops::Range;
use std::sync::Arc;

use super::abi::Role;
use super::error::QnnError;
use super::executable::Executable;
use super::fixed::Quantized;
use super::graph::Building;
use super::session::Session;
use super::tensor::{Op, Parameter, Tensor};
use lapwing_model::device::DeviceError;
use lapwing_model::graph::WeightId;
use lapwing_model::op::Activation;
use lapwing_npu::FixedProducts;
use lapwing_npu::WeightForm;
use lapwing_npu::lowering::{Lowering, lower_nodes};
use lapwing_npu::model_weights::ModelWeights;
use lapwing_npu::{GraphSpec, Source, SpecNode};

/// The axis of a value that norms are over, and of a matrix that has a scale for each index.
pub(super) const LAST: u32 = 3;

/// A convolution over single pixels without a border is a product.
pub(super) const PRODUCT: Op<'static> = Op {
    kind: c"Conv2d",
    parameters: &[
        Parameter::U32s(c"stride", &[2], &[1, 1]),
        Parameter::U32s(c"pad_amount", &[2, 2], &[0; 4]),
    ],
};
pub(super) const ADD: Op<'static> = Op::plain(c"ElementWiseAdd");
const MULTIPLY: Op<'static> = Op::plain(c"ElementWiseMultiply");
const RESHAPE: Op<'static> = Op::plain(c"Reshape");
const TANH: Op<'static> = Op::plain(c"Tanh");

/// Factors of x and x³ in the tangent of Gelu: √(2/π), and 0.044715 times it.
const GELU: [f32; 2] = [0.797_884_6, 0.035_677_41];

/// A graph that is ready to run.
pub(super) struct Lowered {
    pub(super) executable: Executable,
    /// The input port of each input of the graph, and the columns that it takes.
    pub(super) inputs: Vec<(usize, Range<usize>)>,
    /// The output port of each output of the graph.
    pub(super) outputs: Vec<usize>,
}

/// Writes a graph and prepares it.
///
/// # Errors
/// [`DeviceError`] when a weight cannot be read, or QNN refuses the graph.
pub(super) fn lower(
    spec: &GraphSpec,
    session: &Arc<Session>,
    weights: &ModelWeights,
    form: WeightForm,
    fixed: Option<&FixedProducts>,
) -> Result<Lowered, DeviceError> {
    let failed = |error: QnnError| weights.failed(error.to_string());
    let mut writer = Writer {
        weights,
        form,
        fixed,
        quantized: Vec::new(),
        spec,
        graph: Building::new(session).map_err(failed)?,
        inputs: Vec::new(),
        outputs: Vec::new(),
        port: None,
    };
    lower_nodes(&mut writer, spec)?;
    let Writer { graph, inputs, outputs, .. } = writer;
    if outputs.len() != spec.outputs.iter().filter(|port| port.width > 0).count() {
        return Err(weights.failed("a graph whose output is an input".to_owned()));
    }
    let executable = graph.finish().map_err(failed)?;
    let inputs = inputs.into_iter().map(|(port, columns, _)| (port, columns)).collect();
    Ok(Lowered { executable, inputs, outputs })
}

/// A graph that is written.
pub(super) struct Writer<'a> {
    pub(super) weights: &'a ModelWeights,
    pub(super) form: WeightForm,
    /// Integers of activations, if products have these.
    pub(super) fixed: Option<&'a FixedProducts>,
    /// Inputs of products in integers: several products may have the same.
    pub(super) quantized: Vec<Quantized>,
    spec: &'a GraphSpec,
    pub(super) graph: Building,
    /// Tensors of columns of input ports, in the order of the graph's inputs.
    inputs: Vec<(usize, Range<usize>, Tensor)>,
    /// Ports of the graph's outputs, in their order.
    outputs: Vec<usize>,
    /// The output port of the node that is written, if it has one.
    port: Option<usize>,
}

impl Lowering for Writer<'_> {
    type Value = Tensor;

    fn input(&mut self, port: usize, columns: &Range<usize>) -> Result<Tensor, DeviceError> {
        let same = |(at, of, _): &&(usize, Range<usize>, Tensor)| *at == port && of == columns;
        if let Some((_, _, tensor)) = self.inputs.iter().find(same) {
            return Ok(tensor.clone());
        }
        let dims = self.dims(columns.len());
        let tensor = self.graph.tensor(Role::Input, &dims);
        let tensor = tensor.map_err(|error| self.failed(error.to_string()))?;
        self.inputs.push((port, columns.clone(), tensor.clone()));
        Ok(tensor)
    }

    fn columns(&mut self, value: &Tensor, columns: &Range<usize>) -> Result<Tensor, DeviceError> {
        match *columns == (0..value.width()) {
            true => Ok(value.clone()),
            // A node inside a graph has the columns of the graph's share, and no norm is divided.
            false => Err(self.failed(format!("columns {columns:?} of {}", value.width()))),
        }
    }

    fn begin(&mut self, at: usize) {
        self.port = self.spec.outputs.iter().position(|port| port.source == Source::Node(at));
    }

    fn product(
        &mut self,
        node: &SpecNode,
        x: &Tensor,
        weight: WeightId,
        bias: Option<WeightId>,
    ) -> Result<Tensor, DeviceError> {
        let matrix = match self.form {
            WeightForm::Stored | WeightForm::F16 => self.floats(node, weight)?,
            _ => self.integers(node, weight)?,
        };
        let bias = match bias {
            None => None,
            Some(bias) => {
                let bias = self.weights.vector(bias)?;
                let too_short = || self.failed(format!("the bias of '{}' is too short", node.name));
                let part = bias.get(node.features.clone()).ok_or_else(too_short)?;
                Some(self.vector(part)?)
            }
        };
        if let Some(fixed) = self.fixed.and_then(|fixed| fixed.product(weight)) {
            return self.fixed_product(x, &matrix, bias.as_ref(), fixed);
        }
        let inputs: Vec<&Tensor> = [x, &matrix].into_iter().chain(&bias).collect();
        self.last(PRODUCT, &inputs, node.features.len())
    }

    fn norm(
        &mut self,
        x: &Tensor,
        weight: Option<WeightId>,
        len: usize,
        eps: f32,
    ) -> Result<Tensor, DeviceError> {
        let gain = match weight {
            Some(weight) => self.weights.vector(weight)?,
            None => vec![1.0; len],
        };
        let width = x.width();
        let gain = self.vector(&gain)?;
        let parameters = [Parameter::F32(c"epsilon", eps), Parameter::U32s(c"axes", &[1], &[LAST])];
        let norm = Op { kind: c"RmsNorm", parameters: &parameters };
        if len == width {
            return self.last(norm, &[x, &gain], width);
        }
        // Each group is a row of its own: with groups as a dimension of their own, the emulator computes
        // wrong values for many row counts.
        let rows = self.spec.key.rows * (width / len.max(1));
        let groups = self.inner(RESHAPE, &[x], &[1, 1, rows, len])?;
        let normed = self.inner(norm, &[&groups, &gain], &[1, 1, rows, len])?;
        self.last(RESHAPE, &[&normed], width)
    }

    fn gated(
        &mut self,
        gate: &Tensor,
        up: &Tensor,
        activation: Activation,
    ) -> Result<Tensor, DeviceError> {
        // The functions are x/2 + x/2 · tanh(…), or without x, and the library's tangent is exact to the last bit, which its
        // sigmoid and its Gelu are not.
        let (width, dims) = (gate.width(), self.dims(gate.width()));
        let half = self.scaled(gate, 0.5)?;
        let bent = match activation {
            Activation::Silu | Activation::Sigmoid => half.clone(),
            Activation::GeluTanh => {
                let square = self.inner(MULTIPLY, &[gate, gate], &dims)?;
                let [linear, cubic] = GELU;
                let (cubic, linear) = (self.scaled(&square, cubic)?, self.vector(&[linear])?);
                let sum = self.inner(ADD, &[&cubic, &linear], &dims)?;
                self.inner(MULTIPLY, &[gate, &sum], &dims)?
            }
        };
        let bent = self.inner(TANH, &[&bent], &dims)?;
        let half = match activation {
            Activation::Silu | Activation::GeluTanh => half,
            Activation::Sigmoid => self.vector(&[0.5])?,
        };
        let bent = self.inner(MULTIPLY, &[&bent, &half], &dims)?;
        let gate = self.inner(ADD, &[&bent, &half], &dims)?;
        self.last(MULTIPLY, &[&gate, up], width)
    }

    fn add(&mut self, a: &Tensor, b: &Tensor) -> Result<Tensor, DeviceError> {
        self.last(ADD, &[a, b], a.width())
    }

    fn scale_by(&mut self, x: &Tensor, factors: Vec<f32>) -> Result<Tensor, DeviceError> {
        let factors = self.vector(&factors)?;
        self.last(MULTIPLY, &[x, &factors], x.width())
    }

    fn factors(&self, node: &SpecNode, weight: WeightId) -> Result<Vec<f32>, DeviceError> {
        self.weights.factors(weight, node.features.clone())
    }

    fn soft_cap(&mut self, x: &Tensor, cap: f32) -> Result<Tensor, DeviceError> {
        let dims = self.dims(x.width());
        let x = self.scaled(x, 1.0 / cap)?;
        let x = self.inner(TANH, &[&x], &dims)?;
        let cap = self.vector(&[cap])?;
        self.last(MULTIPLY, &[&x, &cap], x.width())
    }

    fn failed(&self, reason: String) -> DeviceError {
        self.weights.failed(reason)
    }
}

impl Writer<'_> {
    pub(super) fn dims(&self, width: usize) -> [usize; 4] {
        [1, 1, self.spec.key.rows, width]
    }

    fn scaled(&mut self, x: &Tensor, factor: f32) -> Result<Tensor, DeviceError> {
        let factor = self.vector(&[factor])?;
        self.inner(MULTIPLY, &[x, &factor], &self.dims(x.width()))
    }

    /// An op inside the lowering of a node.
    pub(super) fn inner(
        &mut self,
        op: Op<'_>,
        inputs: &[&Tensor],
        dims: &[usize],
    ) -> Result<Tensor, DeviceError> {
        self.op(op, inputs, Role::Inner, dims)
    }

    /// The op that computes the output of a node.
    pub(super) fn last(
        &mut self,
        op: Op<'_>,
        inputs: &[&Tensor],
        width: usize,
    ) -> Result<Tensor, DeviceError> {
        let role = if self.port.is_some() { Role::Output } else { Role::Inner };
        let dims = self.dims(width);
        let output = self.op(op, inputs, role, &dims)?;
        self.outputs.extend(self.port.take());
        Ok(output)
    }

    fn op(
        &mut self,
        op: Op<'_>,
        inputs: &[&Tensor],
        role: Role,
        dims: &[usize],
    ) -> Result<Tensor, DeviceError> {
        let output = self.graph.tensor(role, dims).and_then(|output| {
            self.graph.node(op, inputs, &output)?;
            Ok(output)
        });
        output.map_err(|error| {
            let kind = op.kind.to_string_lossy();
            self.failed(format!("{kind} with an output of {dims:?}: {error}"))
        })
    }
}
