//! Values in a device's memory.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::memory::Place;
use super::session::{Lane, Session};
use lapwing_model::device::{DeviceBuffer, DeviceError, MemoryDomain, TopLogit};
use lapwing_model::formats::DType;

/// A value that a run has written.
pub(super) struct Value {
    pub(super) device: String,
    pub(super) session: Arc<Session>,
    pub(super) domain: MemoryDomain,
    pub(super) buffer: Arc<Place>,
    pub(super) len: usize,
    pub(super) top: Option<Vec<Option<TopLogit>>>,
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
