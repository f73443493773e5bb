//! Plain Rust, for any machine.

use super::*;
use crate::half;

super::kernels!(
    (),
    fma = false,
    dot_tile = tile::dot_tile::<false>,
    f16_to_f32 = half::f16_to_f32,
);
