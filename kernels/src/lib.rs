//! Everything that computes: tensors, quantisation, weight files, op graphs, model architectures, the
//! CPU back end, the back-end interface for NPUs, KV pages, and a naive reference implementation as
//! test oracle. This crate uses no clock, no channels and no logging.

mod aligned;
mod binary16;
pub mod completion;
pub mod cost;
pub mod cpu;
pub mod device;
pub mod formats;
pub mod graph;
mod kept_file;
pub mod kv;
mod leave;
pub mod mask;
pub mod merge;
pub mod model;
pub mod npu;
pub mod op;
#[cfg(feature = "opencl")]
pub mod opencl;
pub mod ops;
pub mod part;
pub mod quant;
pub mod reference;
pub mod requant;
mod signals;
pub mod sync;
pub mod tensor;
pub mod weights;

pub use leave::leave;
