//! Plain Rust, for any machine.

use super::*;
use crate::binary16;
use crate::cpu::{gemm, unpack};

super::kernels!(
    (),
    fma = false,
    dot_tile = tile::dot_tile::<false>,
    gemm = gemm::body::<false>,
    unpack = unpack::tile,
    f16_to_f32 = binary16::f16_to_f32,
);
