//! Plain Rust, for any machine.
#![expect(unsafe_code, reason = "the attention kernels are written over vectors of any kind")]

use crate::isa::kernels;
use crate::loops::tile_shape::TileShape;
use crate::loops::{gemm_scalar, quantize, unpack};
use crate::simd::scalar::ScalarF32x16;

kernels::kernels!(
    (),
    fma = false,
    lanes = ScalarF32x16<false>,
    shape = TileShape {
        direct_rows: 0,
        rows: 1,
        tiles: 1,
        panel_group_bytes: 0,
        float_rows: 1,
        float_tiles: 1,
    },
    gemm_q8 = gemm_scalar::gemm_q8,
    gemm_f32 = gemm_scalar::gemm_f32,
    quantize = quantize::row,
    unpack_tile = unpack::tile,
    direct_queries = 0,
);
