//! A prepared graph as bytes: a line for each input and output, since the library does not tell their numbers, and its own
//! binary.

use std::ffi::CString;
use std::fmt::Write;
use std::ops::Range;

use super::abi::{Element, Role};
use super::lower::Lowered;
use super::tensor::Tensor;
use lapwing_npu::{GraphSpec, Port};

/// What is read of a graph.
pub(super) struct KeptGraph<'a> {
    /// The input port of each input, and the columns that it takes.
    pub(super) ports: Vec<(usize, Range<usize>)>,
    pub(super) inputs: Vec<Tensor>,
    /// The output port of each output.
    pub(super) output_ports: Vec<usize>,
    pub(super) outputs: Vec<Tensor>,
    pub(super) binary: &'a [u8],
}

/// Writes a graph; `None` if the library does not export it.
pub(super) fn write(graph: &mut Lowered) -> Option<Vec<u8>> {
    let binary = graph.executable.binary()?;
    let mut head = String::new();
    for ((port, columns), tensor) in graph.inputs.iter().zip(graph.executable.input_tensors()) {
        let Range { start, end } = columns;
        _ = writeln!(head, "input {} {port} {start} {end}", tensor.id);
    }
    for (port, tensor) in graph.outputs.iter().zip(graph.executable.output_tensors()) {
        _ = writeln!(head, "output {} {port}", tensor.id);
    }
    let mut content = (head.len() as u64).to_le_bytes().to_vec();
    content.extend_from_slice(head.as_bytes());
    content.extend_from_slice(&binary);
    Some(content)
}

/// Reads a graph of this specification; `None` if it is another one's.
pub(super) fn read<'a>(content: &'a [u8], spec: &GraphSpec) -> Option<KeptGraph<'a>> {
    let (len, rest) = content.split_first_chunk::<8>()?;
    let (head, binary) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
    let (ports, inputs, output_ports, outputs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut graph = KeptGraph { ports, inputs, output_ports, outputs, binary };
    let of = |port: Option<&Port>, columns: Range<usize>| {
        (columns.start < columns.end && columns.end <= port?.width).then_some(columns)
    };
    for line in std::str::from_utf8(head).ok()?.lines() {
        let mut words = line.split(' ');
        let kind = words.next()?;
        let numbers: Vec<usize> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
        match (kind, &numbers[..]) {
            ("input", &[id, port, start, end]) => {
                let columns = of(spec.inputs.get(port), start..end)?;
                graph.inputs.push(tensor(id, Role::Input, spec.key.rows, columns.len())?);
                graph.ports.push((port, columns));
            }
            ("output", &[id, port]) => {
                let width = spec.outputs.get(port)?.width;
                graph.outputs.push(tensor(id, Role::Output, spec.key.rows, width)?);
                graph.output_ports.push(port);
            }
            _ => return None,
        }
    }
    let wanted = spec.outputs.iter().filter(|port| port.width > 0).count();
    (graph.outputs.len() == wanted).then_some(graph)
}

fn tensor(id: usize, role: Role, rows: usize, width: usize) -> Option<Tensor> {
    let dims = [1, 1, rows, width].map(u32::try_from).into_iter().collect::<Result<_, _>>().ok()?;
    let (id, name) = (u32::try_from(id).ok()?, CString::default());
    Some(Tensor { id, name, role, element: Element::F16, dims, blocks: None })
}
