//! Matrices that cross the borders between stages, and the buffers that hold them.

mod matrix;
pub(crate) mod set;
mod slot;

pub use matrix::{DeviceBuffer, HostView, Tensor, TopLogit};
pub use set::TensorSet;
pub use slot::{MappedMemory, Slot, SlotPool, SlotSource, SlotStats};

#[cfg(all(test, not(loom)))]
mod tests;
