//! Inputs and outputs of graphs.

use lapwing_npu::{GraphSpec, Port, Source};

/// An input or output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PortShape {
    /// Rows and width.
    pub(super) shape: [usize; 2],
    /// Whether the compiled graph has it. Its number there is the number of earlier ports that are bound.
    pub(super) is_bound: bool,
}

/// The inputs and the outputs of a specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ports {
    pub(super) inputs: Vec<PortShape>,
    pub(super) outputs: Vec<PortShape>,
}

impl Ports {
    /// A compiled graph lacks inputs that no node reads and outputs without columns.
    pub(super) fn of(spec: &GraphSpec) -> Ports {
        let rows = spec.key.rows;
        let shape = |port: &Port, is_bound| PortShape { shape: [rows, port.width], is_bound };
        let nodes = || spec.nodes.iter().filter(|node| !node.features.is_empty());
        let is_read = |at| {
            let mut operands = nodes().flat_map(|node| &node.inputs);
            operands.any(|operand| operand.source == Source::Input(at))
        };
        let inputs = spec.inputs.iter().enumerate().map(|(at, port)| shape(port, is_read(at)));
        let outputs = spec.outputs.iter().map(|port| shape(port, port.width > 0));
        Ports { inputs: inputs.collect(), outputs: outputs.collect() }
    }
}
