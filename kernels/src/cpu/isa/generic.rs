//! Plain Rust, for any machine.

use super::*;
use crate::binary16;
use crate::cpu::{gemm, unpack};

super::kernels!(
    (),
    fma = false,
    quant_tiles = quant_tiles,
    float_tiles = tile::float_tiles::<false>,
    gemm = gemm::body::<false>,
    quantize = quantize::row,
    unpack = unpack::tile,
    f16_to_f32 = binary16::f16_to_f32,
);

fn quant_tiles(job: &QuantJob<'_>, out: &mut [f32], scratch: &mut KernelScratch) {
    tile::tiles::<false>(job, out, scratch, tile::add::<false>);
}
