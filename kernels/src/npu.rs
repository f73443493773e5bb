//! Devices that run prepared, static graphs only, such as NPUs: what a back end has to offer, the
//! cache of graphs, their check against the reference, and a back end in software.
//!
//! A [`NpuDevice`] is a [`Device`](crate::device::Device) over any [`NpuBackend`]. It keeps graphs
//! in a [`GraphCache`] of a byte budget, each checked once before it serves, and gives every run of
//! rows to graphs of the sizes that the plan says, padded with zeros which are dropped afterwards.

pub mod array;
mod backend;
mod cache;
mod check;
mod device;
mod maker;
mod spec;
mod systolic;

pub use backend::{BackendInfo, NpuBackend, PreparedGraph};
pub use cache::{CacheStats, GraphCache};
pub use check::{TOLERANCE_FLOAT, TOLERANCE_ROUNDED};
pub use device::{NpuDevice, NpuDeviceParts};
pub use spec::{GraphSpec, Operand, Port, Source, SpecNode};
pub use systolic::Systolic;

/// Row counts of prepared graphs: powers of two.
pub const BUCKETS: [usize; 6] = [32, 64, 128, 256, 512, 1024];
