//! Online softmax: a running maximum and sum for each query (one head of a query row), rescaled
//! when a step raises the maximum, in the order of FlashAttention-2. Scores are in units of log₂,
//! so weights are powers of two.
#![expect(unsafe_code, reason = "vectors are loaded through pointers into whole chunks")]

use crate::simd::f32x16::{F32x16, LANES};
use crate::simd::scalar::mul_add;

/// The scores of one step.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SoftmaxStep<'a> {
    /// Scores per query, a multiple of 16.
    pub(crate) columns: usize,
    /// Values from one query's scores to the next.
    pub(crate) stride: usize,
    /// `None` if every query sees all keys.
    pub(crate) mask: Option<KeyMask<'a>>,
    /// Factor on each score.
    pub(crate) key_scale: Option<&'a [f32]>,
    /// Factor on each weight; does not count in the sum.
    pub(crate) value_scale: Option<&'a [f32]>,
}

/// Which keys each query sees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyMask<'a> {
    /// One bit per key, 16 keys per value.
    pub bits: &'a [u16],
    /// Values from one row to the next.
    pub(crate) stride: usize,
    /// Consecutive queries that belong to one row.
    pub(crate) group: usize,
}

impl SoftmaxStep<'_> {
    /// # Panics
    /// When a slice is too short for the scores of `queries` queries.
    fn check(&self, scores: &[f32], queries: usize) {
        let SoftmaxStep { columns, stride, .. } = *self;
        let is_long = |s: Option<&[f32]>| s.is_none_or(|s| s.len() >= columns);
        assert!(columns.is_multiple_of(LANES), "scores are not whole chunks");
        assert!(queries == 0 || scores.len() >= (queries - 1) * stride + columns, "too few scores");
        assert!(is_long(self.key_scale), "too few key scales");
        assert!(is_long(self.value_scale), "too few value scales");
        if let (Some(mask), 1..) = (&self.mask, queries) {
            let last = (queries - 1) / mask.group * mask.stride;
            assert!(mask.bits.len() >= last + columns / LANES, "too few bits");
        }
    }
}

/// Running maximum and sum of one query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunningSoftmax {
    pub(crate) max: f32,
    pub(crate) sum: f32,
}

impl RunningSoftmax {
    pub(crate) const START: RunningSoftmax = RunningSoftmax { max: f32::NEG_INFINITY, sum: 0.0 };
}

/// Queries processed together: the reduction of one query is latency-bound.
const INTERLEAVED: usize = 4;

/// Turns scores into softmax weights relative to the query's new maximum and updates the running
/// state. `factors` receives the rescale factor of each query's earlier accumulation. Masked keys
/// get weight 0.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn online_softmax_step<V: F32x16>(
    scores: &mut [f32],
    w: &SoftmaxStep<'_>,
    running: &mut [RunningSoftmax],
    factors: &mut [f32],
) {
    w.check(scores, running.len());
    let blocks = running.chunks_mut(INTERLEAVED).zip(factors.chunks_mut(INTERLEAVED));
    for (block, (running, factors)) in blocks.enumerate() {
        let first = block * INTERLEAVED;
        // SAFETY: by the caller; `check` has compared all lengths.
        unsafe {
            let scores = scores.as_mut_ptr().add(first * w.stride);
            match running.len() {
                4 => interleaved::<V, 4>(scores, w, first, running, factors),
                3 => interleaved::<V, 3>(scores, w, first, running, factors),
                2 => interleaved::<V, 2>(scores, w, first, running, factors),
                _ => interleaved::<V, 1>(scores, w, first, running, factors),
            }
        }
    }
}

/// Processes L queries from number `first` on, whose scores begin at `scores`.
///
/// # Safety
/// The machine has the instructions of `V`, and [`SoftmaxStep::check`] has checked that these
/// queries exist.
#[inline(always)]
unsafe fn interleaved<V: F32x16, const L: usize>(
    scores: *mut f32,
    w: &SoftmaxStep<'_>,
    first: usize,
    running: &mut [RunningSoftmax],
    factors: &mut [f32],
) {
    let touched = w.mask.is_some() || w.key_scale.is_some();
    // SAFETY: by the caller.
    unsafe {
        let masked_out = V::splat(f32::NEG_INFINITY);
        let mut top = [masked_out; L];
        let mut bits = [std::ptr::null(); L];
        for l in 0..L {
            top[l] = V::splat(running[l].max);
            if let Some(mask) = w.mask {
                bits[l] = mask.bits.as_ptr().add((first + l) / mask.group * mask.stride);
            }
        }
        for c in 0..w.columns / LANES {
            for l in 0..L {
                let at = scores.add(l * w.stride + c * LANES);
                let mut x = V::load(at);
                if let Some(scale) = w.key_scale {
                    x = x.mul(V::load(scale.as_ptr().add(c * LANES)));
                }
                if w.mask.is_some() {
                    x = x.keep(*bits[l].add(c), masked_out);
                }
                if touched {
                    x.store(at);
                }
                top[l] = x.max(top[l]);
            }
        }
        let (mut base, mut max) = ([V::splat(0.0); L], [f32::NEG_INFINITY; L]);
        // Stays 0, so the factor is 2⁰ = 1, if nothing was accumulated.
        let mut decay = [0.0; LANES];
        for l in 0..L {
            max[l] = top[l].highest();
            if max[l] != f32::NEG_INFINITY {
                base[l] = V::splat(max[l]);
            }
            if running[l].max != f32::NEG_INFINITY {
                decay[l] = running[l].max - max[l];
            }
        }
        V::load(decay.as_ptr()).exp2().store(decay.as_mut_ptr());
        let mut sums = [V::splat(0.0); L];
        for c in 0..w.columns / LANES {
            for l in 0..L {
                let at = scores.add(l * w.stride + c * LANES);
                let mut x = V::load(at).sub(base[l]).exp2();
                sums[l] = sums[l].add(x);
                if let Some(scale) = w.value_scale {
                    x = x.mul(V::load(scale.as_ptr().add(c * LANES)));
                }
                x.store(at);
            }
        }
        for l in 0..L {
            factors[l] = decay[l];
            let sum = mul_add::<false>(running[l].sum, decay[l], sums[l].sum());
            running[l] = RunningSoftmax { max: max[l], sum };
        }
    }
}
