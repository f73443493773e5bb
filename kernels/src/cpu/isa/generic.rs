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
    quant_tiles = tile::tiles,
    float_tiles = tile::float_tiles,
    quantize = quantize::row,
    unpack = unpack::tile,
    direct_lines = 0,
);
