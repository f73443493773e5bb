//! Writes the specification of a graph as OpenVINO's intermediate representation.

use std::ops::Range;
use std::sync::Arc;

use super::constants::{Form, Groups};
use super::ir::{Element, Ir, Kind, Value};
use super::ports::{PortShape, Ports};
use lapwing_model::device::DeviceError;
use lapwing_model::graph::WeightId;
use lapwing_model::op::Activation;
use lapwing_npu::lowering::{Lowering, lower_nodes};
use lapwing_npu::model_weights::ModelWeights;
use lapwing_npu::{GraphSpec, Source, SpecNode};

/// Rows of a matrix that are read at a time.
const ROWS: usize = 256;
/// Alignment of constants in their buffer, in bytes.
const ALIGNMENT: usize = 64;

/// A graph as text, and its constants. It has the bound ports only. The constants depend on nodes and output channels
/// only, so that graphs of several row counts share them.
pub(super) struct Lowered {
    pub(super) text: String,
    pub(super) constants: Arc<[u8]>,
}

/// Writes a graph. `known` are the constants of a graph of the same nodes and channels.
///
/// # Errors
/// [`DeviceError`] when a weight cannot be read, or no layer corresponds to an op.
pub(super) fn lower(
    spec: &GraphSpec,
    weights: &ModelWeights,
    known: Option<Arc<[u8]>>,
) -> Result<Lowered, DeviceError> {
    let is_known = known.is_some();
    let mut ir = Ir::default();
    let Ports { inputs, outputs } = Ports::of(spec);
    let parameter = |port: &PortShape| port.is_bound.then(|| ir.parameter(port.shape.to_vec()));
    let inputs = inputs.iter().map(parameter).collect();
    let (constants, next) = (Vec::new(), 0);
    let mut lowering = Writer { weights, ir, constants, next, is_known, inputs };
    let values = lower_nodes(&mut lowering, spec)?;
    for (port, _) in spec.outputs.iter().zip(outputs).filter(|(_, shape)| shape.is_bound) {
        let value = match port.source {
            Source::Input(at) => lowering.inputs[at].as_ref(),
            Source::Node(at) => values[at].as_ref(),
        };
        let missing = || weights.failed(format!("nothing computes '{}'", port.name));
        lowering.ir.result(value.ok_or_else(missing)?);
    }
    let constants = known.unwrap_or_else(|| lowering.constants.into());
    Ok(Lowered { text: lowering.ir.finish(), constants })
}

struct Writer<'a> {
    weights: &'a ModelWeights,
    ir: Ir,
    constants: Vec<u8>,
    /// Where the next constant begins.
    next: usize,
    /// Whether the constants are there already, and only their offsets are needed.
    is_known: bool,
    /// The input ports that the graph has.
    inputs: Vec<Option<Value>>,
}

