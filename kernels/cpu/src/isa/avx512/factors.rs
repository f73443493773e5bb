//! Scales and minimums of a group.

use super::load_group::TileStart;
use crate::loops::formats::Format;
use crate::packed::layout::TILE;
use lapwing_model::formats::Quantised;
use lapwing_model::formats::Scales;
use lapwing_model::formats::q6_k::Q6K;
use std::arch::x86_64::*;

/// What the factors of a super-block are multiplied by; nothing in formats without factors.
#[derive(Clone, Copy)]
pub(super) struct Units {
    scale: __m512,
    min: __m512,
}

/// Scales and minimums of a group. With scales of half groups, the second ones are those of the last half, and minimums are factors of
/// [`Q8Block::start`](crate::loops::quantize::Q8Block::start). What the format does not have is 0.
#[derive(Clone, Copy)]
pub(super) struct Factors {
    pub(super) scale: [__m512; 2],
    pub(super) min: [__m512; 2],
}

impl Units {
    /// Those of formats without factors.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn none() -> Units {
        Units { scale: _mm512_setzero_ps(), min: _mm512_setzero_ps() }
    }
}

impl TileStart {
    /// The scales of the record of group `g`.
    #[inline]
    fn record<F: Format>(self, g: usize) -> *const u8 {
        self.scales.wrapping_add(g / F::GROUPS * F::SCALE_BYTES)
    }

    /// What the factors of the super-block of group `g` are multiplied by.
    ///
    /// # Safety
    /// The tile has the format and the group.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,f16c")]
    pub(super) unsafe fn units<F: Format>(self, g: usize) -> Units {
        let from = self.record::<F>(g);
        // SAFETY: the scales of the group's super-block are there.
        let half = |at: usize| unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.add(at).cast())) };
        let scaled = |at: usize| match F::UNIT == 1.0 {
            true => half(at),
            false => _mm512_mul_ps(half(at), _mm512_set1_ps(F::UNIT)),
        };
        let none = Units::none();
        match F::SCALES {
            Scales::Super => {
                let min = _mm512_xor_ps(half(2 * TILE), _mm512_set1_ps(-0.0));
                Units { scale: half(0), min }
            }
            Scales::SuperHalves => {
                // The initial value of sums is the negative sum of activations times a power of two, so the product is exact.
                let of_start = _mm512_set1_ps(1.0 / Q6K::ZERO_POINT as f32);
                Units { scale: half(0), min: _mm512_mul_ps(half(2 * TILE), of_start) }
            }
            Scales::Halves => Units { scale: scaled(16 * TILE), ..none },
            Scales::Signed => Units { scale: scaled(8 * TILE), ..none },
            _ => none,
        }
    }

    /// The scales and minimums of group `g`, with those units of its super-block.
    ///
    /// # Safety
    /// The tile has the format and the group.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,f16c")]
    pub(super) unsafe fn factors<F: Format>(self, g: usize, units: Units) -> Factors {
        let (from, i) = (self.record::<F>(g), g % F::GROUPS);
        // SAFETY: the scales of the group's super-block are there.
        let half = |at: usize| unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.add(at).cast())) };
        // SAFETY: as above.
        let bytes = |at: usize| unsafe { _mm_loadu_si128(from.add(at * TILE).cast()) };
        let signed = |at: usize| {
            let factor = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes(at)));
            _mm512_mul_ps(units.scale, factor)
        };
        let none = _mm512_setzero_ps();
        let of_group = |scale, min| Factors { scale: [scale, none], min: [min, none] };
        match F::SCALES {
            Scales::None | Scales::Plain => of_group(half(0), none),
            Scales::Minimum => of_group(half(0), half(2 * TILE)),
            // Scales have at most 6 bits, so signed and unsigned bytes are the same.
            Scales::Super => {
                let factor = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes(12 + i)));
                of_group(signed(4 + i), _mm512_mul_ps(units.min, factor))
            }
            Scales::Halves => Factors { scale: [signed(2 * i), signed(2 * i + 1)], min: [none; 2] },
            Scales::SuperHalves => {
                let first = nibbles(bytes(4 + 2 * i), units);
                let last = nibbles(bytes(5 + 2 * i), units);
                Factors { scale: [first[0], last[0]], min: [first[1], last[1]] }
            }
            Scales::Signed => of_group(signed(i), none),
            Scales::Power => {
                let exponent = _mm512_cvtepu8_epi32(bytes(0));
                let one = _mm512_set1_epi32(1);
                let normal = _mm512_slli_epi32::<23>(_mm512_sub_epi32(exponent, one));
                // The two smallest powers are subnormal.
                let subnormal = _mm512_sllv_epi32(
                    _mm512_set1_epi32(0x0020_0000),
                    _mm512_min_epi32(exponent, one),
                );
                of_group(_mm512_castsi512_ps(_mm512_max_epi32(normal, subnormal)), none)
            }
            Scales::Minifloats => {
                Factors { scale: [minifloats(bytes(0)), minifloats(bytes(1))], min: [none; 2] }
            }
        }
    }
}

/// The units times the low halves of 16 bytes, and times the high ones. A permutation looks the floats up by the lowest 4 bits of its
/// indices.
#[inline]
#[target_feature(enable = "avx512f")]
fn nibbles(bytes: __m128i, units: Units) -> [__m512; 2] {
    let bytes = _mm512_cvtepu8_epi32(bytes);
    let floats = _mm512_setr_ps(
        0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0,
    );
    let low = _mm512_permutexvar_ps(bytes, floats);
    let high = _mm512_permutexvar_ps(_mm512_srli_epi32::<4>(bytes), floats);
    [_mm512_mul_ps(units.scale, low), _mm512_mul_ps(units.min, high)]
}

/// 16 floats of 8 bits, whose bits are those of a binary16 whose exponent has another bias.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,f16c")]
fn minifloats(bytes: __m128i) -> __m512 {
    let halves = _mm256_slli_epi16::<7>(_mm256_cvtepu8_epi16(bytes));
    _mm512_mul_ps(_mm512_cvtph_ps(halves), _mm512_set1_ps(128.0))
}
