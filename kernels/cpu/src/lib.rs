//! The CPU back end: ops over row-major `f32` activations, on one thread pool, with loops compiled for
//! one instruction set.
//!
//! The modules form layers, and each layer uses only those above it in this list:
//!
//! 1. data and machine: `matrix`, `packed`, `caches`, `cpuid`, and `simd` (vectors of 16 `f32`, prefetch)
//! 2. `loops`: loop bodies, generic over the vectors
//! 3. `isa`: the bodies compiled for each instruction set, beside its own intrinsics, in dispatch tables
//! 4. `pool` and `context`: the threads, and [`Cpu`], which every op takes
//! 5. the drivers: one file or folder for each op (`gemm`, `attention`, …), `pack`, `weights`, `device`,
//!    and `roofline`
//!
//! The result of a row never depends on how many rows are computed with it, on the number of threads, or
//! on how the work was divided: every output value is accumulated in one fixed order.

pub(crate) mod attention;
mod caches;
mod channel_sums;
pub(crate) mod context;
mod cpuid;
mod device;
mod elementwise;
mod embed;
mod experts;
mod gemm;
mod head;
mod isa;
mod join_heads;
mod kv_rows;
mod layer_norm;
mod linear_attention;
mod logits;
mod loops;
mod matrix;
pub(crate) mod pack;
mod packed;
mod pool;
mod quantize;
mod rms_norm;
pub mod roofline;
pub(crate) mod rope;
mod route;
mod short_conv;
mod simd;
mod sums;
pub(crate) mod weights;

pub use attention::{AttentionJob, AttentionSequence, attention};
pub use caches::Caches;
pub use context::Cpu;
pub use device::{CpuDevice, CpuDeviceParts};
pub use elementwise::{
    SomeColumns, add, add_assign, columns, curve, gated, multiply, scale, scale_by, soft_cap,
};
pub use embed::{EmbedError, Table, add_rows, embed_rows};
pub use experts::{ExpertMatrices, Experts, Mixture, experts, mix};
pub use gemm::matmul;
pub use gemm::{Dispatch, Epilogue, GemmInput, Matmul, Product, matmuls};
pub use head::{HeadError, HeadWeights};
pub use isa::Isa;
pub use join_heads::{JoinedHeads, join_heads};
pub use kv_rows::KvRows;
pub use lapwing_model::quant::Activations;
pub use layer_norm::{NormGroups, layer_norm};
pub use linear_attention::{LinearAttention, WideRows, linear_attention};
pub use logits::{argmax, logprob};
pub use loops::gated::Gating;
pub use loops::layer_norm::LayerNormWeights;
pub use loops::quantize::{Q8Block, QuantScheme};
pub use loops::quantize_row::{RowScale, fill as fill_scaled};
pub use loops::rope::RopeShape;
pub use loops::tile_shape::TileShape;
pub use matrix::{Matrix, MatrixError};
pub use pack::{
    CacheReadError, CacheWriteError, FileMatrix, MustMap, NotMapped, PackCache, PackError,
    PackReport, PackedMemory,
};
pub use packed::{BeyondMemory, LostWeights, OutputChannels, PackedFault, PackedMatrix};
pub use pool::{ColumnBlock, CoreSet, CoresError, Grid, PinnedThread, Pool, THREADS_MAX};
pub use quantize::Q8Rows;
pub use rms_norm::rms_norm;
pub use rope::{RopeAngles, RopeFreqs, rope};
pub use route::route;
pub use short_conv::{ShortConv, short_conv};
pub use simd::prefetch::PrefetchHint;
pub use sums::{Summands, add_weighted, excess, with_length};
pub use weights::{
    BindError, Held, LockError, PackedUse, PackedUsers, Weights, keep_packed, limit_packed,
    lock_packed, pack_report, packed_bytes, packed_users,
};
