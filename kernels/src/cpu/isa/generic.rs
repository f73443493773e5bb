//! Plain Rust, for any machine.
#![expect(unsafe_code, reason = "the attention kernels are written over vectors of any kind")]

use super::*;
use crate::cpu::{gemm, unpack};

super::kernels!(
    (),
    fma = false,
    lanes = lanes::Plain<false>,
    dot_tile = tile::dot_tile::<false>,
    gemm = gemm::body::<false>,
    unpack = unpack::tile,
    reads_narrow = false,
);
