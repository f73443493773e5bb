//! Loads a group of a tile into registers.

use crate::loops::formats::{Format, prefetch_group};
use crate::loops::prefetch_stream::PrefetchStream;
use crate::packed::layout::{Layout, TILE, scale_bytes};
use crate::packed::tile::TileBytes;
use lapwing_model::formats::unsigned;
use std::arch::x86_64::*;

/// Start of the values and of the scales of a tile.
#[derive(Clone, Copy)]
pub(super) struct TileStart {
    values: *const u8,
    pub(super) scales: *const u8,
}

/// The start of a tile.
///
/// # Panics
/// When the tile does not have the format's layout.
pub(super) fn tile_start<F: Format>(tile: &TileBytes<'_>) -> TileStart {
    let Layout { lines, kind, .. } = *tile.layout;
    let groups = tile.layout.groups();
    assert!(lines == F::LINES && kind == F::SCALES, "another format");
    assert!(tile.values.len() == groups * lines * 64);
    assert!(tile.scales.len() >= groups / kind.groups() * scale_bytes(kind));
    TileStart { values: tile.values.as_ptr(), scales: tile.scales.as_ptr() }
}

/// By how many bits [`TileStart::shifted`] leaves the integers of the last half of a group shifted to the left.
pub(super) const fn last_half_shift<F: Format>() -> u32 {
    match F::LINES {
        2 => 4,
        3 => 3,
        _ => 0,
    }
}

/// Shifts the integers of the last half of a group to the right, where [`TileStart::shifted`] leaves them shifted.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn unshifted<F: Format>(mut q: [__m512i; 8]) -> [__m512i; 8] {
    let shift = _mm_cvtsi32_si128(last_half_shift::<F>().cast_signed());
    for q in &mut q[4..] {
        *q = _mm512_srl_epi16(*q, shift);
    }
    q
}

impl TileStart {
    /// The bytes of group `g`, one vector per quad.
    ///
    /// # Safety
    /// The tile has the format and the group.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
    pub(super) unsafe fn lines<F: Format>(self, g: usize) -> [__m512i; 8] {
        // SAFETY: by the caller.
        let q = unshifted::<F>(unsafe { self.shifted::<F>(g) });
        let Some(table) = (const { F::TABLE }) else { return q };
        let table = unsigned(table);
        // SAFETY: there are 16 bytes.
        let table = unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128(table.as_ptr().cast())) };
        q.map(|q| _mm512_shuffle_epi8(table, q))
    }

    /// The integers, or the codes, of group `g`. Those of the last half are shifted to the left by [`last_half_shift`].
    ///
    /// # Safety
    /// The tile has the format and the group.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
    pub(super) unsafe fn shifted<F: Format>(self, g: usize) -> [__m512i; 8] {
        let from = self.values.wrapping_add(g * F::LINES * 64);
        // SAFETY: the group has `F::LINES` lines.
        let load = |i: usize| unsafe { _mm512_loadu_si512(from.add(i * 64).cast()) };
        let mask = _mm512_set1_epi8(15);
        if F::LINES == 8 {
            return std::array::from_fn(load);
        }
        if F::LINES == 2 {
            let [a, b] = [load(0), load(1)];
            return halves([a, _mm512_srli_epi16::<2>(a), b, _mm512_srli_epi16::<2>(b)], [3, 48]);
        }
        if F::LINES == 3 {
            let [a, b, c] = [load(0), load(1), load(2)];
            let mut q = halves([a, b, c, _mm512_srli_epi16::<6>(a)], [7, 56]);
            let put = |q, third, bits: [i8; 2]| {
                let q = _mm512_and_si512(q, _mm512_set1_epi8(bits[0]));
                _mm512_ternarylogic_epi32::<0xF8>(q, third, _mm512_set1_epi8(bits[1]))
            };
            q[3] = put(_mm512_srli_epi16::<6>(a), _mm512_srli_epi16::<4>(b), [3, 4]);
            q[7] = put(_mm512_srli_epi16::<3>(c), _mm512_srli_epi16::<2>(b), [24, 32]);
            return q;
        }
        let n: [__m512i; 4] = std::array::from_fn(load);
        let low = n.map(|n| _mm512_and_si512(n, mask));
        let high = n.map(|n| _mm512_and_si512(_mm512_srli_epi16::<4>(n), mask));
        let q = [low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]];
        match F::LINES {
            5 => {
                let v = load(4);
                let bit = _mm512_set1_epi8(16);
                let put = |q, v| _mm512_ternarylogic_epi32::<0xF8>(q, v, bit);
                [
                    put(q[0], _mm512_slli_epi16::<4>(v)),
                    put(q[1], _mm512_slli_epi16::<3>(v)),
                    put(q[2], _mm512_slli_epi16::<2>(v)),
                    put(q[3], _mm512_slli_epi16::<1>(v)),
                    put(q[4], v),
                    put(q[5], _mm512_srli_epi16::<1>(v)),
                    put(q[6], _mm512_srli_epi16::<2>(v)),
                    put(q[7], _mm512_srli_epi16::<3>(v)),
                ]
            }
            6 => {
                let v = [load(4), load(5)];
                let bits = _mm512_set1_epi8(48);
                let put = |q, v| _mm512_ternarylogic_epi32::<0xF8>(q, v, bits);
                std::array::from_fn(|j| {
                    let v = v[j / 4];
                    let v = match j % 4 {
                        0 => _mm512_slli_epi16::<4>(v),
                        1 => _mm512_slli_epi16::<2>(v),
                        2 => v,
                        _ => _mm512_srli_epi16::<2>(v),
                    };
                    put(q[j], v)
                })
            }
            _ => q,
        }
    }

    /// Prefetches the weights a fixed distance after group `g`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn prefetch<F: Format>(self, g: usize, prefetch: PrefetchStream) {
        prefetch_group::<F>(prefetch, self.values, g);
    }
}

/// Four vectors with the first mask, then with the second.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn halves(v: [__m512i; 4], masks: [i8; 2]) -> [__m512i; 8] {
    let [low, high] = [_mm512_set1_epi8(masks[0]), _mm512_set1_epi8(masks[1])];
    let mut q = [low; 8];
    for (j, v) in v.into_iter().enumerate() {
        (q[j], q[4 + j]) = (_mm512_and_si512(v, low), _mm512_and_si512(v, high));
    }
    q
}

/// 16 values.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load(from: &[f32; TILE]) -> __m512 {
    // SAFETY: 16 values.
    unsafe { _mm512_loadu_ps(from.as_ptr()) }
}
