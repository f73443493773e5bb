//! Loads a group of a tile into registers.

use crate::loops::formats::{Format, prefetch_group};
use crate::loops::prefetch_stream::PrefetchStream;
use crate::packed::layout::{Layout, TILE, scale_bytes};
use crate::packed::tile::TileBytes;
use lapwing_model::formats::{Scales, unsigned};
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

/// The scales, and the minimums or the scales of the second half.
pub(super) type GroupScales = [__m512; 2];

impl TileStart {
    /// The bytes of group `g`, one vector per quad.
    ///
    /// # Safety
    /// The tile has the format and the group.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
    pub(super) unsafe fn lines<F: Format>(self, g: usize) -> [__m512i; 8] {
        // SAFETY: by the caller.
        let q = unsafe { self.integers::<F>(g) };
        let Some(table) = (const { F::TABLE }) else { return q };
        let table = unsigned(table);
        // SAFETY: there are 16 bytes.
        let table = unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128(table.as_ptr().cast())) };
        q.map(|q| _mm512_shuffle_epi8(table, q))
    }

    /// The integers, or the codes, of group `g`.
    ///
    /// # Safety
    /// The tile has the format and the group.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
    unsafe fn integers<F: Format>(self, g: usize) -> [__m512i; 8] {
        let from = self.values.wrapping_add(g * F::LINES * 64);
        // SAFETY: the group has `F::LINES` lines.
        let load = |i: usize| unsafe { _mm512_loadu_si512(from.add(i * 64).cast()) };
        let mask = _mm512_set1_epi8(15);
        if F::LINES == 8 {
            return std::array::from_fn(load);
        }
        if F::LINES < 4 {
            let (two, twos, bit) = ([load(0), load(1)], _mm512_set1_epi8(3), _mm512_set1_epi8(4));
            let third = if F::LINES == 3 { load(2) } else { twos };
            return std::array::from_fn(|j| {
                let low = _mm512_srl_epi16(two[j / 4], _mm_cvtsi32_si128(2 * (j as i32 % 4)));
                if F::LINES == 2 {
                    return _mm512_and_si512(low, twos);
                }
                let at = j as i32 - 2;
                let third = match at < 0 {
                    true => _mm512_sll_epi16(third, _mm_cvtsi32_si128(-at)),
                    false => _mm512_srl_epi16(third, _mm_cvtsi32_si128(at)),
                };
                _mm512_or_si512(_mm512_and_si512(low, twos), _mm512_and_si512(third, bit))
            });
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

    /// The scales of group `g`, and its minimums or second scales.
    ///
    /// # Safety
    /// The tile has the format and the group.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,f16c")]
    pub(super) unsafe fn scales<F: Format>(self, g: usize) -> GroupScales {
        let from = self.scales.wrapping_add(g / F::GROUPS * F::SCALE_BYTES);
        let i = g % F::GROUPS;
        // SAFETY: the scales of the group's super-block are there.
        let half = |at: usize| unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.add(at).cast())) };
        // SAFETY: as above.
        let bytes = |at: usize| unsafe { _mm_loadu_si128(from.add(at).cast()) };
        let units = |d: __m512| match F::UNIT == 1.0 {
            true => d,
            false => _mm512_mul_ps(d, _mm512_set1_ps(F::UNIT)),
        };
        match F::SCALES {
            Scales::None | Scales::Plain => [half(0), _mm512_setzero_ps()],
            Scales::Minimum => [half(0), half(2 * TILE)],
            Scales::Super => {
                let value = |at: usize| _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes(at)));
                let min = _mm512_mul_ps(half(2 * TILE), value((12 + i) * TILE));
                let sign = _mm512_set1_ps(-0.0);
                [_mm512_mul_ps(half(0), value((4 + i) * TILE)), _mm512_xor_ps(min, sign)]
            }
            Scales::Halves => {
                let d = units(half(16 * TILE));
                let value = |at: usize| _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes(at)));
                [0, 1].map(|h| _mm512_mul_ps(d, value((2 * i + h) * TILE)))
            }
            // SAFETY: by the caller.
            Scales::SuperHalves => unsafe { self.factors_of_halves::<F>(g, 0, 4) },
            Scales::Signed => {
                let factor = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes(i * TILE)));
                [_mm512_mul_ps(units(half(8 * TILE)), factor), _mm512_setzero_ps()]
            }
            Scales::Power => {
                let exponent = _mm512_cvtepu8_epi32(bytes(0));
                let one = _mm512_set1_epi32(1);
                let normal = _mm512_slli_epi32::<23>(_mm512_sub_epi32(exponent, one));
                // The two smallest powers are subnormal.
                let subnormal = _mm512_sllv_epi32(
                    _mm512_set1_epi32(0x0020_0000),
                    _mm512_min_epi32(exponent, one),
                );
                let power = _mm512_castsi512_ps(_mm512_max_epi32(normal, subnormal));
                [power, _mm512_setzero_ps()]
            }
            // Their bits are those of a binary16 whose exponent has another bias.
            Scales::Minifloats => [0, TILE].map(|at| {
                let halves = _mm256_slli_epi16::<7>(_mm256_cvtepu8_epi16(bytes(at)));
                _mm512_mul_ps(_mm512_cvtph_ps(halves), _mm512_set1_ps(128.0))
            }),
        }
    }

    /// Prefetches the weights a fixed distance after group `g`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn prefetch<F: Format>(self, g: usize, prefetch: PrefetchStream) {
        prefetch_group::<F>(prefetch, self.values, g);
    }
}

/// 16 values.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load(from: &[f32; TILE]) -> __m512 {
    // SAFETY: 16 values.
    unsafe { _mm512_loadu_ps(from.as_ptr()) }
}
