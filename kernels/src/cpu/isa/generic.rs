//! Plain Rust, for any machine.

use super::*;
use crate::cpu::{gemm, unpack};
use crate::half;

super::kernels!(
    (),
    fma = false,
    dot_tile = tile::dot_tile::<false>,
    gemm = gemm::body::<false>,
    unpack = unpack::tile,
    f16_to_f32 = half::f16_to_f32,
);
