//! Plain Rust, for any machine.
#![expect(unsafe_code, reason = "the attention kernels are written over vectors of any kind")]

use super::*;
use crate::cpu::unpack;

super::kernels!(
    (),
    fma = false,
    lanes = lanes::Plain<false>,
    quant_tiles = quant_tiles,
    float_tiles = tile::float_tiles::<false>,
    quantize = quantize::row,
    unpack = unpack::tile,
    reads_narrow = false,
);

fn quant_tiles(job: &QuantJob<'_>, out: &mut [f32], scratch: &mut KernelScratch) {
    tile::tiles::<false>(job, out, scratch, tile::add::<false>);
}
