//! Specification of a static graph: concrete shapes, and the source of every operand.

use std::ops::Range;

use lapwing_model::device::{DeviceError, GraphKey, OpSet};
use lapwing_model::graph::{Graph, Node, ValueId, WeightSpec};
use lapwing_model::op::Op;
use lapwing_model::ops::Reads;
use lapwing_model::part::Share;

/// Input of [`NpuBackend::prepare`](super::NpuBackend::prepare): a range of nodes of a model's
/// graph, for a fixed row count and a share of the output channels. Apart from this, a back end only
/// needs the bytes of the weights, which it finds by name.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphSpec {
    /// Key of the graph. Every value has `key.rows` rows.
    pub key: GraphKey,
    /// Inputs, with all their columns.
    pub inputs: Vec<Port>,
    /// Ops in execution order.
    pub nodes: Vec<SpecNode>,
    /// Outputs, with the columns of the key's share.
    pub outputs: Vec<Port>,
}

/// An input or output of a graph: a matrix `[rows, width]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Name, unique in the graph.
    pub name: String,
    /// The value in the model's graph.
    pub value: ValueId,
    /// Values per row.
    pub width: usize,
    /// Origin: itself for an input port, the writing node for an output port.
    pub source: Source,
}

/// Origin of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The input port with this index.
    Input(usize),
    /// The output of the earlier node with this index in [`GraphSpec::nodes`].
    Node(usize),
}

/// An operand of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Its origin.
    pub source: Source,
    /// Columns of the source.
    pub columns: Range<usize>,
}

/// One op of a static graph.
#[derive(Clone, Debug, PartialEq)]
pub struct SpecNode {
    /// Index in the model's graph.
    pub node: usize,
    /// Name, unique in the graph.
    pub name: String,
    /// The operation.
    pub op: Op,
    /// Operands.
    pub inputs: Vec<Operand>,
    /// Columns of the op's full output that are computed; for a matmul, rows of its weight.
    pub features: Range<usize>,
    /// Weights: matrix and bias of a matmul, gain of a norm.
    pub weights: Vec<WeightSpec>,
}

impl GraphSpec {
    /// The specification of the graph with this key. `device` is the device name for errors.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] if no static graph can compute this: there are no such nodes,
    /// an op depends on positions or on other rows, the output channels cannot be divided, or the
    /// values have different row sets.
    pub fn new(graph: &Graph, key: &GraphKey, device: &str) -> Result<GraphSpec, DeviceError> {
        check(graph, key)
            .map_err(|what| DeviceError::Unsupported { device: device.to_owned(), what })?;
        let live_in = graph.live_in(key.nodes.clone());
        let width = |value| graph.value(value).width;
        let written = |value| key.features.of_width(width(value));
        let name = |value: ValueId| node_name(graph, value.0);
        let inputs = live_in.iter().enumerate().map(|(at, &value)| Port {
            name: name(value),
            value,
            width: width(value),
            source: Source::Input(at),
        });
        let inputs = inputs.collect();
        let operand = |node: &Node, value: ValueId| {
            let columns = match node.op.info().reads {
                Reads::Inputs => 0..width(value),
                Reads::Places => written(value),
            };
            match value.0.checked_sub(key.nodes.start) {
                // A value written inside the graph only has the columns of the share.
                Some(at) => Operand { source: Source::Node(at), columns: 0..columns.len() },
                None => {
                    let at = live_in.iter().position(|v| *v == value).unwrap_or_default();
                    Operand { source: Source::Input(at), columns }
                }
            }
        };
        let nodes = key.nodes.clone().map(|index| {
            let node = &graph.nodes()[index];
            SpecNode {
                node: index,
                name: node_name(graph, index),
                op: node.op.clone(),
                inputs: node.inputs.iter().map(|v| operand(node, *v)).collect(),
                features: written(node.output),
                weights: node.op.weights().map(|id| graph.weights()[id.0].clone()).collect(),
            }
        });
        let nodes = nodes.collect();
        let outputs = graph.writes(key.nodes.clone()).into_iter().map(|value| Port {
            name: name(value),
            value,
            width: written(value).len(),
            source: Source::Node(value.0 - key.nodes.start),
        });
        Ok(GraphSpec { key: key.clone(), inputs, nodes, outputs: outputs.collect() })
    }

    /// Bytes of f32 buffers for all inputs and outputs.
    pub fn buffer_bytes(&self) -> u64 {
        let widths = self.inputs.iter().chain(&self.outputs).map(|port| port.width as u64);
        widths.sum::<u64>() * self.key.rows as u64 * size_of::<f32>() as u64
    }
}

fn node_name(graph: &Graph, index: usize) -> String {
    let node = &graph.nodes()[index];
    let layer = node.layer.map(|layer| format!(".{layer}")).unwrap_or_default();
    format!("{}{layer}.{index}", node.role)
}

/// Checks that a static graph can compute the nodes of a key.
///
/// # Errors
/// The unsupported part, to be completed by "device … cannot run".
fn check(graph: &Graph, key: &GraphKey) -> Result<(), String> {
    let GraphKey { nodes, features, rows, .. } = key;
    if nodes.is_empty() || nodes.end > graph.nodes().len() || *rows == 0 {
        return Err(format!(
            "a graph of {rows} rows for nodes {nodes:?}, in a model of {} nodes",
            graph.nodes().len()
        ));
    }
    if features.from > features.to || features.to > features.of {
        let Share { from, to, of } = features;
        return Err(format!("the share {from} to {to} of {of}, which is not a range"));
    }
    let mut of = None;
    for node in &graph.nodes()[nodes.clone()] {
        if !OpSet::STATIC.contains(&node.op) {
            return Err(format!("{} '{}' in a static graph", node.op.name(), node.role));
        }
        for value in node.inputs.iter().chain([&node.output]) {
            let rows = graph.value(*value).rows;
            if *of.get_or_insert(rows) != rows {
                return Err(format!(
                    "nodes {nodes:?} in one graph, because some values only have selected rows"
                ));
            }
        }
    }
    if !features.is_whole() && !graph.can_cut_features(nodes.clone()) {
        return Err(format!("a share of the output channels of nodes {nodes:?}"));
    }
    Ok(())
}
