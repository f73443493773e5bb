//! Online softmax over the steps of one query row: a running maximum and sum, corrected when a
//! step raises the maximum (the order of FlashAttention-2). Scores come in units of log₂, so that
//! a weight is a power of two.
#![expect(unsafe_code, reason = "vectors are loaded through pointers into whole chunks")]

use crate::cpu::isa::lanes::{LANES, Lanes};
use crate::cpu::tile::madd;

/// What to do with the scores of a step, a multiple of 16.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Weigh<'a> {
    /// Keys that the row sees, 16 per value; `None` = all.
    pub(crate) bits: Option<&'a [u16]>,
    /// Factor on each score.
    pub(crate) key_scale: Option<&'a [f32]>,
    /// Factor on each weight, not counted in the sum.
    pub(crate) value_scale: Option<&'a [f32]>,
}

impl Weigh<'_> {
    /// # Panics
    /// When a slice is shorter than the scores.
    fn check(&self, scores: &[f32]) {
        let len = scores.len();
        assert!(len.is_multiple_of(LANES), "scores are not whole chunks");
        assert!(self.bits.is_none_or(|b| b.len() * LANES >= len), "too few bits");
        assert!(self.key_scale.is_none_or(|s| s.len() >= len), "too few key scales");
        assert!(self.value_scale.is_none_or(|s| s.len() >= len), "too few value scales");
    }
}

/// Running state of one row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Online {
    pub(crate) max: f32,
    pub(crate) sum: f32,
}

impl Online {
    pub(crate) const START: Online = Online { max: f32::NEG_INFINITY, sum: 0.0 };
}

/// Turns scores into weights relative to the new maximum and returns the factor for what was
/// accumulated before; unseen keys get weight 0.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn weigh<V: Lanes>(s: &mut [f32], w: &Weigh<'_>, online: &mut Online) -> f32 {
    w.check(s);
    let chunks = s.len() / LANES;
    let s = s.as_mut_ptr();
    let touched = w.bits.is_some() || w.key_scale.is_some();
    // SAFETY: `check` has compared all lengths with `chunks`.
    unsafe {
        let unseen = V::splat(f32::NEG_INFINITY);
        let mut top = V::splat(online.max);
        for c in 0..chunks {
            let mut x = V::load(s.add(c * LANES));
            if let Some(scale) = w.key_scale {
                x = x.mul(V::load(scale.as_ptr().add(c * LANES)));
            }
            if let Some(bits) = w.bits {
                x = x.keep(*bits.as_ptr().add(c), unseen);
            }
            if touched {
                x.store(s.add(c * LANES));
            }
            top = x.max(top);
        }
        let max = top.highest();
        let base = if max == f32::NEG_INFINITY { 0.0 } else { max };
        let rises = max > online.max && online.max != f32::NEG_INFINITY;
        let correction = if rises { V::splat(online.max - max).exp2().highest() } else { 1.0 };
        let mut sum = V::splat(0.0);
        for c in 0..chunks {
            let mut x = V::load(s.add(c * LANES)).sub(V::splat(base)).exp2();
            sum = sum.add(x);
            if let Some(scale) = w.value_scale {
                x = x.mul(V::load(scale.as_ptr().add(c * LANES)));
            }
            x.store(s.add(c * LANES));
        }
        *online = Online { max, sum: madd::<false>(online.sum, correction, sum.sum()) };
        correction
    }
}

/// `to = to · old + part · new`, which joins what was accumulated relative to two maxima.
#[inline(always)]
pub(crate) fn join<const FMA: bool>(to: &mut [f32], part: &[f32], (old, new): (f32, f32)) {
    for (to, part) in to.iter_mut().zip(part) {
        *to = madd::<FMA>(*to, old, *part * new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Isa;

    /// `2^x` by the kernel: with a maximum of 0 the weights are the powers.
    fn powers(isa: Isa, x: &[f32]) -> Vec<f32> {
        let mut scores = vec![0.0];
        scores.extend_from_slice(x);
        scores.resize(scores.len().next_multiple_of(LANES), 0.0);
        (isa.kernels().weigh)(&mut scores, &Weigh::default(), &mut Online::START.clone());
        scores.split_off(1)[..x.len()].to_vec()
    }

    #[test]
    fn a_weight_stays_within_two_ulp_on_every_isa() {
        let inputs: Vec<f32> = (0..1_270_001).map(|i| i as f32 * -1e-4).collect();
        for isa in Isa::available() {
            for (x, got) in inputs.iter().zip(powers(isa, &inputs)) {
                let want = f64::from(*x).exp2();
                let ulp = f64::from((want as f32).next_up()) - f64::from(want as f32);
                let error = (f64::from(got) - want).abs() / ulp;
                assert!(error <= 2.0, "{}: 2^{x} = {got}, {error} ulp off", isa.name());
            }
        }
    }

    #[test]
    fn far_below_the_maximum_the_weight_is_exactly_zero() {
        for isa in Isa::available() {
            assert_eq!(powers(isa, &[f32::NEG_INFINITY, -1e30, -152.0]), [0.0; 3]);
            assert!(powers(isa, &[f32::NAN])[0].is_nan());
        }
    }

    #[test]
    fn a_row_that_sees_nothing_keeps_its_state() {
        for isa in Isa::available() {
            let mut state = Online { max: 2.0, sum: 3.0 };
            for before in [Online::START, state] {
                state = before;
                let mut scores = [f32::NAN; 32];
                let w = Weigh { bits: Some(&[0, 0]), ..Weigh::default() };
                assert_eq!((isa.kernels().weigh)(&mut scores, &w, &mut state), 1.0);
                assert_eq!((state.max, state.sum), (before.max, before.sum));
                assert_eq!(scores, [0.0; 32]);
            }
        }
    }
}
