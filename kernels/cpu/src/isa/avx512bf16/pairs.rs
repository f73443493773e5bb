//! Attention in pairs of bfloat16: `vdpbf16ps` adds two products to each of 16 sums.
#![expect(unsafe_code, reason = "intrinsics")]

use crate::loops::attn_bf16::{Bf16Pair, PairPanel};
use crate::loops::attn_matmul::{AttnMatmul, MicroKernel, matmul_with};
use crate::loops::kv::{KvConvert, KvElement};
use crate::simd::avx512::Avx512F32x16;
use crate::simd::f32x16::{F32x16 as _, LANES};
use crate::simd::outline::outline;
use lapwing_model::kv::Panel;
use std::arch::x86_64::*;
use std::marker::PhantomData;
use std::mem::transmute;

/// Mask of the first value of a pair.
const FIRST: Bf16Pair = 0xffff;

/// # Safety
/// The machine has AVX-512 with BF16.
#[inline(always)]
pub(super) unsafe fn matmul(p: &AttnMatmul<'_, Bf16Pair, PairPanel<'_>>, c: &mut [f32]) {
    // SAFETY: by the caller.
    unsafe {
        match p.b {
            PairPanel::Packed(b) => matmul_with::<PairKernel<Packed>, _>(p, b, c),
            PairPanel::Stored(Panel::F32(b)) => matmul_with::<PairKernel<Stored<f32>>, _>(p, b, c),
            PairPanel::Stored(Panel::F16(b)) => matmul_with::<PairKernel<Stored<u16>>, _>(p, b, c),
            PairPanel::Stored(Panel::I8(b)) => matmul_with::<PairKernel<Stored<i8>>, _>(p, b, c),
        }
    }
}

/// Where 16 pairs of the right operand come from.
trait Source {
    type Element: Copy;
    /// Depth of one element.
    const DEPTH: usize;

    /// As [`MicroKernel::right`].
    ///
    /// # Safety
    /// As [`MicroKernel`] demands.
    unsafe fn read<const TAIL: bool>(at: *const Self::Element, stride: usize) -> __m512i;
}

/// The inner step of a bfloat16 matmul.
struct PairKernel<S>(PhantomData<S>);

impl<S: Source> MicroKernel for PairKernel<S> {
    type Sums = Avx512F32x16;
    type A = Bf16Pair;
    type B = S::Element;
    type Left = __m512i;
    type Right = __m512i;
    const A_DEPTH: usize = 2;
    const B_DEPTH: usize = S::DEPTH;

    outline!("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,avx2,fma,f16c");

    #[inline(always)]
    unsafe fn left<const TAIL: bool>(at: *const Bf16Pair) -> __m512i {
        // SAFETY: by the caller.
        unsafe {
            let pair = if TAIL { *at & FIRST } else { *at };
            _mm512_set1_epi32(pair.cast_signed())
        }
    }
    #[inline(always)]
    unsafe fn right<const TAIL: bool>(at: *const S::Element, stride: usize) -> __m512i {
        // SAFETY: by the caller.
        unsafe { S::read::<TAIL>(at, stride) }
    }
    #[inline(always)]
    unsafe fn add(left: __m512i, right: __m512i, sums: Avx512F32x16) -> Avx512F32x16 {
        // SAFETY: by the caller; registers of any type are 512 bits.
        unsafe {
            let left: __m512bh = transmute(left);
            let right: __m512bh = transmute(right);
            Avx512F32x16(_mm512_dpbf16_ps(sums.0, left, right))
        }
    }
}

/// Pairs that are packed already.
struct Packed;

impl Source for Packed {
    type Element = Bf16Pair;
    const DEPTH: usize = 2;

    #[inline(always)]
    unsafe fn read<const TAIL: bool>(at: *const Bf16Pair, _: usize) -> __m512i {
        // SAFETY: by the caller.
        unsafe {
            let pairs = _mm512_loadu_si512(at.cast());
            match TAIL {
                true => _mm512_and_si512(pairs, _mm512_set1_epi32(FIRST.cast_signed())),
                false => pairs,
            }
        }
    }
}

/// Stored rows, paired as they are read.
struct Stored<E>(PhantomData<E>);

impl<E: KvElement> Source for Stored<E> {
    type Element = E;
    const DEPTH: usize = 1;

