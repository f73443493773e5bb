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
    quant_tiles = plain_tiles,
    float_tiles = float_tiles,
    quantize = quantize_row,
    unpack = unpack_tile,
    direct_lines = <lanes::Quads as super::lanes::Lanes>::ROWS,
);

/// With `sdot` for products.
pub(super) static DOTPROD: Kernels =
    Kernels { shape: blocks::shape::<dots::Dotprod>(), quant_tiles: dotprod_tiles, ..KERNELS };

/// With `smmla` for products of several rows, and `sdot` for those of one, which would leave half
/// of it unused.
pub(super) static I8MM: Kernels =
    Kernels { shape: blocks::shape::<dots::I8mm>(), quant_tiles: one_or_several, ..KERNELS };

super::products!(plain_tiles, "neon", dots::Plain);
super::products!(dotprod_tiles, "neon,dotprod", dots::Dotprod);
super::products!(i8mm_tiles, "neon,i8mm", dots::I8mm);

fn one_or_several(job: &QuantJob<'_>, out: &mut [f32], scratch: &mut KernelScratch) {
    match job.rows {
        1 => dotprod_tiles(job, out, scratch),
        _ => i8mm_tiles(job, out, scratch),
    }
}

fn unpack_tile(view: &RowsView<'_>, to: &mut [u8]) {
    #[target_feature(enable = "neon")]
    fn body(view: &RowsView<'_>, to: &mut [u8]) {
        unpack::tile(view, to);
    }
    // SAFETY: reached only through this module's tables, which `Isa` hands out only when the
    // machine has NEON.
    unsafe { body(view, to) }
}

fn quantize_row(x: &[f32], kind: quantize::ActKind, out: &mut [ActBlock]) {
    #[target_feature(enable = "neon")]
    fn body(x: &[f32], kind: quantize::ActKind, out: &mut [ActBlock]) {
        quantize::row(x, kind, out);
    }
    // SAFETY: reached only through this module's tables, as above.
    unsafe { body(x, kind, out) }
}

fn float_tiles(job: &FloatJob<'_>, out: &mut [f32]) {
    #[target_feature(enable = "neon")]
    fn body(job: &FloatJob<'_>, out: &mut [f32]) {
        // SAFETY: this function is compiled for the features of the vectors.
        unsafe { floats::tiles::<lanes::Quads>(job, out) }
    }
    // SAFETY: reached only through this module's tables, as above.
    unsafe { body(job, out) }
}
