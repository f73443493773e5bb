//! Devices that only run prepared static graphs, such as NPUs: the back-end interface, the cache of
//! graphs, their check against the reference, and a back end in software. Back ends for the libraries of
//! vendors are crates of their own.
//!
//! An [`NpuDevice`] is a [`Device`](lapwing_model::device::Device) on top of any [`NpuBackend`]. It keeps
//! prepared graphs in a [`GraphCache`] with a byte budget and checks each graph once before its
//! first use. It splits rows over graphs of the sizes in the plan, pads them with zeros, and drops
//! the padding from the results.

pub mod array;
mod backend;
pub mod buffers;
mod cache;
mod check;
mod device;
pub mod empty_share;
mod fixed_point;
mod graph_builder;
mod graph_folder;
mod int8;
pub mod library_path;
pub mod lowering;
pub mod model_weights;
mod pace;
mod pacer;
mod qnn_settings;
mod queue;
mod rounding;
mod spec;
mod stage_run;
mod systolic;
pub mod weight_form;

pub use backend::{BUCKETS, BackendInfo, GraphMemory, NpuBackend, PreparedGraph, Started};
pub use cache::{CacheStats, CachedGraph, Ensured, EnsuredAll, GraphCache, Requester};
pub use check::{TOLERANCE_FLOAT, TOLERANCE_ROUNDED};
pub use device::{NpuDevice, NpuDeviceParts};
pub use fixed_point::{FixedPoint, FixedProduct, FixedProducts};
pub use graph_builder::CheckedGraph;
pub use int8::{
    ActivationRange, ActivationRanges, MeasureRangesError, NotFinite, OutlierCounter,
    OutlierCounts, ProductScale, RangeRecorder, RangesFileError, Scales, ScalesError, StaticInt8,
};
pub use qnn_settings::{QnnActivations, QnnSettings};
pub use queue::NpuQueue;
pub use rounding::ProductRounding;
pub use spec::{GraphSpec, Operand, Port, Source, SpecNode};
pub use systolic::Systolic;
pub use weight_form::WeightForm;
