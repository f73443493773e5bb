//! NEON: the baseline of every AArch64, and the extensions for dot products and int8 matrix
//! products.
#![expect(unsafe_code, reason = "calls into code compiled for more features than the crate")]

pub(super) mod dot_i8;

use crate::isa::kernels::{self, Kernels};
use crate::loops::gemm_args::{GemmF32, GemmQ8, GemmScratch};
use crate::loops::gemm_q8::tile_shape;
use crate::loops::quantize::{self, Q8Block, QuantScheme};
use crate::loops::{gemm_f32, unpack};
use crate::matrix::StoredRows;
use crate::simd::f32x16::F32x16;
use crate::simd::neon::NeonF32x16;
use dot_i8::{Dotprod, I8mm, Smlal};

kernels::kernels!(
    "neon",
    fma = true,
    lanes = NeonF32x16,
    shape = tile_shape::<Smlal>(),
    gemm_q8 = gemm_q8_smlal,
    gemm_f32 = gemm_f32,
    quantize = quantize_blocks,
    unpack_tile = unpack_tile,
    direct_queries = <NeonF32x16 as F32x16>::ROWS,
);

/// With `sdot` for int8 dot products.
pub(super) static DOTPROD: Kernels =
    Kernels { shape: tile_shape::<Dotprod>(), gemm_q8: gemm_q8_dotprod, ..KERNELS };

/// With `smmla` for matmuls of several rows, and `sdot` for one row, which would leave half of `smmla`
/// unused.
pub(super) static I8MM: Kernels =
    Kernels { shape: tile_shape::<I8mm>(), gemm_q8: gemm_q8_by_rows, ..KERNELS };

kernels::gemm_q8_fn!(gemm_q8_smlal, "neon", Smlal);
kernels::gemm_q8_fn!(gemm_q8_dotprod, "neon,dotprod", Dotprod);
kernels::gemm_q8_fn!(gemm_q8_i8mm, "neon,i8mm", I8mm);

fn gemm_q8_by_rows(job: &GemmQ8<'_>, out: &mut [f32], scratch: &mut GemmScratch) {
    match job.rows {
        1 => gemm_q8_dotprod(job, out, scratch),
        _ => gemm_q8_i8mm(job, out, scratch),
    }
}

fn unpack_tile(rows: &StoredRows<'_>, to: &mut [u8]) {
    #[target_feature(enable = "neon")]
    fn body(rows: &StoredRows<'_>, to: &mut [u8]) {
        unpack::tile(rows, to);
    }
    // SAFETY: reached only through this module's tables, which `Isa` hands out only when the
    // machine has NEON.
    unsafe { body(rows, to) }
}

fn quantize_blocks(x: &[f32], scheme: QuantScheme, out: &mut [Q8Block]) {
    #[target_feature(enable = "neon")]
    fn body(x: &[f32], scheme: QuantScheme, out: &mut [Q8Block]) {
        quantize::row(x, scheme, out);
    }
    // SAFETY: reached only through this module's tables, as above.
    unsafe { body(x, scheme, out) }
}

fn gemm_f32(job: &GemmF32<'_>, out: &mut [f32]) {
    #[target_feature(enable = "neon")]
    fn body(job: &GemmF32<'_>, out: &mut [f32]) {
        // SAFETY: this function is compiled for the features of the vectors.
        unsafe { gemm_f32::gemm_f32::<NeonF32x16>(job, out) }
    }
    // SAFETY: reached only through this module's tables, as above.
    unsafe { body(job, out) }
}
