//! Turns a stage into commands: one or more launches for each node.

mod experts;
mod joined;
mod nodes;
mod norms;
mod states;
mod sums;
mod tables;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::commands::{Commands, HostValue};
use super::error::OpenClError;
use super::inputs::BatchInts;
use super::memory::Place;
use super::model::Model;
use super::ops::View;
use super::values::Value;
use lapwing_model::device::{DeviceError, MemoryDomain, Task, Work};
use lapwing_model::graph::{Node, ValueId, WeightId};
use lapwing_model::op::Op;

/// Nodes whose commands are handed to the device together.
const FLUSH_EACH: usize = 16;

/// A value in the device's memory: some rows and columns of it.
#[derive(Clone)]
pub(super) struct Stored {
    pub(super) buffer: Arc<Place>,
    /// Element of the first row and column.
    at: usize,
    /// Elements from row to row.
    stride: usize,
    /// Whether it has only the part's columns.
    is_part: bool,
}

impl Stored {
    fn view(&self) -> View<'_> {
        View { buffer: self.buffer.buffer(), at: self.at, stride: self.stride }
    }
}

/// A stage that is being turned into commands.
pub(super) struct Encoder<'a> {
    pub(super) model: &'a mut Model,
    pub(super) commands: &'a mut Commands,
    pub(super) work: &'a Work,
    pub(super) nodes: Range<usize>,
    /// Values that later stages read.
    pub(super) writes: &'a [ValueId],
    inputs: HashMap<ValueId, Stored>,
    /// Values of the stage, by node.
    written: Vec<Option<Stored>>,
    ints: BatchInts,
    /// Angles of each rotary embedding of the graph that the stage uses.
    angles: HashMap<usize, Place>,
    /// Norms that are left to the matmuls that read them, by the norms' outputs.
    norms: HashMap<ValueId, Normed>,
}

/// A norm that is left to matmuls.
#[derive(Clone)]
struct Normed {
    x: Stored,
    gain: WeightId,
    eps: f32,
}

