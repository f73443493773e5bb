//! Where the values of a model's runs are: in buffers of the device alone, or in memory that the host uses, too.

use std::ops::Range;
use std::sync::Arc;

use super::commands::Commands;
use super::error::OpenClError;
use super::pool::{BufferPool, Pooled};
use super::session::{Buffer, Session, SharedBuffer, SharedSlot};
use super::shared::SharedMemory;
use lapwing_model::device::{MappedMemory, Payload, Slot, SlotPool, SlotSource};
use lapwing_model::graph::ValueId;

/// Memory that kernels read and write.
#[derive(Debug)]
pub(super) enum Place {
    /// Of the device alone.
    Pooled(Pooled),
    /// Of a slot, which the run holds until it has ended.
    Shared(Arc<SharedBuffer>),
}

impl Place {
    pub(super) fn buffer(&self) -> &Buffer {
        match self {
            Place::Pooled(pooled) => pooled.buffer(),
            Place::Shared(shared) => shared.buffer(),
        }
    }
}

/// The buffer of mapped memory, if commands of the session may use it.
pub(super) fn shared_by(memory: &dyn MappedMemory, session: &Session) -> Option<Arc<SharedBuffer>> {
    let shared = memory.as_any().downcast_ref::<SharedSlot>()?.shared();
    shared.is_of(session).then(|| Arc::clone(shared))
}

/// The memory of a model's runs.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) session: Arc<Session>,
    pub(super) pool: Arc<BufferPool>,
    /// Slots for values at borders, which all devices of the engine share.
    pub(super) slots: SlotPool,
    /// Slots for what the host writes for one run, or reads after it; `None` where that is copied.
    inputs: Option<SlotPool>,
}

impl Memory {
    pub(super) fn new(
        session: &Arc<Session>,
        slots: SlotPool,
        shared: Option<Arc<SharedMemory>>,
    ) -> Memory {
        let pool = BufferPool::new(session);
        let inputs = shared.map(|shared| SlotPool::mapped(0, 0, shared as Arc<dyn SlotSource>));
        Memory { session: Arc::clone(session), pool, slots, inputs }
    }

    /// Memory of the device alone, of at least `bytes` bytes.
    pub(super) fn take(&self, bytes: usize) -> Result<Place, OpenClError> {
        Ok(Place::Pooled(self.pool.take(bytes)?))
    }

    /// The buffer of a slot that the device uses in place.
    pub(super) fn of_slot(&self, slot: &Slot) -> Option<Arc<SharedBuffer>> {
        shared_by(slot.mapped()?, &self.session)
    }

    /// A slot for a value at a border that the device writes in place; `None` where it is to be copied.
    pub(super) fn border(&self, values: usize) -> Option<(Slot, Arc<SharedBuffer>)> {
        self.inputs.as_ref()?;
        let slot = self.slots.take(values);
        let shared = self.of_slot(&slot)?;
        Some((slot, shared))
    }

    /// A slot of `bytes` bytes that host and device use in place during one run; `None` where they are copied.
    pub(super) fn scratch(&self, bytes: usize) -> Option<(Slot, Arc<SharedBuffer>)> {
        let slot = self.inputs.as_ref()?.take(bytes.div_ceil(size_of::<f32>()));
        let shared = self.of_slot(&slot)?;
        Some((slot, shared))
    }

    /// A copy of elements of a value of a payload, which is in host memory and cannot be used in place.
    pub(super) fn copy(
        &self,
        payload: &Arc<Payload>,
        id: ValueId,
        elements: Range<usize>,
        commands: &mut Commands,
    ) -> Result<Place, OpenClError> {
        let place = self.take(elements.len() * size_of::<f32>())?;
        commands.upload_value(place.buffer(), payload, id, elements)?;
        Ok(place)
    }

    /// Memory with bytes that a run reads.
    pub(super) fn input(
        &self,
        bytes: &[u8],
        commands: &mut Commands,
    ) -> Result<Place, OpenClError> {
        let Some((mut slot, shared)) = self.scratch(bytes.len()) else {
            let place = self.take(bytes.len())?;
            commands.upload(place.buffer(), 0, bytes.into())?;
            return Ok(place);
        };
        bytemuck::cast_slice_mut::<f32, u8>(&mut slot)[..bytes.len()].copy_from_slice(bytes);
        commands.hold(slot);
        Ok(Place::Shared(shared))
    }
}