    #[inline(always)]
    unsafe fn read<const TAIL: bool>(at: *const E, stride: usize) -> __m512i {
        // SAFETY: by the caller: with `TAIL`, there is no second row.
        unsafe {
            let first = E::load::<Avx512F32x16>(at);
            let second = if TAIL { Avx512F32x16::splat(0.0) } else { E::load(at.add(stride)) };
            pair(first, second)
        }
    }
}

/// Permutation that interleaves 16 first values with 16 second values.
const INTERLEAVE: [u16; 2 * LANES] = {
    let mut order = [0; 2 * LANES];
    let mut i = 0;
    while i < LANES {
        order[2 * i] = i as u16;
        order[2 * i + 1] = (LANES + i) as u16;
        i += 1;
    }
    order
};

/// Pairs up two vectors.
///
/// # Safety
/// The machine has AVX-512 with BF16.
#[inline(always)]
unsafe fn pair(first: Avx512F32x16, second: Avx512F32x16) -> __m512i {
    // SAFETY: by the caller; registers of any type are 512 bits, as is the permutation.
    unsafe {
        let both: __m512i = transmute(_mm512_cvtne2ps_pbh(second.0, first.0));
        _mm512_permutexvar_epi16(_mm512_loadu_si512(INTERLEAVE.as_ptr().cast()), both)
    }
}

/// # Safety
/// The machine has AVX-512 with BF16.
#[inline(always)]
pub(super) unsafe fn pack_kv(w: &KvConvert<'_>, out: &mut [Bf16Pair]) {
    // SAFETY: by the caller.
    unsafe {
        match w.from {
            Panel::F32(from) => widen_rows(w, from, out),
            Panel::F16(from) => widen_rows(w, from, out),
            Panel::I8(from) => widen_rows(w, from, out),
        }
    }
}

/// # Safety
/// As [`pack_kv`].
#[inline(always)]
unsafe fn widen_rows<E: KvElement>(w: &KvConvert<'_>, from: &[E], out: &mut [Bf16Pair]) {
    for (from, out) in from.chunks(2 * w.cols).zip(out.chunks_mut(w.stride)) {
        let (first, second) = from.split_at(w.cols);
        let chunks = first.chunks(LANES).enumerate();
        for ((i, first), out) in chunks.zip(out.as_chunks_mut::<LANES>().0) {
            let second = second.get(i * LANES..).unwrap_or_default();
            // SAFETY: both rows and the output have 16 values here, or zeros in their place.
            unsafe {
                let pairs = match first.len() == LANES && second.len() >= LANES {
                    true => pair(E::load(first.as_ptr()), E::load(second.as_ptr())),
                    false => {
                        let mut padded = [[E::default(); LANES]; 2];
                        padded[0][..first.len()].copy_from_slice(first);
                        let second = &second[..second.len().min(first.len())];
                        padded[1][..second.len()].copy_from_slice(second);
                        pair(E::load(padded[0].as_ptr()), E::load(padded[1].as_ptr()))
                    }
                };
                _mm512_storeu_si512(out.as_mut_ptr().cast(), pairs);
            }
        }
    }
}

/// # Safety
/// The machine has AVX-512 with BF16.
#[inline(always)]
pub(super) unsafe fn round(x: &[f32], out: &mut [Bf16Pair]) {
    const PAIRS: usize = LANES / 2;
    let (lines, tail) = x.as_chunks::<LANES>();
    let (outs, rest) = out.as_chunks_mut::<PAIRS>();
    for (x, out) in lines.iter().zip(outs.iter_mut()) {
        // SAFETY: there are 16 values, and room for 8 pairs.
        unsafe { store(x, out) };
    }
    let mut padded = ([0.0; LANES], [0; PAIRS]);
    padded.0[..tail.len()].copy_from_slice(tail);
    // SAFETY: as above.
    unsafe { store(&padded.0, &mut padded.1) };
    let rest = match outs.get_mut(lines.len()) {
        Some(out) => &mut out[..],
        None => rest,
    };
    let pairs = tail.len().div_ceil(2);
    rest[..pairs].copy_from_slice(&padded.1[..pairs]);
}

/// # Safety
/// The machine has AVX-512 with BF16.
#[inline(always)]
unsafe fn store(x: &[f32; LANES], out: &mut [Bf16Pair; LANES / 2]) {
    // SAFETY: by the caller; registers of any type are 256 bits, as is the output.
    unsafe {
        let rounded: __m256i = transmute(_mm512_cvtneps_pbh(_mm512_loadu_ps(x.as_ptr())));
        _mm256_storeu_si256(out.as_mut_ptr().cast(), rounded);
    }
}

#[cfg(test)]
mod tests;
