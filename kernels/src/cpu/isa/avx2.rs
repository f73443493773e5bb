//! AVX2 with FMA and F16C.
#![expect(unsafe_code, reason = "calls into code compiled for more features than the crate")]

pub(super) mod dots;
mod lanes;
mod quantize;

use super::*;
use crate::cpu::unpack;

super::kernels!(
    "avx2,fma,f16c",
    fma = true,
    lanes = lanes::Ymm,
    shape = blocks::shape::<dots::Maddubs>(),
    gemm_q8 = gemm_q8,
    gemm_f32 = gemm_f32,
    quantize = quantize::quantize,
    unpack = unpack_tile,
    direct_queries = <lanes::Ymm as super::lanes::Lanes>::ROWS,
);

super::gemm_q8_fn!(gemm_q8, "avx2,fma,f16c", dots::Maddubs);

fn gemm_f32(job: &GemmF32<'_>, out: &mut [f32]) {
    #[target_feature(enable = "avx2,fma,f16c")]
    fn body(job: &GemmF32<'_>, out: &mut [f32]) {
        // SAFETY: this function is compiled for the features of the vectors.
        unsafe { floats::tiles::<lanes::Ymm>(job, out) }
    }
    // SAFETY: reached only through this module's table, which `Isa` hands out only when the
    // machine has the features.
    unsafe { body(job, out) }
}

fn unpack_tile(view: &StoredRows<'_>, to: &mut [u8]) {
    #[target_feature(enable = "avx2,fma,f16c")]
    fn body(view: &StoredRows<'_>, to: &mut [u8]) {
        unpack::tile(view, to);
    }
    // SAFETY: reached only through this module's table, as above.
    unsafe { body(view, to) }
}
