//! Matrices in host memory or in a device's.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::slot::{Slot, SlotPool};
use crate::device::error::DeviceError;
use crate::device::info::MemoryDomain;
use crate::formats::DType;

/// The most likely column of a row of logits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopLogit {
    /// The column with the largest value; the first one among equals.
    pub column: u32,
    /// Natural logarithm of its probability.
    pub logprob: f32,
}

/// Values in the memory of a device.
pub trait DeviceBuffer: Send + Sync + fmt::Debug {
    /// The memory that holds them.
    fn domain(&self) -> MemoryDomain;

    /// Number of values.
    fn len(&self) -> usize;

    /// Whether there is no value.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Their format.
    fn dtype(&self) -> DType;

    /// Copies all values to the host, as f32. Waits for the copy, and for the run that writes the
    /// buffer.
    ///
    /// # Errors
    /// [`DeviceError`] when the device has failed.
    fn read(&self, values: &mut [f32]) -> Result<(), DeviceError>;

    /// For the logits of a run: the most likely column of each row, if the device computed it beside
    /// them, so that greedy decoding need not copy the logits. `None` for a row of NaNs.
    fn top(&self) -> Option<&[Option<TopLogit>]> {
        None
    }

    /// The concrete type, by which its device finds the memory object again.
    fn as_any(&self) -> &dyn Any;
}

/// A matrix `[rows, width]`, row-major: f32 in host memory, or in the format and memory of a
/// device.
#[derive(Debug, Default)]
pub struct Tensor {
    /// Values per row.
    pub width: usize,
    buffer: Buffer,
    /// Of logits in host memory, as [`DeviceBuffer::top`].
    top: Option<Vec<Option<TopLogit>>>,
}

#[derive(Debug)]
enum Buffer {
    Host(Slot),
    Device(Arc<dyn DeviceBuffer>),
}

impl Default for Buffer {
    fn default() -> Buffer {
        Buffer::Host(Slot::default())
    }
}

/// A matrix as the host sees it.
#[derive(Debug)]
pub enum HostView<'a> {
    /// It is in host memory.
    InPlace(&'a [f32]),
    /// A copy of device memory.
    Copied(Slot),
}

impl Deref for HostView<'_> {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        match self {
            HostView::InPlace(values) => values,
            HostView::Copied(slot) => slot,
        }
    }
}

impl Tensor {
    /// A matrix in host memory, of rows of `width` values.
    pub fn new(width: usize, data: impl Into<Slot>) -> Tensor {
        Tensor { width, buffer: Buffer::Host(data.into()), top: None }
    }

    /// A matrix in a device's memory, of rows of `width` values.
    pub fn in_device(width: usize, buffer: Arc<dyn DeviceBuffer>) -> Tensor {
        Tensor { width, buffer: Buffer::Device(buffer), top: None }
    }

    /// The matrix with the most likely column of each row, which the device that wrote it in host memory has found.
    #[must_use]
    pub fn with_top(self, top: Option<Vec<Option<TopLogit>>>) -> Tensor {
        Tensor { top, ..self }
    }

    /// The most likely column of each row, if a device has found it. `None` for a row of NaNs.
    pub fn top(&self) -> Option<&[Option<TopLogit>]> {
        match &self.buffer {
            Buffer::Host(_) => self.top.as_deref(),
            Buffer::Device(buffer) => buffer.top(),
        }
    }

    /// Where it is.
    pub fn domain(&self) -> MemoryDomain {
        match &self.buffer {
            Buffer::Host(_) => MemoryDomain::Host,
            Buffer::Device(buffer) => buffer.domain(),
        }
    }

    /// Format of its values.
    pub fn dtype(&self) -> DType {
        match &self.buffer {
            Buffer::Host(_) => DType::F32,
            Buffer::Device(buffer) => buffer.dtype(),
        }
    }

    /// Its values, if they are in host memory.
    pub fn host(&self) -> Option<&[f32]> {
        self.slot().map(|slot| &**slot)
    }

    /// Its values, to be changed, if they are in host memory.
    pub fn host_mut(&mut self) -> Option<&mut [f32]> {
        self.top = None;
        match &mut self.buffer {
            Buffer::Host(slot) => Some(slot),
            Buffer::Device(_) => None,
        }
    }

    /// Its host buffer, if it is in host memory.
    pub fn slot(&self) -> Option<&Slot> {
        match &self.buffer {
            Buffer::Host(slot) => Some(slot),
            Buffer::Device(_) => None,
        }
    }

    /// Its buffer in a device's memory, if it is there.
    pub fn device_buffer(&self) -> Option<&Arc<dyn DeviceBuffer>> {
        match &self.buffer {
            Buffer::Host(_) => None,
            Buffer::Device(buffer) => Some(buffer),
        }
    }

    /// Its values on the host: in place, or copied into a slot of `slots` after a wait for the
    /// device.
    ///
    /// # Errors
    /// [`DeviceError`] when the device has failed.
    pub fn host_view(&self, slots: &SlotPool) -> Result<HostView<'_>, DeviceError> {
        match &self.buffer {
            Buffer::Host(slot) => Ok(HostView::InPlace(slot)),
            Buffer::Device(buffer) => {
                let mut slot = slots.take(buffer.len());
                buffer.read(&mut slot)?;
                Ok(HostView::Copied(slot))
            }
        }
    }

    /// A copy in host memory, in a slot of `slots`.
    ///
    /// # Errors
    /// [`DeviceError`] when the device that holds it has failed.
    pub fn copied(&self, slots: &SlotPool) -> Result<Tensor, DeviceError> {
        let mut slot = slots.take(self.len());
        match &self.buffer {
            Buffer::Host(values) => slot.copy_from_slice(values),
            Buffer::Device(buffer) => buffer.read(&mut slot)?,
        }
        Ok(Tensor::new(self.width, slot))
    }

    /// One row.
    ///
    /// # Panics
    /// When the matrix is not in host memory, or has no such row.
    pub fn row(&self, row: usize) -> &[f32] {
        let values = self.host().expect("a matrix in host memory");
        &values[row * self.width..(row + 1) * self.width]
    }

    fn len(&self) -> usize {
        match &self.buffer {
            Buffer::Host(slot) => slot.len(),
            Buffer::Device(buffer) => buffer.len(),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.len().checked_div(self.width).unwrap_or(0)
    }

    /// Bytes of its values.
    pub fn bytes(&self) -> u64 {
        (self.len() * self.dtype().block_bytes() / self.dtype().block_len()) as u64
    }
}