impl Lowering for Writer<'_> {
    type Value = Value;

    fn input(&mut self, port: usize, columns: &Range<usize>) -> Result<Value, DeviceError> {
        let missing = || self.failed(format!("input {port} has no place in the graph"));
        let value = self.inputs[port].clone().ok_or_else(missing)?;
        self.columns(&value, columns)
    }

    fn columns(&mut self, value: &Value, columns: &Range<usize>) -> Result<Value, DeviceError> {
        let Range { start: from, end: to } = *columns;
        if from == 0 && to == value.dims[1] {
            return Ok(value.clone());
        }
        let bounds = [from, to, 1, 1].map(|bound| self.integers(vec![bound as i64]));
        let [from_at, to_at, step, axis] = &bounds;
        let kind = Kind { name: "Slice", opset: 8, attributes: "" };
        let dims = vec![value.dims[0], to - from];
        Ok(self.ir.layer(kind, &[value, from_at, to_at, step, axis], Element::F32, dims))
    }

    fn product(
        &mut self,
        node: &SpecNode,
        x: &Value,
        weight: WeightId,
        bias: Option<WeightId>,
    ) -> Result<Value, DeviceError> {
        let matrix = self.matrix(node, weight)?;
        let dims = vec![x.dims[0], node.features.len()];
        let kind = Kind::new("MatMul", r#"transpose_a="false" transpose_b="true""#);
        let product = self.ir.layer(kind, &[x, &matrix], Element::F32, dims);
        match bias {
            None => Ok(product),
            Some(bias) => self.with_bias(node, &product, bias),
        }
    }

    fn norm(
        &mut self,
        x: &Value,
        weight: Option<WeightId>,
        len: usize,
        eps: f32,
    ) -> Result<Value, DeviceError> {
        let weights = self.weights;
        let (rows, width) = (x.dims[0], x.dims[1]);
        let grouped = if len == width { x.clone() } else { self.groups(x, len) };
        let squares = self.ir.binary("Multiply", &grouped, &grouped.clone());
        let axis = self.integers(vec![-1]);
        let mut dims = squares.dims.clone();
        dims.pop();
        dims.push(1);
        let kind = Kind::new("ReduceMean", r#"keep_dims="true""#);
        let mean = self.ir.layer(kind, &[&squares, &axis], Element::F32, dims.clone());
        let ones = vec![1; dims.len()];
        let eps = self.floats(ones.clone(), || Ok(vec![eps]))?;
        let mean = self.ir.binary("Add", &mean, &eps);
        let root = self.ir.layer(Kind::new("Sqrt", ""), &[&mean], Element::F32, dims);
        let mut normed = self.ir.binary("Divide", &grouped, &root);
        let mut gain_dims = ones;
        gain_dims.pop();
        gain_dims.push(len);
        if let Some(weight) = weight {
            let gain = self.floats(gain_dims, || weights.vector(weight))?;
            normed = self.ir.binary("Multiply", &normed, &gain);
        }
        Ok(if len == width { normed } else { self.reshape(&normed, vec![rows, width]) })
    }

    fn gated(
        &mut self,
        gate: &Value,
        up: &Value,
        activation: Activation,
    ) -> Result<Value, DeviceError> {
        let kind = match activation {
            Activation::Silu => Kind { name: "Swish", opset: 4, attributes: "" },
            Activation::Sigmoid => Kind::new("Sigmoid", ""),
            Activation::GeluTanh => {
                Kind { name: "Gelu", opset: 7, attributes: r#"approximation_mode="TANH""# }
            }
        };
        let gate = self.ir.layer(kind, &[gate], Element::F32, gate.dims.clone());
        Ok(self.ir.binary("Multiply", &gate, up))
    }

    fn add(&mut self, a: &Value, b: &Value) -> Result<Value, DeviceError> {
        Ok(self.ir.binary("Add", a, b))
    }

    fn scale_by(&mut self, x: &Value, factors: Vec<f32>) -> Result<Value, DeviceError> {
        let factors = self.floats(vec![1, factors.len()], || Ok(factors))?;
        Ok(self.ir.binary("Multiply", x, &factors))
    }

    fn factors(&self, node: &SpecNode, weight: WeightId) -> Result<Vec<f32>, DeviceError> {
        self.weights.factors(weight, node.features.clone())
    }

    fn soft_cap(&mut self, x: &Value, cap: f32) -> Result<Value, DeviceError> {
        let cap = self.floats(vec![1, 1], || Ok(vec![cap]))?;
        let x = self.ir.binary("Divide", x, &cap);
        let x = self.ir.layer(Kind::new("Tanh", ""), &[&x], Element::F32, x.dims.clone());
        Ok(self.ir.binary("Multiply", &x, &cap))
    }

    fn failed(&self, reason: String) -> DeviceError {
        self.weights.failed(reason)
    }
}

impl Writer<'_> {
    /// The rows of a matrix that the node uses, as f32.
    fn matrix(&mut self, node: &SpecNode, weight: WeightId) -> Result<Value, DeviceError> {
        let weights = self.weights;
        let spec = &weights.graph.weights()[weight.0];
        let (rows, cols, dtype) = (node.features.clone(), spec.cols, spec.dtype);
        let n = rows.len();
        let blocks = || rows.clone().step_by(ROWS).map(|from| from..rows.end.min(from + ROWS));
        let (element, len, zero_point) = match Form::of(dtype) {
            Form::Floats(element) => {
                let matrix = self.place(element, vec![n, cols], |to| {
                    for rows in blocks() {
                        to.extend(weights.rows(weight, rows)?);
                    }
                    Ok(())
                })?;
                return Ok(self.ir.float(&matrix));
            }
            Form::Groups { element, len, zero_point } => (element, len, zero_point),
        };
        let mut groups = Groups::default();
        if !self.is_known {
            for rows in blocks() {
                groups.push(dtype, &weights.rows(weight, rows)?);
            }
        }
        let count = cols / len;
        let integers = self.place(element, vec![n, count, len], |to| {
            to.extend(&groups.integers);
            Ok(())
        })?;
        let zeros = match zero_point {
            Some(zero) => self.floats(vec![1, 1, 1], || Ok(vec![zero]))?,
            None => self.floats(vec![n, count, 1], || Ok(groups.zero_points))?,
        };
        let scales = self.floats(vec![n, count, 1], || Ok(groups.scales))?;
        let integers = self.ir.float(&integers);
        let centred = self.ir.binary("Subtract", &integers, &zeros);
        let scaled = self.ir.binary("Multiply", &centred, &scales);
        Ok(self.reshape(&scaled, vec![n, cols]))
    }

    fn with_bias(
        &mut self,
        node: &SpecNode,
        product: &Value,
        bias: WeightId,
    ) -> Result<Value, DeviceError> {
        let (weights, features) = (self.weights, node.features.clone());
        let bias = self.floats(vec![1, features.len()], || {
            let bias = weights.vector(bias)?;
            let part = bias.get(features).map(<[f32]>::to_vec);
            part.ok_or_else(|| weights.failed(format!("the bias of '{}' is too short", node.name)))
        })?;
        Ok(self.ir.binary("Add", product, &bias))
    }

    /// Rows divided into groups: `[rows, groups, len]`.
    fn groups(&mut self, x: &Value, len: usize) -> Value {
        self.reshape(x, vec![x.dims[0], x.dims[1] / len, len])
    }

    /// Another shape. The first dimension follows from the others, so that the constant is the same for all
    /// row counts.
    fn reshape(&mut self, x: &Value, dims: Vec<usize>) -> Value {
        let rest = dims[1..].iter().map(|dim| *dim as i64);
        let target = self.integers([-1].into_iter().chain(rest).collect());
        let kind = Kind::new("Reshape", r#"special_zero="false""#);
        self.ir.layer(kind, &[x, &target], Element::F32, dims)
    }

    fn floats(
        &mut self,
        dims: Vec<usize>,
        values: impl FnOnce() -> Result<Vec<f32>, DeviceError>,
    ) -> Result<Value, DeviceError> {
        self.place(Element::F32, dims, |to| {
            to.extend(values()?.into_iter().flat_map(f32::to_le_bytes));
            Ok(())
        })
    }

    fn integers(&mut self, values: Vec<i64>) -> Value {
        let dims = vec![values.len()];
        let offset = self.room(Element::I64, &dims);
        if !self.is_known {
            self.constants.extend(values.into_iter().flat_map(i64::to_le_bytes));
        }
        self.ir.constant(Element::I64, dims, offset)
    }

    /// A constant, whose bytes `fill` adds unless they are known.
    fn place(
        &mut self,
        element: Element,
        dims: Vec<usize>,
        fill: impl FnOnce(&mut Vec<u8>) -> Result<(), DeviceError>,
    ) -> Result<Value, DeviceError> {
        let offset = self.room(element, &dims);
        if !self.is_known {
            fill(&mut self.constants)?;
            if self.constants.len() != self.next {
                let (got, wanted) = (self.constants.len() - offset, self.next - offset);
                let reason = format!("a weight of {wanted} bytes has {got}");
                return Err(self.weights.failed(reason));
            }
        }
        Ok(self.ir.constant(element, dims, offset))
    }

    /// Makes room for a constant, and returns where it begins.
    fn room(&mut self, element: Element, dims: &[usize]) -> usize {
        let offset = self.next.next_multiple_of(ALIGNMENT);
        self.next = offset + element.bytes(dims.iter().product());
        if !self.is_known {
            self.constants.resize(offset, 0);
        }
        offset
    }
}
