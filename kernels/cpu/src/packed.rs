//! Weight matrices laid out once for the matmuls: tiles of 16 output channels, each one contiguous stream,
//! in about the stored size and, unless they are requantised, with exactly the stored values.

pub(crate) mod beyond;
pub(crate) mod file_data;
pub(crate) mod group;
pub(crate) mod layout;
mod map;
pub(crate) mod mapped;
pub(crate) mod matrix;
pub(crate) mod memory;
pub(crate) mod tile;

pub use beyond::BeyondMemory;
pub use file_data::PackedFault;
pub use mapped::LostWeights;
pub use matrix::{OutputChannels, PackedMatrix};
