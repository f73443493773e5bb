//! What a model is, for every processor: weight files and formats, tensors, ops with their naive reference, graphs,
//! architectures, masks, KV pages, and the interface of devices. It computes nothing but the reference.

pub mod aligned;
pub mod binary16;
pub mod completion;
pub mod cost;
pub mod device;
pub mod formats;
pub mod graph;
pub mod kept_file;
pub mod kv;
mod leave;
pub mod mask;
pub mod merge;
pub mod model;
pub mod op;
pub mod ops;
pub mod part;
pub mod quant;
pub mod reference;
pub mod requant;
pub mod signals;
pub mod sync;
pub mod tensor;
pub mod weights;

pub use leave::leave;
