//! What a run leaves behind: values in host memory, or in the device's.

use std::sync::Arc;

use super::OpenClDevice;
use crate::argmax;
use crate::commands::{Commands, Results};
use crate::memory::Place;
use crate::values::Value;
use lapwing_model::device::{DeviceError, MemoryDomain, Tensor, TensorSet, Work};
use lapwing_model::graph::ValueId;

/// What a run leaves in the device's memory.
#[derive(Default)]
pub(super) struct Outputs {
    /// Values with their width and length.
    pub(super) values: Vec<(ValueId, usize, usize, Arc<Place>)>,
    /// The logits among them whose largest values come back with the run: rows and width.
    pub(super) top: Option<(ValueId, usize, usize)>,
}

impl OpenClDevice {
    /// Puts a value that a run has written where it is wanted.
    pub(super) fn output(
        &mut self,
        commands: &mut Commands,
        work: &Work,
        (id, to, place): (ValueId, MemoryDomain, Arc<Place>),
        outputs: &mut Outputs,
    ) -> Result<(), DeviceError> {
        let spec = self.model.graph.value(id);
        let width = work.part.features.of_width(spec.width).len();
        let rows = work.part.rows_of(spec, &work.payload.batch).len();
        let is_here = matches!(&*place, Place::Shared(_));
        if to == MemoryDomain::Host && !is_here {
            return self.download(commands, (id, width, rows * width), &place);
        }
        if id == self.model.graph.output() && rows > 0 && work.part.features.is_whole() {
            let added = argmax::add(&mut self.model, commands, &place, (rows, width));
            added.map_err(|error| error.of_run(&self.info.name))?;
            outputs.top = Some((id, rows, width));
        }
        if !is_here {
            outputs.values.push((id, width, rows * width, place));
        }
        Ok(())
    }

    fn download(
        &self,
        commands: &mut Commands,
        (id, width, len): (ValueId, usize, usize),
        place: &Place,
    ) -> Result<(), DeviceError> {
        let slot = self.model.memory.slots.take(len);
        let added = commands.download(place.buffer(), (id, width), slot);
        added.map_err(|error| error.of_run(&self.info.name))
    }

    pub(super) fn transfer(
        &self,
        commands: &mut Commands,
        work: &Work,
        (id, to): (ValueId, MemoryDomain),
        outputs: &mut Outputs,
    ) -> Result<(), DeviceError> {
        let missing = DeviceError::MissingValue { value: id.0, role: "transfer" };
        let tensor = work.payload.values.get(id).ok_or(missing)?;
        let (width, len) = (tensor.width, tensor.rows() * tensor.width);
        let name = &self.info.name;
        match (tensor.device_buffer(), to) {
            (None, MemoryDomain::Host) => Ok(()),
            (Some(buffer), MemoryDomain::Host) => {
                let value = Value::in_domain(&**buffer, self.model.domain, id)?;
                self.download(commands, (id, width, len), &value.buffer)
            }
            (None, _) => {
                let place = self.model.memory.take(len * size_of::<f32>());
                let place = place.map_err(|error| error.of_run(name))?;
                let added = commands.upload_value(place.buffer(), &work.payload, (id, 0..len));
                added.map_err(|error| error.of_run(name))?;
                outputs.values.push((id, width, len, Arc::new(place)));
                Ok(())
            }
            (Some(buffer), to) if buffer.domain() == to => Ok(()),
            (Some(_), _) => Err(DeviceError::OtherMemory { value: id.0 }),
        }
    }

    /// The values of a run that has ended.
    pub(super) fn tensors(&self, outputs: Outputs, results: Results) -> TensorSet {
        let mut tensors = TensorSet::default();
        let mut bytes = results.bytes.into_iter();
        let mut top = |id: ValueId| {
            let (_, rows, width) = outputs.top.filter(|(logits, ..)| *logits == id)?;
            Some(argmax::read(&bytes.next()?, rows, width))
        };
        for (id, width, slot) in results.values {
            tensors.put(id, Tensor::new(width, slot).with_top(top(id)));
        }
        for (id, width, len, buffer) in outputs.values {
            let top = top(id);
            let value = Value {
                device: self.info.name.clone(),
                session: Arc::clone(&self.model.session),
                domain: self.model.domain,
                buffer,
                len,
                top,
            };
            tensors.put(id, Tensor::in_device(width, Arc::new(value)));
        }
        tensors
    }
}
