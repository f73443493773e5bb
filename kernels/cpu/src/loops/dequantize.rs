//! Dequantises tiles.
#![expect(unsafe_code, reason = "vectors are loaded through pointers into arrays of their size")]

use crate::packed::group::Group;
use crate::packed::layout::{GROUP, Layout, TILE, zero_point};
use crate::packed::tile::TileBytes;
use crate::simd::f32x16::F32x16;
use lapwing_model::formats::{DType, Scales};

/// Bytes of a line of 16 f32.
const LINE_BYTES: usize = TILE * size_of::<f32>();

/// All values of a tile in f32, `[k][16]`, little-endian; bit for bit those of
/// [`PackedMatrix::row`](crate::PackedMatrix::row).
///
/// # Safety
/// The machine has the instructions of `V`.
///
/// # Panics
/// When `to` is too short.
#[inline(always)]
pub(crate) unsafe fn dequantize_tile<V: F32x16>(tile: &TileBytes<'_>, to: &mut [u8]) {
    let Layout { dtype, cols, kind, .. } = *tile.layout;
    if kind == Scales::None {
        let stored = tile.values.chunks_exact(TILE * dtype.block_bytes());
        let lines = to[..cols * LINE_BYTES].as_chunks_mut::<LINE_BYTES>().0;
        for (from, to) in stored.zip(lines) {
            let (from, to) = (from.as_ptr(), to.as_mut_ptr().cast());
            // SAFETY: by the caller; both have 16 values.
            unsafe {
                match dtype {
                    DType::F16 => V::load_f16(from.cast()).store(to),
                    DType::Bf16 => V::load_bf16(from.cast()).store(to),
                    DType::F32 => V::load(from.cast()).store(to),
                    dtype => unreachable!("{dtype} is no format of floats"),
                }
            }
        }
        return;
    }
    let halves = |from: &[u8]| {
        let mut values = [0.0; TILE];
        // SAFETY: by the caller; both have 16 values, or it panics.
        unsafe { V::load_f16(from[..2 * TILE].as_ptr().cast()).store(values.as_mut_ptr()) };
        values
    };
    let mut group = Group::new();
    let groups = to[..cols * LINE_BYTES].as_chunks_mut::<{ GROUP * LINE_BYTES }>().0;
    for (index, to) in groups.iter_mut().enumerate() {
        group.read_values(tile, index);
        group.read_scales(tile, index, halves);
        let quads = group.q.iter().zip(to.as_chunks_mut::<{ 4 * LINE_BYTES }>().0);
        for (j, (q, to)) in quads.enumerate() {
            let half = if kind.has_halves() { j / 4 } else { 0 };
            let (scale, min) = (&group.scale[half], &group.min[half]);
            let groups = q.as_chunks::<4>().0.as_ptr();
            // SAFETY: by the caller; `q` has 16 groups of four, and all others have 16 values.
            unsafe {
                let (scale, min) = (V::load(scale.as_ptr()), V::load(min.as_ptr()));
                let zero = V::splat(zero_point(dtype) as f32);
                for (column, to) in to.as_chunks_mut::<LINE_BYTES>().0.iter_mut().enumerate() {
                    let x = V::load_u8_of_4(groups, column).sub(zero).mul(scale).add(min);
                    x.store(to.as_mut_ptr().cast());
                }
            }
        }
    }
}
