//! Dequantises tiles.
#![expect(unsafe_code, reason = "vectors are loaded through pointers into arrays of their size")]

use crate::cpu::packed::group::Group;
use crate::cpu::packed::layout::{GROUP, Layout, Scales, TILE, zero_point};
use crate::cpu::packed::tile::TileBytes;
use crate::cpu::simd::f32x16::F32x16;
use crate::quant::DType;

/// Bytes of a line of 16 f32.
const LINE_BYTES: usize = TILE * size_of::<f32>();

/// All values of a tile in f32, `[k][16]`, little-endian; bit for bit those of
/// [`PackedMatrix::row`](crate::cpu::PackedMatrix::row).
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
                    _ => V::load(from.cast()).store(to),
                }
            }
        }
        return;
    }
    let mut group = Group::new();
    let groups = to[..cols * LINE_BYTES].as_chunks_mut::<{ GROUP * LINE_BYTES }>().0;
    for (index, to) in groups.iter_mut().enumerate() {
        group.read(tile, index);
        let quads = group.q.iter().zip(to.as_chunks_mut::<{ 4 * LINE_BYTES }>().0);
        for (j, (q, to)) in quads.enumerate() {
            let scale = &group.scale[if kind == Scales::Halves { j / 4 } else { 0 }];
            // XOR 128 maps unsigned integers to signed bytes; the offset below maps them back.
            let mut columns = [[0; TILE]; 4];
            for (i, four) in q.as_chunks::<4>().0.iter().enumerate() {
                for (column, q) in columns.iter_mut().zip(four) {
                    column[i] = (q ^ 128).cast_signed();
                }
            }
            // SAFETY: by the caller; each array has 16 values.
            unsafe {
                let (scale, min) = (V::load(scale.as_ptr()), V::load(group.min.as_ptr()));
                let offset = V::splat((128 - zero_point(dtype)) as f32);
                for (q, to) in columns.iter().zip(to.as_chunks_mut::<LINE_BYTES>().0) {
                    let mut line = [0.0f32; TILE];
                    V::load_i8(q.as_ptr()).add(offset).mul(scale).add(min).store(line.as_mut_ptr());
                    for (to, value) in to.as_chunks_mut::<4>().0.iter_mut().zip(line) {
                        *to = value.to_le_bytes();
                    }
                }
            }
        }
    }
}
