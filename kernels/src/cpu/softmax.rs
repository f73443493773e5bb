//! Online softmax over the pages of one query row: a running maximum and sum, corrected
//! when a page raises the maximum (the order of FlashAttention-2).

use crate::cpu::act::{exp, scale_body, soft_cap_body};
use std::ops::Range;

/// What to do with the raw scores of a page.
#[derive(Clone, Debug)]
pub(crate) struct PageMask {
    /// Keys of the page that the row may see; not empty.
    pub(crate) keys: Range<usize>,
    pub(crate) scale: f32,
    pub(crate) soft_cap: Option<f32>,
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

/// Turns raw scores into weights relative to the new maximum and returns the factor for
/// what was accumulated before.
#[inline(always)]
pub(crate) fn page<const FMA: bool>(s: &mut [f32], mask: &PageMask, online: &mut Online) -> f32 {
    s[..mask.keys.start].fill(0.0);
    s[mask.keys.end..].fill(0.0);
    let s = &mut s[mask.keys.clone()];
    scale_body(s, mask.scale);
    if let Some(cap) = mask.soft_cap {
        soft_cap_body::<FMA>(s, cap);
    }
    let max = s.iter().fold(online.max, |m, s| if *s > m { *s } else { m });
    let correction = exp::<FMA>(online.max - max);
    let (lines, tail) = s.as_chunks_mut::<16>();
    let mut sums = [0.0f32; 16];
    for line in lines {
        for i in 0..16 {
            line[i] = exp::<FMA>(line[i] - max);
            sums[i] += line[i];
        }
    }
    let mut sum = 0.0;
    for s in tail {
        *s = exp::<FMA>(*s - max);
        sum += *s;
    }
    for lane in sums {
        sum += lane;
    }
    *online = Online { max, sum: online.sum * correction + sum };
    correction
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Isa;

    /// `e^x` by the kernel: with a maximum of 0 the weights are the exponentials.
    fn exps(isa: Isa, x: &[f32]) -> Vec<f32> {
        let mut scores = vec![0.0];
        scores.extend_from_slice(x);
        let mask = PageMask { keys: 0..scores.len(), scale: 1.0, soft_cap: None };
        (isa.kernels().softmax)(&mut scores, &mask, &mut Online::START.clone());
        scores.split_off(1)
    }

    #[test]
    fn exp_stays_within_two_ulp_on_every_isa() {
        let inputs: Vec<f32> = (0..880_001).map(|i| i as f32 * -1e-4).collect();
        for isa in Isa::available() {
            for (x, got) in inputs.iter().zip(exps(isa, &inputs)) {
                let want = f64::from(*x).exp();
                let ulp = f64::from((want as f32).next_up()) - f64::from(want as f32);
                let error = (f64::from(got) - want).abs() / ulp;
                assert!(error <= 2.0, "{}: exp({x}) = {got}, {error} ulp off", isa.name());
            }
        }
    }

    #[test]
    fn far_below_the_maximum_the_weight_is_exactly_zero() {
        for isa in Isa::available() {
            assert_eq!(exps(isa, &[f32::NEG_INFINITY, -1e30, -105.0]), [0.0; 3]);
            assert!(exps(isa, &[f32::NAN])[0].is_nan());
        }
    }
}
