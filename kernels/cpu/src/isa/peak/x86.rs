//! Peak loops for x86-64.
#![expect(unsafe_code, reason = "calls into code compiled for more features than the crate")]

use super::peak_loop::{PeakLoop, PeakLoops};
use std::arch::x86_64::*;
use std::hint::black_box;

/// Independent dependency chains: more than latency × units of any such processor.
const CHAINS: usize = 12;

pub(super) const AVX512: PeakLoops = PeakLoops {
    int8: Some(PeakLoop {
        instructions: "vpdpbusd zmm",
        ops: 2 * 64 * CHAINS as u64,
        // SAFETY: in this table, which `PeakLoops::of` hands out only for an `Isa` that exists,
        // and so only when the machine has its features.
        run: |iterations| unsafe { dot_avx512(iterations) },
    }),
    bf16: None,
    f32: Some(PeakLoop {
        instructions: "vfmadd zmm",
        ops: 2 * 16 * CHAINS as u64,
        // SAFETY: as above.
        run: |iterations| unsafe { fma_avx512(iterations) },
    }),
};

pub(super) const AVX512_BF16: PeakLoops = PeakLoops {
    bf16: Some(PeakLoop {
        instructions: "vdpbf16ps zmm",
        ops: 2 * 32 * CHAINS as u64,
        // SAFETY: as above.
        run: |iterations| unsafe { pair_avx512(iterations) },
    }),
    ..AVX512
};

pub(super) const AVXVNNI: PeakLoops = PeakLoops {
    int8: Some(PeakLoop {
        instructions: "vpdpbusd ymm",
        ops: 2 * 32 * CHAINS as u64,
        // SAFETY: as above.
        run: |iterations| unsafe { dot_avxvnni(iterations) },
    }),
    bf16: None,
    f32: AVX2.f32,
};

pub(super) const AVX2: PeakLoops = PeakLoops {
    int8: Some(PeakLoop {
        instructions: "vpmaddubsw + vpaddw ymm",
        ops: 2 * 32 * PAIRED as u64,
        // SAFETY: as above.
        run: |iterations| unsafe { dot_avx2(iterations) },
    }),
    bf16: None,
    f32: Some(PeakLoop {
        instructions: "vfmadd ymm",
        ops: 2 * 8 * CHAINS as u64,
        // SAFETY: as above.
        run: |iterations| unsafe { fma_avx2(iterations) },
    }),
};

#[target_feature(enable = "avx512f,avx512vnni")]
fn dot_avx512(iterations: u64) {
    let (w, x) = black_box((_mm512_set1_epi8(3), _mm512_set1_epi8(5)));
    let mut sums = [_mm512_setzero_si512(); CHAINS];
    for _ in 0..iterations {
        for sum in &mut sums {
            *sum = _mm512_dpbusd_epi32(*sum, w, x);
        }
    }
    black_box(sums);
}

#[target_feature(enable = "avx512f,avx512bf16")]
fn pair_avx512(iterations: u64) {
    let (a, b) = black_box((_mm512_set1_ps(0.999), _mm512_set1_ps(0.001)));
    let (a, b) = (_mm512_cvtne2ps_pbh(a, a), _mm512_cvtne2ps_pbh(b, b));
    let mut sums = [_mm512_setzero_ps(); CHAINS];
    for _ in 0..iterations {
        for sum in &mut sums {
            *sum = _mm512_dpbf16_ps(*sum, a, b);
        }
    }
    black_box(sums);
}

#[target_feature(enable = "avxvnni")]
fn dot_avxvnni(iterations: u64) {
    let (w, x) = black_box((_mm256_set1_epi8(3), _mm256_set1_epi8(5)));
    let mut sums = [_mm256_setzero_si256(); CHAINS];
    for _ in 0..iterations {
        for sum in &mut sums {
            *sum = _mm256_dpbusd_avx_epi32(*sum, w, x);
        }
    }
    black_box(sums);
}

#[target_feature(enable = "avx512f")]
fn fma_avx512(iterations: u64) {
    let (a, b) = black_box((_mm512_set1_ps(0.999), _mm512_set1_ps(0.001)));
    let mut sums = [_mm512_setzero_ps(); CHAINS];
    for _ in 0..iterations {
        for sum in &mut sums {
            *sum = _mm512_fmadd_ps(*sum, a, b);
        }
    }
    black_box(sums);
}

/// Chains of the pairwise products: fewer, since their operands take registers too.
const PAIRED: usize = 8;

/// Sums of pairs in 16 bits, as for weights of few bits.
#[target_feature(enable = "avx2")]
fn dot_avx2(iterations: u64) {
    let step = black_box(_mm256_set1_epi8(1));
    let x = black_box([
        _mm256_set1_epi8(3),
        _mm256_set1_epi8(5),
        _mm256_set1_epi8(7),
        _mm256_set1_epi8(9),
    ]);
    // Changes in every iteration, so that the compiler cannot hoist a product out of the loop.
    let mut w = black_box([_mm256_set1_epi8(11), _mm256_set1_epi8(13)]);
    let mut sums = [_mm256_setzero_si256(); PAIRED];
    for _ in 0..iterations {
        w = [_mm256_add_epi8(w[0], step), _mm256_sub_epi8(w[1], step)];
        for (at, sum) in sums.iter_mut().enumerate() {
            *sum = _mm256_add_epi16(*sum, _mm256_maddubs_epi16(w[at / 4], x[at % 4]));
        }
    }
    black_box(sums);
}

#[target_feature(enable = "avx2,fma")]
fn fma_avx2(iterations: u64) {
    let (a, b) = black_box((_mm256_set1_ps(0.999), _mm256_set1_ps(0.001)));
    let mut sums = [_mm256_setzero_ps(); CHAINS];
    for _ in 0..iterations {
        for sum in &mut sums {
            *sum = _mm256_fmadd_ps(*sum, a, b);
        }
    }
    black_box(sums);
}
