//! Packing: converts stored weight matrices to tiles on the pool, and keeps them in a file between
//! starts.

pub(crate) mod cache;
pub(crate) mod error;
pub(crate) mod load;
mod matrix;
mod pieces;
pub(crate) mod source;
#[cfg(test)]
mod tests;
mod tiles;

pub use cache::error::{CacheReadError, CacheWriteError, MustMap};
pub use cache::report::{NotMapped, PackCache, PackReport, PackedMemory};
pub use error::PackError;
pub use source::FileMatrix;