impl<'a> Encoder<'a> {
    /// Gives the batch to the device.
    pub(super) fn new(
        model: &'a mut Model,
        commands: &'a mut Commands,
        work: &'a Work,
        nodes: Range<usize>,
        writes: &'a [ValueId],
    ) -> Result<Encoder<'a>, DeviceError> {
        let Model { memory, has_states, .. } = model;
        let ints = BatchInts::upload(&work.payload.batch, *has_states, memory, commands);
        let ints = ints.map_err(|error| error.of_run(&model.name))?;
        let written = Vec::with_capacity(nodes.len());
        let (inputs, angles, norms) = (HashMap::new(), HashMap::new(), HashMap::new());
        Ok(Encoder { model, commands, work, nodes, writes, inputs, written, ints, angles, norms })
    }

    /// Adds the commands of all nodes.
    pub(super) fn encode(&mut self) -> Result<(), DeviceError> {
        let graph = Arc::clone(&self.model.graph);
        let mut next = self.nodes.start;
        while next < self.nodes.end {
            let node = &graph.nodes()[next];
            let joined = self.joined(next)?;
            let first = self.written.len();
            if !joined.is_empty() {
                self.written.extend(joined);
            } else if self.norms_in_matmuls(next)? {
                self.written.push(None);
            } else if let Some((add, index)) = self.residual_after(next) {
                // The sum takes the place of the product, which nothing else reads.
                self.written.push(None);
                let sum = self.matmul(node, Some((&graph.nodes()[add], index)))?;
                self.written.push(Some(sum));
            } else {
                let output = self.node(node)?;
                self.written.push(Some(output));
            }
            let done = next..next + self.written.len() - first;
            for dead in self.model.last_uses[done.clone()].iter().flatten() {
                self.norms.remove(dead);
                let at = dead.0.checked_sub(self.nodes.start);
                let stored = at.and_then(|at| self.written.get_mut(at));
                if let Some(stored) = stored
                    && !self.writes.contains(dead)
                {
                    *stored = None;
                }
            }
            // The device begins while the rest is being added.
            if !self.model.kernels.is_recording() && next / FLUSH_EACH < done.end / FLUSH_EACH {
                let flushed = self.model.session.flush();
                flushed.map_err(|error| self.failed(&error))?;
            }
            next = done.end;
        }
        Ok(())
    }

    /// A value that the stage has written.
    pub(super) fn take(&mut self, id: ValueId) -> Option<Stored> {
        self.written.get_mut(id.0.checked_sub(self.nodes.start)?)?.take()
    }

    /// The node of the sum that follows a matmul and is its only reader, with the index of the sum's
    /// other input.
    fn residual_after(&self, node: usize) -> Option<(usize, usize)> {
        let (graph, add) = (&self.model.graph, node + 1);
        let nodes = graph.nodes();
        let is_pair = add < self.nodes.end
            && matches!(nodes[node].op, Op::MatMul { .. })
            && matches!(nodes[add].op, Op::Add);
        let id = nodes[node].output;
        if !is_pair || self.writes.contains(&id) || !self.model.last_uses[add].contains(&id) {
            return None;
        }
        let [a, b] = nodes[add].inputs[..] else { return None };
        match (a == id, b == id) {
            (true, false) => Some((add, 1)),
            (false, true) => Some((add, 0)),
            _ => None,
        }
    }

    fn failed(&self, error: &OpenClError) -> DeviceError {
        error.of_run(&self.model.name)
    }

    fn unsupported(&self, node: &Node, what: &str) -> DeviceError {
        DeviceError::Unsupported {
            device: self.model.name.clone(),
            what: format!("{} '{}' over {what}", node.op.name(), node.role),
        }
    }

    /// Rows of a value that the part has.
    fn rows(&self, id: ValueId) -> Range<usize> {
        self.work.part.rows_of(self.model.graph.value(id), &self.work.payload.batch)
    }

    /// Columns of a value that the part has.
    fn columns_of(&self, id: ValueId) -> Range<usize> {
        self.work.part.features.of_width(self.model.graph.value(id).width)
    }

    /// Memory for a node's output: that of a result of the run, if it is to be in host memory and the device uses such
    /// memory in place.
    fn output(&mut self, node: &Node) -> Result<Stored, DeviceError> {
        let (id, stride) = (node.output, self.columns_of(node.output).len());
        let len = self.rows(id).len() * stride;
        let to_host = matches!(self.work.task, Task::Nodes { to: MemoryDomain::Host, .. });
        let is_result = to_host && self.writes.contains(&id);
        let border = if is_result { self.model.memory.border(len) } else { None };
        let place = match border {
            Some((slot, shared)) => {
                self.commands.result(HostValue { id, width: stride, slot });
                Place::Shared(shared)
            }
            None => {
                let place = self.model.memory.take(len * size_of::<f32>());
                place.map_err(|error| self.failed(&error))?
            }
        };
        Ok(Stored { buffer: Arc::new(place), at: 0, stride, is_part: true })
    }

    /// Memory for the outputs of nodes side by side, each with all columns.
    fn outputs(&self, nodes: &[Node], rows: usize) -> Result<Vec<Stored>, DeviceError> {
        let width = |node: &Node| self.model.graph.value(node.output).width;
        let stride = nodes.iter().map(width).sum();
        let buffer = self.model.memory.take(rows * stride * size_of::<f32>());
        let buffer = Arc::new(buffer.map_err(|error| self.failed(&error))?);
        let mut at = 0;
        let placed = nodes.iter().map(|node| {
            let stored = Stored { buffer: Arc::clone(&buffer), at, stride, is_part: true };
            at += width(node);
            stored
        });
        Ok(placed.collect())
    }

    /// The part's rows of an input, with all columns, or those of the part if this stage wrote it.
    fn input(&mut self, node: &Node, index: usize) -> Result<Stored, DeviceError> {
        let id = node.inputs[index];
        let missing = DeviceError::MissingValue { value: id.0, role: node.role };
        if let Some(at) = id.0.checked_sub(self.nodes.start) {
            return self.written.get(at).and_then(Option::as_ref).cloned().ok_or(missing);
        }
        if let Some(stored) = self.inputs.get(&id) {
            return Ok(stored.clone());
        }
        let tensor = self.work.payload.values.get(id).ok_or(missing)?;
        let (rows, stride) = (self.rows(id), tensor.width);
        let stored = match tensor.device_buffer() {
            Some(buffer) => {
                let value = Value::in_domain(&**buffer, self.model.domain, id)?;
                let (buffer, at) = (Arc::clone(&value.buffer), rows.start * stride);
                Stored { buffer, at, stride, is_part: false }
            }
            None => {
                let in_place = tensor.slot().and_then(|slot| self.model.memory.of_slot(slot));
                match in_place {
                    Some(shared) => {
                        self.commands.hold_payload(&self.work.payload);
                        let (buffer, at) = (Arc::new(Place::Shared(shared)), rows.start * stride);
                        Stored { buffer, at, stride, is_part: false }
                    }
                    None => self.uploaded(id, rows, stride)?,
                }
            }
        };
        self.inputs.insert(id, stored.clone());
        Ok(stored)
    }

    /// A copy of the rows of an input that the device cannot read in place.
    fn uploaded(
        &mut self,
        id: ValueId,
        rows: Range<usize>,
        stride: usize,
    ) -> Result<Stored, DeviceError> {
        let elements = rows.start * stride..rows.end * stride;
        let place = self.model.memory.copy(&self.work.payload, id, elements, self.commands);
        let place = place.map_err(|error| self.failed(&error))?;
        Ok(Stored { buffer: Arc::new(place), at: 0, stride, is_part: false })
    }

    /// As [`input`](Encoder::input), with all columns.
    fn whole(&mut self, node: &Node, index: usize) -> Result<Stored, DeviceError> {
        let stored = self.input(node, index)?;
        if stored.is_part && !self.work.part.features.is_whole() {
            return Err(self.unsupported(node, "a value of which only some features are here"));
        }
        Ok(stored)
    }

    /// As [`input`](Encoder::input), with the part's columns.
    fn columns(&mut self, node: &Node, index: usize) -> Result<Stored, DeviceError> {
        let mut stored = self.input(node, index)?;
        if !stored.is_part {
            stored.at += self.columns_of(node.inputs[index]).start;
        }
        Ok(stored)
    }
}
