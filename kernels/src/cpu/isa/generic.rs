//! Plain Rust, for any machine.
#![expect(unsafe_code, reason = "the attention kernels are written over vectors of any kind")]

use super::*;
use crate::cpu::unpack;

super::kernels!(
    (),
    fma = false,
    lanes = lanes::Plain<false>,
    shape = TileShape {
        direct_rows: 0,
        rows: 1,
        tiles: 1,
        panel_group_bytes: 0,
        float_rows: 1,
        float_tiles: 1,
    },
    gemm_q8 = tile::tiles,
    gemm_f32 = tile::gemm_f32,
    quantize = quantize::row,
    unpack = unpack::tile,
    direct_queries = 0,
);
