//! The dispatch table of an instruction set, and the macros that fill it from the loop bodies.

use crate::loops::attn_bf16::{Bf16Pair, PairPanel};
use crate::loops::attn_matmul::AttnMatmul;
use crate::loops::gated::Gating;
use crate::loops::gemm_args::{GemmF32, GemmQ8, GemmScratch};
use crate::loops::kv::KvConvert;
use crate::loops::layer_norm::LayerNormWeights;
use crate::loops::linear_attention::HeadRows;
use crate::loops::quantize::{Q8Block, QuantScheme};
use crate::loops::quantize_row::RowScheme;
use crate::loops::rms_norm::RmsNormWeight;
use crate::loops::rope::RowAngles;
use crate::loops::softmax::{RunningSoftmax, SoftmaxStep};
use crate::loops::tile_shape::TileShape;
use crate::matrix::StoredRows;
use crate::packed::tile::TileBytes;
use crate::pool::{ColumnBlock, PlaceParts};
use crate::simd::prefetch::PrefetchOffset;
use lapwing_model::op::Curve;

/// The inner loops of one instruction set. All are safe to call with any lengths; the
/// [`Isa`](crate::isa::Isa) chooses the table once.
#[derive(Debug)]
pub(crate) struct Kernels {
    /// The register blocks of the matmuls.
    pub(crate) shape: TileShape,
    /// Unpacks up to 16 rows of a quantised matrix, a byte per value, `[k/4][16 rows][4]`.
    pub(crate) unpack_tile: fn(&StoredRows<'_>, &mut [u8]),
    /// Rows of quantised activations times some quantised tiles: `[rows][16 per tile]`.
    pub(crate) gemm_q8: fn(&GemmQ8<'_>, &mut [f32], &mut GemmScratch),
    /// The values of a tile in f32, `[k][16]`, little-endian.
    pub(crate) dequantize_tile: fn(&TileBytes<'_>, &mut [u8]),
    /// Rows of f32 activations times some float tiles: `[rows][16 per tile]`.
    pub(crate) gemm_f32: fn(&GemmF32<'_>, &mut [f32]),
    /// Quantises one row of activations.
    pub(crate) quantize: fn(&[f32], QuantScheme, &mut [Q8Block]),
    /// Quantises one row of activations with one scale; returns the value of integer 0.
    pub(crate) quantize_row: fn(&[f32], RowScheme, &mut [Q8Block]) -> f32,
    /// RMS norm of one row.
    pub(crate) rms_norm: fn(&[f32], &RmsNormWeight<'_>, &mut [f32]),
    /// Layer norm of one row.
    pub(crate) layer_norm: fn(&[f32], &LayerNormWeights<'_>, &mut [f32]),
    /// What exceeds the mean of one row by so many standard deviations.
    pub(crate) excess: fn(&[f32], f32, &mut [f32]),
    /// The sum of the squares of one row.
    pub(crate) square_sum: fn(&[f32]) -> f32,
    /// Rotates the heads of one row.
    pub(crate) rotate: fn(&[f32], &RowAngles<'_>, &mut [f32]),
    /// `gating(gate, up)`.
    pub(crate) gated: fn(Gating, &[f32], &[f32], &mut [f32]),
    /// `out = curve(x)`.
    pub(crate) curve: fn(Curve, &[f32], &mut [f32]),
    /// `x = cap · tanh(x / cap)`.
    pub(crate) soft_cap: fn(&mut [f32], f32),
    /// Changes the state of a head by its rows, and makes what they read.
    pub(crate) linear_attention:
        fn(&HeadRows<'_>, &mut PlaceParts<'_, f32>, &[usize], &mut ColumnBlock<'_, f32>),
    /// `c = a · b` or `c += a · b`, `b` being keys or values as stored.
    pub(crate) attn_matmul: fn(&AttnMatmul<'_>, &mut [f32]),
    /// Attention in pairs of bfloat16, on instruction sets where it is faster.
    pub(crate) attn_bf16: Option<&'static AttnBf16Kernels>,
    /// Reads memory and returns the largest f32 in it; prefetches at the given offset.
    pub(crate) stream_read: fn(&[u8], Option<PrefetchOffset>) -> f32,
    /// Keys or values to f32.
    pub(crate) kv_to_f32: fn(&KvConvert<'_>, &mut [f32]),
    /// f32 to binary16.
    pub(crate) f32_to_f16: fn(&[f32], &mut [u16]),
    /// One step of online softmax for some queries.
    pub(crate) online_softmax_step:
        fn(&mut [f32], &SoftmaxStep<'_>, &mut [RunningSoftmax], &mut [f32]),
    /// `x = a · x + b · y`.
    pub(crate) axpby: fn(&mut [f32], &[f32], f32, f32),
    /// Most queries for which keys and values are read as they are stored: more queries would convert
    /// each of them more than once. 0 where converting costs more than reading f32.
    pub(crate) direct_queries: usize,
    /// `x *= factor`.
    pub(crate) scale: fn(&mut [f32], f32),
    /// `out = x · factor`.
    pub(crate) scale_into: fn(&[f32], f32, &mut [f32]),
    /// `out = a + b`.
    pub(crate) add: fn(&[f32], &[f32], &mut [f32]),
    /// `out = a · b`.
    pub(crate) multiply: fn(&[f32], &[f32], &mut [f32]),
    /// `out += a · b`.
    pub(crate) add_product: fn(&[f32], &[f32], &mut [f32]),
    /// The largest finite logit; −∞ if there is none.
    pub(crate) max_finite: fn(&[f32]) -> f32,
    /// The largest logit that is not NaN; −∞ if there is none.
    pub(crate) max: fn(&[f32]) -> f32,
    /// Σ exp(logit − max).
    pub(crate) sum_exp: fn(&[f32], f32) -> f64,
}

/// The inner loops of attention in pairs of bfloat16. Values are rounded to the nearest bfloat16, ties to
/// even; subnormals become zero.
#[derive(Debug)]
pub(crate) struct AttnBf16Kernels {
    /// `c = a · b` or `c += a · b`.
    pub(crate) matmul: fn(&AttnMatmul<'_, Bf16Pair, PairPanel<'_>>, &mut [f32]),
    /// Keys or values to pairs: rows 2i and 2i + 1 become row i. An odd last row is paired with zeros.
    pub(crate) pack_kv: fn(&KvConvert<'_>, &mut [Bf16Pair]),
    /// f32 to pairs of neighbours. An odd last value is paired with zero.
    pub(crate) round: fn(&[f32], &mut [Bf16Pair]),
}

/// Makes a [`Kernels`] table: the loop bodies, compiled with `$features`, beside the intrinsics of the
/// instruction set (`$own`).
macro_rules! kernels {
    ($features:tt, fma = $fma:literal, lanes = $lanes:ty, $($field:ident = $own:expr),+ $(,)?) => {
        crate::isa::kernels::simd_fns!($features,
            rms_norm(x: &[f32], w: &crate::loops::rms_norm::RmsNormWeight<'_>, out: &mut [f32]) = crate::loops::rms_norm::rms_norm::<$fma>;
            layer_norm(x: &[f32], w: &crate::loops::layer_norm::LayerNormWeights<'_>, out: &mut [f32]) = crate::loops::layer_norm::layer_norm::<$fma>;
            excess(x: &[f32], deviations: f32, out: &mut [f32]) = crate::loops::sums::excess::<$fma>;
            square_sum(x: &[f32]) -> f32 = crate::loops::sums::square_sum::<$fma>;
            rotate(x: &[f32], angles: &crate::loops::rope::RowAngles<'_>, out: &mut [f32]) = crate::loops::rope::rotate::<$fma>;
            soft_cap(x: &mut [f32], cap: f32) = crate::loops::elementwise::soft_cap::<$fma>;
            axpby(x: &mut [f32], y: &[f32], a: f32, b: f32) = crate::loops::elementwise::axpby::<$fma>;
            scale(x: &mut [f32], factor: f32) = crate::loops::elementwise::scale;
            scale_into(x: &[f32], factor: f32, out: &mut [f32]) = crate::loops::elementwise::scale_into;
            add(a: &[f32], b: &[f32], out: &mut [f32]) = crate::loops::elementwise::add;
            multiply(a: &[f32], b: &[f32], out: &mut [f32]) = crate::loops::elementwise::multiply;
            add_product(a: &[f32], b: &[f32], out: &mut [f32]) = crate::loops::elementwise::add_product::<$fma>;
            max_finite(logits: &[f32]) -> f32 = crate::loops::logits::max_finite;
            max(logits: &[f32]) -> f32 = crate::loops::logits::max;
            sum_exp(block: &[f32], max: f32) -> f64 = crate::loops::logits::sum_exp;
            quantize_row(
                x: &[f32],
                scheme: crate::loops::quantize_row::RowScheme,
                out: &mut [crate::loops::quantize::Q8Block]
            ) -> f32 = crate::loops::quantize_row::row;
        );
        crate::isa::kernels::simd_unsafe_fns!($features,
            attn_matmul(p: &crate::loops::attn_matmul::AttnMatmul<'_>, c: &mut [f32]) = crate::loops::attn_matmul::attn_matmul::<$lanes>;
            linear_attention(
                h: &crate::loops::linear_attention::HeadRows<'_>,
                places: &mut crate::pool::PlaceParts<'_, f32>,
                ends: &[usize],
                out: &mut crate::pool::ColumnBlock<'_, f32>
            ) = crate::loops::linear_attention::linear_attention::<$lanes>;
            dequantize_tile(tile: &crate::packed::tile::TileBytes<'_>, to: &mut [u8]) = crate::loops::dequantize::dequantize_tile::<$lanes>;
            stream_read(bytes: &[u8], prefetch: Option<crate::simd::prefetch::PrefetchOffset>) -> f32 = crate::loops::stream::stream_read::<$lanes>;
            kv_to_f32(w: &crate::loops::kv::KvConvert<'_>, out: &mut [f32]) = crate::loops::kv::kv_to_f32::<$lanes>;
            gated(k: crate::loops::gated::Gating, g: &[f32], u: &[f32], out: &mut [f32]) = crate::loops::gated::gated::<$lanes>;
            curve(c: lapwing_model::op::Curve, x: &[f32], out: &mut [f32]) = crate::loops::curve::curve::<$lanes, $fma>;
            f32_to_f16(x: &[f32], out: &mut [u16]) = crate::loops::kv::f32_to_f16::<$lanes>;
            online_softmax_step(
                s: &mut [f32],
                w: &crate::loops::softmax::SoftmaxStep<'_>,
                r: &mut [crate::loops::softmax::RunningSoftmax],
                f: &mut [f32]
            ) = crate::loops::softmax::online_softmax_step::<$lanes>;
        );
        pub(super) static KERNELS: crate::isa::kernels::Kernels = crate::isa::kernels::Kernels {
            rms_norm, layer_norm, excess, square_sum, rotate, gated, curve, soft_cap, axpby, dequantize_tile, attn_matmul, linear_attention, attn_bf16: None,
            stream_read, kv_to_f32, f32_to_f16, online_softmax_step, scale, scale_into, add, multiply, add_product,
            max_finite, max, sum_exp, quantize_row, $($field: $own),+
        };
    };
}

/// A safe function per body, compiled with `$features` (`()` for none).
macro_rules! simd_fns {
    (() , $($name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)? = $body:path;)*) => {
        $(fn $name($($arg: $ty),*) $(-> $ret)? { $body($($arg),*) })*
    };
    ($features:literal, $($name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)? = $body:path;)*) => {
        $(fn $name($($arg: $ty),*) $(-> $ret)? {
            #[target_feature(enable = $features)]
            fn inner($($arg: $ty),*) $(-> $ret)? { $body($($arg),*) }
            // SAFETY: reached only through this module's table, which `Isa` hands out only
            // when the machine has the features.
            unsafe { inner($($arg),*) }
        })*
    };
}

/// As `simd_fns!`, for bodies that are unsafe because they use intrinsics.
macro_rules! simd_unsafe_fns {
    (() , $($name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)? = $body:path;)*) => {
        $(fn $name($($arg: $ty),*) $(-> $ret)? {
            // SAFETY: plain Rust needs no instructions.
            unsafe { $body($($arg),*) }
        })*
    };
    ($features:literal, $($name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)? = $body:path;)*) => {
        $(fn $name($($arg: $ty),*) $(-> $ret)? {
            #[target_feature(enable = $features)]
            fn inner($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: this function is compiled for the features of the vectors.
                unsafe { $body($($arg),*) }
            }
            // SAFETY: reached only through this module's table, which `Isa` hands out only
            // when the machine has the features.
            unsafe { inner($($arg),*) }
        })*
    };
}
pub(super) use {kernels, simd_fns, simd_unsafe_fns};

/// A `gemm_q8` of [`loops::gemm_q8`](crate::loops::gemm_q8), compiled with `$features` for the dot
/// products `$dot`.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! gemm_q8_fn {
    ($name:ident, $features:literal, $dot:ty) => {
        fn $name(
            job: &crate::loops::gemm_args::GemmQ8<'_>,
            out: &mut [f32],
            scratch: &mut crate::loops::gemm_args::GemmScratch,
        ) {
            /// # Safety
            /// The machine has the features, and lengths are as
            /// [`GemmQ8::check`](crate::loops::gemm_args::GemmQ8::check) demands.
            #[target_feature(enable = $features)]
            unsafe fn tiles<F: crate::loops::formats::Format>(
                job: &crate::loops::gemm_args::GemmQ8<'_>,
                out: &mut [f32],
                scratch: &mut crate::loops::gemm_args::GemmScratch,
            ) {
                // SAFETY: by the caller; this function is compiled for the features of `$dot`.
                unsafe { crate::loops::gemm_q8::gemm_q8::<$dot, F>(job, out, scratch) }
            }
            job.check(out);
            if job.rows == 0 || out.is_empty() {
                return;
            }
            // SAFETY: reached only through this module's tables, which `Isa` hands out only when
            // the machine has the features; `check` has compared all lengths.
            unsafe {
                lapwing_model::formats::with_format!(job.weight.dtype(), tiles(job, out, scratch))
            }
        }
    };
}
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) use gemm_q8_fn;
