//! Scales and minimums of halves of groups, in formats that have both ([`Scales::SuperHalves`](lapwing_model::formats::Scales)).

use super::load_group::{TileStart, load};
use crate::loops::formats::Format;
use crate::loops::gemm_args::HalfMinimums;
use crate::loops::quantize::Q8Block;
use crate::packed::layout::TILE;
use std::arch::x86_64::*;

impl TileStart {
    /// The minimums of the halves of group `g`, in formats that have them.
    ///
    /// # Safety
    /// The tile has the format and the group.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,f16c")]
    pub(super) unsafe fn half_minimums<F: Format>(self, g: usize) -> [__m512; 2] {
        let sign = _mm512_set1_ps(-0.0);
        // SAFETY: by the caller.
        let minimums = unsafe { self.factors_of_halves::<F>(g, 2 * TILE, 20) };
        minimums.map(|min| _mm512_xor_ps(min, sign))
    }

    /// The factors for the halves of group `g`, which begin at `from`, times the binary16 at `d`.
    ///
    /// # Safety
    /// The tile has the format and the group.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,f16c")]
    pub(super) unsafe fn factors_of_halves<F: Format>(
        self,
        g: usize,
        d: usize,
        from: usize,
    ) -> [__m512; 2] {
        let scales = self.scales.wrapping_add(g / F::GROUPS * F::SCALE_BYTES);
        // SAFETY: the scales of the group's super-block are there.
        let d = unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(scales.add(d).cast())) };
        [0, 1].map(|half| {
            let at = (from + 2 * (g % F::GROUPS) + half) * TILE;
            // SAFETY: as above.
            let bytes = unsafe { _mm_loadu_si128(scales.add(at).cast()) };
            _mm512_mul_ps(d, _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes)))
        })
    }
}

/// Adds the minimums of a half of a group to the sums of R rows. Their activation blocks are `groups` apart from `x` on.
///
/// # Safety
/// Each row has a block there.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn add_half_minimums<const T: usize, const R: usize>(
    x: *const Q8Block,
    groups: usize,
    minimums: &HalfMinimums,
    half: usize,
    acc: &mut [[__m512; T]; R],
) {
    for (r, acc) in acc.iter_mut().enumerate() {
        // SAFETY: by the caller.
        let sum = _mm512_set1_ps(unsafe { (*x.add(r * groups)).half_sum(half) });
        for (acc, min) in acc.iter_mut().zip(&minimums[half]) {
            *acc = _mm512_fmadd_ps(load(min), sum, *acc);
        }
    }
}
