//! Values in a device's memory.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::memory::Place;
use super::session::{Lane, Session};
use lapwing_model::device::{DeviceBuffer, DeviceError, MemoryDomain, TopLogit};
use lapwing_model::formats::DType;
use lapwing_model::graph::ValueId;

/// A value that a run has written.
pub(super) struct Value {
    pub(super) device: String,
    pub(super) session: Arc<Session>,
    pub(super) domain: MemoryDomain,
    pub(super) buffer: Arc<Place>,
    pub(super) len: usize,
    pub(super) top: Option<Vec<Option<TopLogit>>>,
}

impl Value {
    /// The value `id` in a buffer of the memory `domain`.
    ///
    /// # Errors
    /// [`DeviceError::OtherMemory`] for other buffers.
    pub(super) fn in_domain(
        buffer: &dyn DeviceBuffer,
        domain: MemoryDomain,
        id: ValueId,
    ) -> Result<&Value, DeviceError> {
        let value = buffer.as_any().downcast_ref::<Value>();
        let value = value.filter(|value| value.domain == domain);
        value.ok_or(DeviceError::OtherMemory { value: id.0 })
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Value({} values on {})", self.len, self.device)
    }
}

impl DeviceBuffer for Value {
    fn domain(&self) -> MemoryDomain {
        self.domain
    }

    fn len(&self) -> usize {
        self.len
    }

    fn dtype(&self) -> DType {
        DType::F32
    }

    fn read(&self, values: &mut [f32]) -> Result<(), DeviceError> {
        let bytes = bytemuck::cast_slice_mut(&mut values[..self.len]);
        // The run that wrote it is complete, so the copy does not wait behind later runs.
        let read = self.session.read(Lane::Transfer, self.buffer.buffer(), 0, bytes);
        read.map_err(|error| error.of_run(&self.device))
    }

    fn top(&self) -> Option<&[Option<TopLogit>]> {
        self.top.as_deref()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
