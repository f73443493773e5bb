//! What a run leaves behind: values in host memory, or in the device's.

use std::sync::Arc;

use crate::argmax;
use crate::commands::{Commands, HostValue, Results};
use crate::error::OpenClError;
use crate::memory::Place;
use crate::model::Model;
use crate::values::Value;
use lapwing_model::device::{DeviceError, MemoryDomain, Tensor, TensorSet, Work};
use lapwing_model::graph::ValueId;

/// A value in the device's memory.
struct InDevice {
    id: ValueId,
    /// Values of a row.
    width: usize,
    /// Values of all rows.
    len: usize,
    place: Arc<Place>,
}

/// Logits whose largest values come back with the run.
struct Reduced {
    id: ValueId,
    rows: usize,
    width: usize,
}

/// What a run leaves in the device's memory.
#[derive(Default)]
pub(super) struct Outputs {
    values: Vec<InDevice>,
    top: Option<Reduced>,
}

impl Outputs {
    /// The values of a run of a model that has ended.
    pub(super) fn tensors(self, model: &Model, results: Results) -> TensorSet {
        let mut tensors = TensorSet::default();
        let mut bytes = results.bytes.into_iter();
        let mut top = |id: ValueId| {
            let Reduced { rows, width, .. } = self.top.as_ref().filter(|logits| logits.id == id)?;
            Some(argmax::read(&bytes.next()?, *rows, *width))
        };
        for HostValue { id, width, slot } in results.values {
            tensors.put(id, Tensor::new(width, slot).with_top(top(id)));
        }
        for InDevice { id, width, len, place } in self.values {
            let value = Value {
                device: model.name.clone(),
                session: Arc::clone(&model.session),
                domain: model.domain,
                buffer: place,
                len,
                top: top(id),
            };
            tensors.put(id, Tensor::in_device(width, Arc::new(value)));
        }
        tensors
    }
}

/// Adds the commands that put the values of a run where they are wanted.
pub(super) struct Delivery<'a> {
    model: &'a mut Model,
    commands: &'a mut Commands,
    work: &'a Work,
    to: MemoryDomain,
    outputs: Outputs,
}

impl<'a> Delivery<'a> {
    pub(super) fn new(
        model: &'a mut Model,
        commands: &'a mut Commands,
        work: &'a Work,
        to: MemoryDomain,
    ) -> Delivery<'a> {
        Delivery { model, commands, work, to, outputs: Outputs::default() }
    }

    /// What the run leaves in the device's memory.
    pub(super) fn outputs(self) -> Outputs {
        self.outputs
    }

    /// Puts a value that a run has written where it is wanted.
    pub(super) fn output(&mut self, id: ValueId, place: Arc<Place>) -> Result<(), DeviceError> {
        let Work { part, payload, .. } = self.work;
        let spec = self.model.graph.value(id);
        let width = part.features.of_width(spec.width).len();
        let rows = part.rows_of(spec, &payload.batch).len();
        let is_here = matches!(&*place, Place::Shared(_));
        if self.to == MemoryDomain::Host && !is_here {
            return self.download(id, width, rows * width, &place);
        }
        if id == self.model.graph.output() && rows > 0 && part.features.is_whole() {
            let added = argmax::add(self.model, self.commands, &place, rows, width);
            added.map_err(|error| self.failed(&error))?;
            self.outputs.top = Some(Reduced { id, rows, width });
        }
        if !is_here {
            self.outputs.values.push(InDevice { id, width, len: rows * width, place });
        }
        Ok(())
    }

    fn download(
        &mut self,
        id: ValueId,
        width: usize,
        len: usize,
        place: &Place,
    ) -> Result<(), DeviceError> {
        let slot = self.model.memory.slots.take(len);
        let added = self.commands.download(place.buffer(), HostValue { id, width, slot });
        added.map_err(|error| self.failed(&error))
    }

    /// Copies a value of the payload to where it is wanted, unless it is there.
    pub(super) fn transfer(&mut self, id: ValueId) -> Result<(), DeviceError> {
        let payload = &self.work.payload;
        let missing = DeviceError::MissingValue { value: id.0, role: "transfer" };
        let tensor = payload.values.get(id).ok_or(missing)?;
        let (width, len) = (tensor.width, tensor.rows() * tensor.width);
        match (tensor.device_buffer(), self.to) {
            (None, MemoryDomain::Host) => Ok(()),
            (Some(buffer), MemoryDomain::Host) => {
                let value = Value::in_domain(&**buffer, self.model.domain, id)?;
                self.download(id, width, len, &value.buffer)
            }
            (None, _) => {
                let place = self.model.memory.copy(payload, id, 0..len, self.commands);
                let place = Arc::new(place.map_err(|error| self.failed(&error))?);
                self.outputs.values.push(InDevice { id, width, len, place });
                Ok(())
            }
            (Some(buffer), to) if buffer.domain() == to => Ok(()),
            (Some(_), _) => Err(DeviceError::OtherMemory { value: id.0 }),
        }
    }

    fn failed(&self, error: &OpenClError) -> DeviceError {
        error.of_run(&self.model.name)
    }
}
