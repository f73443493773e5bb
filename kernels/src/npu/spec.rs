//! A static graph, written out: every shape is a number, every operand has a place.

use std::ops::Range;

use crate::device::{DeviceError, GraphKey, OpSet};
use crate::graph::{Graph, Node, ValueId, WeightId, WeightSpec};
use crate::op::Op;

/// What a back end prepares: some nodes of a model's graph, for a fixed number of rows and for
/// some features of what they write. It needs nothing else but the bytes of the weights, which it
/// finds by their names.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphSpec {
    /// Which graph it is. Every matrix has `key.rows` rows.
    pub key: GraphKey,
    /// Handed in, with all features.
    pub inputs: Vec<Port>,
    /// Ops in execution order.
    pub nodes: Vec<SpecNode>,
    /// Handed out, with the features of the key's share.
    pub outputs: Vec<Port>,
}

/// A matrix `[rows, width]` that is handed in or out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Name, unique in the graph.
    pub name: String,
    /// Value of the model's graph.
    pub value: ValueId,
    /// Values per row.
    pub width: usize,
    /// Where it comes from: an input port is its own source, an output port is a node.
    pub source: Source,
}

/// Where an operand comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// An input port.
    Input(usize),
    /// What an earlier node of the graph has written.
    Node(usize),
}

/// An operand of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Where it comes from.
    pub source: Source,
    /// Which of the source's columns.
    pub columns: Range<usize>,
}

/// One op.
#[derive(Clone, Debug, PartialEq)]
pub struct SpecNode {
    /// Number in the model's graph.
    pub node: usize,
    /// Name, unique in the graph.
    pub name: String,
    /// What is computed.
    pub op: Op,
    /// Operands.
    pub inputs: Vec<Operand>,
    /// Which features of the op's whole output are computed: rows of a product's weight.
    pub features: Range<usize>,
    /// Weights: matrix and bias of a product, gain of a norm.
    pub weights: Vec<WeightSpec>,
}

impl GraphSpec {
    /// The graph that a key stands for. `device` is named in errors.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] when no static graph can do this: there are no such nodes, an
    /// op depends on positions or on other rows, features cannot be divided, or values have
    /// different rows.
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
            let columns = match node.op {
                Op::MatMul { .. } | Op::RmsNorm { .. } => 0..width(value),
                _ => written(value),
            };
            match value.0.checked_sub(key.nodes.start) {
                // What the graph itself has written has the share's features only.
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
                weights: weights(&node.op).map(|id| graph.weights()[id.0].clone()).collect(),
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

    /// Bytes of buffers for all inputs and outputs, in f32.
    pub fn buffer_bytes(&self) -> u64 {
        let widths = self.inputs.iter().chain(&self.outputs).map(|port| port.width as u64);
        widths.sum::<u64>() * self.key.rows as u64 * size_of::<f32>() as u64
    }
}

fn weights(op: &Op) -> impl Iterator<Item = WeightId> {
    let (first, second) = match op {
        Op::MatMul { weight, bias } => (Some(*weight), *bias),
        Op::RmsNorm { weight, .. } => (Some(*weight), None),
        _ => (None, None),
    };
    first.into_iter().chain(second)
}

fn node_name(graph: &Graph, index: usize) -> String {
    let node = &graph.nodes()[index];
    let layer = node.layer.map(|layer| format!(".{layer}")).unwrap_or_default();
    format!("{}{layer}.{index}", node.role)
}

/// Says what is wrong with a key.
fn check(graph: &Graph, key: &GraphKey) -> Result<(), String> {
    let GraphKey { nodes, features, rows, .. } = key;
    if nodes.is_empty() || nodes.end > graph.nodes().len() || *rows == 0 {
        return Err(format!("a graph of {rows} rows for nodes {nodes:?}"));
    }
    if features.from > features.to || features.to > features.of {
        return Err(format!("features {} to {} of {}", features.from, features.to, features.of));
    }
    let mut of = None;
    for node in &graph.nodes()[nodes.clone()] {
        if !OpSet::STATIC.contains(&node.op) {
            return Err(format!("{} '{}' in a static graph", node.op.name(), node.role));
        }
        for value in node.inputs.iter().chain([&node.output]) {
            let rows = graph.value(*value).rows;
            if *of.get_or_insert(rows) != rows {
                return Err(format!("values of different rows in nodes {nodes:?}"));
            }
        }
    }
    if !features.is_whole() && !graph.can_cut_features(nodes.clone()) {
        return Err(format!("some features of nodes {nodes:?}"));
    }
    Ok(())
}
