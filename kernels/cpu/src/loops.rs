//! Loop bodies, generic over the vectors of [`simd`](crate::simd): each is inlined into a function
//! of every instruction set in [`isa`](crate::isa), and compiled for its features.

pub(crate) mod attn_bf16;
pub(crate) mod attn_matmul;
pub(crate) mod curve;
pub(crate) mod dequantize;
pub(crate) mod elementwise;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) mod formats;
pub(crate) mod gated;
pub(crate) mod gemm_args;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) mod gemm_f32;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) mod gemm_q8;
pub(crate) mod gemm_scalar;
pub(crate) mod kv;
pub(crate) mod layer_norm;
pub(crate) mod linear_attention;
pub(crate) mod logits;
pub(crate) mod prefetch_stream;
pub(crate) mod quantize;
pub(crate) mod quantize_row;
pub(crate) mod rms_norm;
pub(crate) mod rope;
pub(crate) mod softmax;
pub(crate) mod stream;
pub(crate) mod sums;
pub(crate) mod tile_shape;
pub(crate) mod unpack;
