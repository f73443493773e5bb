//! NEON: as every AArch64 has it, and with the extensions for dot products and for products of
//! small matrices of bytes.
#![expect(unsafe_code, reason = "calls into code compiled for more features than the crate")]

pub(super) mod dots;
mod lanes;

use super::*;
use crate::cpu::unpack;

super::kernels!(
    "neon",
    fma = true,
    lanes = lanes::Quads,
    shape = blocks::shape::<dots::Plain>(),
    gemm_q8 = plain_tiles,
    gemm_f32 = gemm_f32,
    quantize = quantize_row,
    unpack = unpack_tile,
    direct_queries = <lanes::Quads as super::lanes::Lanes>::ROWS,
);

/// With `sdot` for products.
pub(super) static DOTPROD: Kernels =
    Kernels { shape: blocks::shape::<dots::Dotprod>(), gemm_q8: dotprod_tiles, ..KERNELS };

/// With `smmla` for products of several rows, and `sdot` for those of one, which would leave half
/// of it unused.
pub(super) static I8MM: Kernels =
    Kernels { shape: blocks::shape::<dots::I8mm>(), gemm_q8: one_or_several, ..KERNELS };

super::gemm_q8_fn!(plain_tiles, "neon", dots::Plain);
super::gemm_q8_fn!(dotprod_tiles, "neon,dotprod", dots::Dotprod);
super::gemm_q8_fn!(i8mm_tiles, "neon,i8mm", dots::I8mm);

fn one_or_several(job: &GemmQ8<'_>, out: &mut [f32], scratch: &mut GemmScratch) {
    match job.rows {
        1 => dotprod_tiles(job, out, scratch),
        _ => i8mm_tiles(job, out, scratch),
    }
}

fn unpack_tile(view: &StoredRows<'_>, to: &mut [u8]) {
    #[target_feature(enable = "neon")]
    fn body(view: &StoredRows<'_>, to: &mut [u8]) {
        unpack::tile(view, to);
    }
    // SAFETY: reached only through this module's tables, which `Isa` hands out only when the
    // machine has NEON.
    unsafe { body(view, to) }
}

fn quantize_row(x: &[f32], kind: quantize::QuantScheme, out: &mut [Q8Block]) {
    #[target_feature(enable = "neon")]
    fn body(x: &[f32], kind: quantize::QuantScheme, out: &mut [Q8Block]) {
        quantize::row(x, kind, out);
    }
    // SAFETY: reached only through this module's tables, as above.
    unsafe { body(x, kind, out) }
}

fn gemm_f32(job: &GemmF32<'_>, out: &mut [f32]) {
    #[target_feature(enable = "neon")]
    fn body(job: &GemmF32<'_>, out: &mut [f32]) {
        // SAFETY: this function is compiled for the features of the vectors.
        unsafe { floats::tiles::<lanes::Quads>(job, out) }
    }
    // SAFETY: reached only through this module's tables, as above.
    unsafe { body(job, out) }
}
