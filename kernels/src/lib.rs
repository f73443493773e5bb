//! Kernels compute: tensors, quantisation, weight files, op graphs, model architectures,
//! CPU back end, KV pages, and a naive reference as oracle. No clock, no channel, no logging.

pub mod cpu;
pub mod quant;
pub mod weights;
