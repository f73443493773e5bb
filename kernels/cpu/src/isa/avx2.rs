//! AVX2 with FMA and F16C.
#![expect(unsafe_code, reason = "calls into code compiled for more features than the crate")]

pub(super) mod dot_i8;
mod quantize;

use crate::isa::kernels;
use crate::loops::gemm_args::GemmF32;
use crate::loops::gemm_q8::tile_shape;
use crate::loops::{gemm_f32, unpack};
use crate::matrix::StoredRows;
use crate::simd::avx2::Avx2F32x16;
use crate::simd::f32x16::F32x16;
use dot_i8::Maddubs;

kernels::kernels!(
    "avx2,fma,f16c",
    fma = true,
    lanes = Avx2F32x16,
    shape = tile_shape::<Maddubs>(),
    gemm_q8 = gemm_q8,
    gemm_f32 = gemm_f32,
    quantize = quantize::quantize,
    unpack_tile = unpack_tile,
    direct_queries = <Avx2F32x16 as F32x16>::ROWS,
);

kernels::gemm_q8_fn!(gemm_q8, "avx2,fma,f16c", Maddubs);

fn gemm_f32(job: &GemmF32<'_>, out: &mut [f32]) {
    #[target_feature(enable = "avx2,fma,f16c")]
    fn body(job: &GemmF32<'_>, out: &mut [f32]) {
        // SAFETY: this function is compiled for the features of the vectors.
        unsafe { gemm_f32::gemm_f32::<Avx2F32x16>(job, out) }
    }
    // SAFETY: reached only through this module's table, which `Isa` hands out only when the
    // machine has the features.
    unsafe { body(job, out) }
}

fn unpack_tile(rows: &StoredRows<'_>, to: &mut [u8]) {
    #[target_feature(enable = "avx2,fma,f16c")]
    fn body(rows: &StoredRows<'_>, to: &mut [u8]) {
        unpack::tile(rows, to);
    }
    // SAFETY: reached only through this module's table, as above.
    unsafe { body(rows, to) }
}
