//! Writes the nodes of a graph in the form of a library: what all libraries have in common.

use std::ops::Range;

use super::spec::{GraphSpec, Operand, Source, SpecNode};
use lapwing_model::device::DeviceError;
use lapwing_model::graph::WeightId;
use lapwing_model::op::{Activation, Op};

/// A graph under construction for a library.
pub trait Lowering {
    /// A value of the graph, `[rows, width]`.
    type Value: Clone;

    /// Some columns of an input port.
    fn input(&mut self, port: usize, columns: &Range<usize>) -> Result<Self::Value, DeviceError>;

    /// Some columns of the output of a node.
    fn columns(
        &mut self,
        value: &Self::Value,
        columns: &Range<usize>,
    ) -> Result<Self::Value, DeviceError>;

    /// The next value is the output of the node at this index of the specification.
    fn begin(&mut self, _at: usize) {}

    /// `x · Wᵀ` and a bias, for the output channels of the node, of which there is at least one.
    fn product(
        &mut self,
        node: &SpecNode,
        x: &Self::Value,
        weight: WeightId,
        bias: Option<WeightId>,
    ) -> Result<Self::Value, DeviceError>;

    /// RMS norm over groups of values, of all columns, with gains of 1 without a weight.
    fn norm(
        &mut self,
        x: &Self::Value,
        weight: Option<WeightId>,
        group: usize,
        eps: f32,
    ) -> Result<Self::Value, DeviceError>;

    /// `activation(gate) · up`.
    fn gated(
        &mut self,
        gate: &Self::Value,
        up: &Self::Value,
        activation: Activation,
    ) -> Result<Self::Value, DeviceError>;

    /// The sum of two values.
    fn add(&mut self, a: &Self::Value, b: &Self::Value) -> Result<Self::Value, DeviceError>;

    /// `x` times `factors`: one for each column, or one for all.
    fn scale_by(&mut self, x: &Self::Value, factors: Vec<f32>) -> Result<Self::Value, DeviceError>;

    /// The weights of the output channels of a node in a vector: one for each, or one for all.
    fn factors(&self, node: &SpecNode, weight: WeightId) -> Result<Vec<f32>, DeviceError>;

    /// `cap · tanh(x / cap)`.
    fn soft_cap(&mut self, x: &Self::Value, cap: f32) -> Result<Self::Value, DeviceError>;

    /// An error of the device.
    fn failed(&self, reason: String) -> DeviceError;
}

/// Adds the nodes of a specification to a graph, and returns the output of each. A node without output channels, as in the
/// last share of a narrow product, has none and is left out, because no library accepts a value without columns.
///
/// # Errors
/// [`DeviceError`] of the graph, or when it has nothing for an op.
pub fn lower_nodes<L: Lowering>(
    graph: &mut L,
    spec: &GraphSpec,
) -> Result<Vec<Option<L::Value>>, DeviceError> {
    let mut values: Vec<Option<L::Value>> = Vec::with_capacity(spec.nodes.len());
    for (at, node) in spec.nodes.iter().enumerate() {
        if node.features.is_empty() {
            values.push(None);
            continue;
        }
        let mut operands = Vec::with_capacity(node.inputs.len());
        for Operand { source, columns } in &node.inputs {
            operands.push(match source {
                Source::Input(port) => graph.input(*port, columns)?,
                Source::Node(at) => {
                    let empty = || graph.failed(format!("'{}' reads no columns", node.name));
                    let value = values[*at].as_ref().ok_or_else(empty)?;
                    graph.columns(value, columns)?
                }
            });
        }
        graph.begin(at);
        values.push(Some(lower(graph, node, &operands)?));
    }
    Ok(values)
}

fn lower<L: Lowering>(
    graph: &mut L,
    node: &SpecNode,
    operands: &[L::Value],
) -> Result<L::Value, DeviceError> {
    match (&node.op, operands) {
        (Op::MatMul { weight, bias }, [x, ..]) => graph.product(node, x, *weight, *bias),
        (Op::RmsNorm { weight, group, eps }, [x, ..]) => {
            let normed = graph.norm(x, *weight, *group, *eps)?;
            graph.columns(&normed, &node.features)
        }
        (Op::Gated(activation), [gate, up, ..]) => graph.gated(gate, up, *activation),
        (Op::Add, [a, b, ..]) => graph.add(a, b),
        (Op::Scale { factor }, [x, ..]) => graph.scale_by(x, vec![*factor]),
        (Op::ScaleBy { weight }, [x, ..]) => {
            let factors = graph.factors(node, *weight)?;
            graph.scale_by(x, factors)
        }
        (Op::SoftCap { cap }, [x, ..]) => graph.soft_cap(x, *cap),
        (
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
            | Op::SelectRows,
            _,
        ) => Err(graph.failed(format!("no layer computes {}", node.op.name()))),
        _ => Err(graph.failed(format!("'{}' has too few operands", node.name))),
    }
}
