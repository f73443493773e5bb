//! Peak loops for AArch64.
#![expect(unsafe_code, reason = "calls into code compiled for more features than the crate")]

use super::peak_loop::{PeakLoop, PeakLoops};
use crate::isa::neon::dot_i8::{sdot, smmla};
use std::arch::aarch64::*;
use std::hint::black_box;

/// Independent dependency chains.
const CHAINS: usize = 16;

pub(super) const NEON: PeakLoops = PeakLoops {
    int8: Some(PeakLoop {
        instructions: "smlal",
        ops: 2 * 8 * PAIRED as u64,
        // SAFETY: in this table, which `PeakLoops::of` hands out only for an `Isa` that exists,
        // and so only when the machine has its features.
        run: |iterations| unsafe { dot_neon(iterations) },
    }),
    bf16: None,
    f32: Some(PeakLoop {
        instructions: "fmla",
        ops: 2 * 4 * CHAINS as u64,
        // SAFETY: as above.
        run: |iterations| unsafe { fma_neon(iterations) },
    }),
};

pub(super) const DOTPROD: PeakLoops = PeakLoops {
    int8: Some(PeakLoop {
        instructions: "sdot",
        ops: 2 * 16 * CHAINS as u64,
        // SAFETY: as above.
        run: |iterations| unsafe { dot_dotprod(iterations) },
    }),
    bf16: None,
    f32: NEON.f32,
};

pub(super) const I8MM: PeakLoops = PeakLoops {
    int8: Some(PeakLoop {
        instructions: "smmla",
        ops: 2 * 32 * CHAINS as u64,
        // SAFETY: as above.
        run: |iterations| unsafe { dot_i8mm(iterations) },
    }),
    bf16: None,
    f32: NEON.f32,
};

/// Chains of the pairwise products: fewer, since their operands take registers too.
const PAIRED: usize = 8;

/// Sums of products in 16 bits, as for weights of few bits.
#[target_feature(enable = "neon")]
fn dot_neon(iterations: u64) {
    let step = black_box(vdup_n_s8(1));
    let x = black_box([vdup_n_s8(3), vdup_n_s8(5), vdup_n_s8(7), vdup_n_s8(9)]);
    // Changes in every iteration, so that the compiler cannot hoist a product out of the loop.
    let mut w = black_box([vdup_n_s8(11), vdup_n_s8(13)]);
    let mut sums = [vdupq_n_s16(0); PAIRED];
    for _ in 0..iterations {
        w = [vadd_s8(w[0], step), vsub_s8(w[1], step)];
        for (at, sum) in sums.iter_mut().enumerate() {
            *sum = vmlal_s8(*sum, w[at / 4], x[at % 4]);
        }
    }
    black_box(sums);
}

#[target_feature(enable = "neon")]
fn fma_neon(iterations: u64) {
    let (a, b) = black_box((vdupq_n_f32(0.999), vdupq_n_f32(0.001)));
    let mut sums = [vdupq_n_f32(0.0); CHAINS];
    for _ in 0..iterations {
        for sum in &mut sums {
            *sum = vfmaq_f32(*sum, a, b);
        }
    }
    black_box(sums);
}

#[target_feature(enable = "neon,dotprod")]
fn dot_dotprod(iterations: u64) {
    let (w, x) = black_box((vdupq_n_s8(3), vdupq_n_s8(5)));
    let mut sums = [vdupq_n_s32(0); CHAINS];
    for _ in 0..iterations {
        for sum in &mut sums {
            *sum = sdot::<0>(*sum, w, x);
        }
    }
    black_box(sums);
}

#[target_feature(enable = "neon,i8mm")]
fn dot_i8mm(iterations: u64) {
    let (w, x) = black_box((vdupq_n_s8(3), vdupq_n_s8(5)));
    let mut sums = [vdupq_n_s32(0); CHAINS];
    for _ in 0..iterations {
        for sum in &mut sums {
            *sum = smmla(*sum, w, x);
        }
    }
    black_box(sums);
}
