//! RunningSoftmax softmax over the steps of some lines, each a head of a query row: a running maximum and sum,
//! corrected when a step raises the maximum (the order of FlashAttention-2). Scores come in units of log₂,
//! so that a weight is a power of two.
#![expect(unsafe_code, reason = "vectors are loaded through pointers into whole chunks")]

use crate::cpu::isa::lanes::{LANES, Lanes};
use crate::cpu::tile::mul_add;

/// What to do with the scores of a step.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SoftmaxStep<'a> {
    /// Scores of a line, a multiple of 16.
    pub(crate) columns: usize,
    /// Values from the start of a line to that of the next.
    pub(crate) stride: usize,
    /// `None` where every line sees all keys.
    pub(crate) mask: Option<KeyMask<'a>>,
    /// Factor on each score.
    pub(crate) key_scale: Option<&'a [f32]>,
    /// Factor on each weight, not counted in the sum.
    pub(crate) value_scale: Option<&'a [f32]>,
}

/// Keys that lines see.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyMask<'a> {
    /// 16 keys per value.
    pub(crate) bits: &'a [u16],
    /// Values from the start of a row to that of the next.
    pub(crate) stride: usize,
    /// Neighbouring lines that are of one row.
    pub(crate) group: usize,
}

impl SoftmaxStep<'_> {
    /// # Panics
    /// When a slice is shorter than the scores of so many lines.
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

/// Running state of one line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunningSoftmax {
    pub(crate) max: f32,
    pub(crate) sum: f32,
}

impl RunningSoftmax {
    pub(crate) const START: RunningSoftmax = RunningSoftmax { max: f32::NEG_INFINITY, sum: 0.0 };
}

/// Lines that are weighed side by side: one alone would wait for its own maximum.
const INTERLEAVED: usize = 4;

/// Turns scores into weights relative to the new maximum of their line, and leaves the factor for what
/// each line has accumulated before; masked_out keys get weight 0.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn online_softmax_step<V: Lanes>(
    scores: &mut [f32],
    w: &SoftmaxStep<'_>,
    running: &mut [RunningSoftmax],
    factors: &mut [f32],
) {
    w.check(scores, running.len());
    let blocks = running.chunks_mut(INTERLEAVED).zip(factors.chunks_mut(INTERLEAVED));
    for (block, (running, factors)) in blocks.enumerate() {
        let first = block * INTERLEAVED;
        // SAFETY: by the caller; `check` has compared all lengths with those of all lines.
        unsafe {
            let scores = scores.as_mut_ptr().add(first * w.stride);
            match running.len() {
                4 => interleaved::<V, 4>(scores, (w, first), running, factors),
                3 => interleaved::<V, 3>(scores, (w, first), running, factors),
                2 => interleaved::<V, 2>(scores, (w, first), running, factors),
                _ => interleaved::<V, 1>(scores, (w, first), running, factors),
            }
        }
    }
}

/// L lines from `first` on, the first of which begins at `scores`.
///
/// # Safety
/// The machine has the instructions of `V`, and [`SoftmaxStep::check`] has found that these lines exist.
#[inline(always)]
unsafe fn interleaved<V: Lanes, const L: usize>(
    scores: *mut f32,
    (w, first): (&SoftmaxStep<'_>, usize),
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
        // 2⁰ where nothing was accumulated, or the maximum is as before.
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

/// `to = to · old + part · new`, which joins what was accumulated relative to two maxima.
#[inline(always)]
pub(crate) fn join<const FMA: bool>(to: &mut [f32], part: &[f32], (old, new): (f32, f32)) {
    for (to, part) in to.iter_mut().zip(part) {
        *to = mul_add::<FMA>(*to, old, *part * new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Isa;

    /// One line; the factor for what it had accumulated.
    fn weighed(
        isa: Isa,
        scores: &mut [f32],
        w: &SoftmaxStep<'_>,
        state: &mut RunningSoftmax,
    ) -> f32 {
        let (w, mut factor) = (SoftmaxStep { columns: scores.len(), ..*w }, [f32::NAN]);
        (isa.kernels().online_softmax_step)(scores, &w, std::slice::from_mut(state), &mut factor);
        factor[0]
    }

    /// `2^x` by the kernel: with a maximum of 0 the weights are the powers.
    fn powers(isa: Isa, x: &[f32]) -> Vec<f32> {
        let mut scores = vec![0.0];
        scores.extend_from_slice(x);
        scores.resize(scores.len().next_multiple_of(LANES), 0.0);
        weighed(isa, &mut scores, &SoftmaxStep::default(), &mut RunningSoftmax::START.clone());
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
            let mut state = RunningSoftmax { max: 2.0, sum: 3.0 };
            for before in [RunningSoftmax::START, state] {
                state = before;
                let mut scores = [f32::NAN; 32];
                let mask = Some(KeyMask { bits: &[0, 0], stride: 0, group: 1 });
                let w = SoftmaxStep { mask, ..SoftmaxStep::default() };
                assert_eq!(weighed(isa, &mut scores, &w, &mut state), 1.0);
                assert_eq!((state.max, state.sum), (before.max, before.sum));
                assert_eq!(scores, [0.0; 32]);
            }
        }
    }

    /// Lines weighed together are those weighed one by one, bit by bit: rows see different keys, some of
    /// them nothing, and some maxima rise.
    #[test]
    fn a_line_depends_on_those_beside_it() {
        const COLUMNS: usize = 48;
        const STRIDE: usize = COLUMNS + 16;
        let noise = |i: usize| ((i * 2_654_435_761) >> 9 & 0xffff) as f32 / 4096.0 - 8.0;
        let scale: Vec<f32> = (0..COLUMNS).map(|i| 0.5 + noise(i).abs()).collect();
        let bits: Vec<u16> = (0..12 * 3).map(|i| [0x8001, 0, 0xFFFF][(i / 3) % 3]).collect();
        for isa in Isa::available() {
            for (queries, group) in
                (1..=9).flat_map(|queries| [(queries, 1), (queries, 3), (queries, 9)])
            {
                for (masked, scaled) in [(false, false), (true, false), (true, true)] {
                    let mask = masked.then_some(KeyMask { bits: &bits, stride: 3, group });
                    let scale = scaled.then_some(&scale[..]);
                    let w = SoftmaxStep {
                        columns: COLUMNS,
                        stride: STRIDE,
                        mask,
                        key_scale: scale,
                        value_scale: scale,
                    };
                    let start = |l: usize| match l % 3 {
                        0 => RunningSoftmax::START,
                        _ => RunningSoftmax { max: noise(l), sum: 2.0 },
                    };
                    let mut running: Vec<RunningSoftmax> = (0..queries).map(start).collect();
                    let mut scores: Vec<f32> = (0..queries * STRIDE).map(noise).collect();
                    let (mut single, mut factors) = (scores.clone(), vec![f32::NAN; queries]);
                    (isa.kernels().online_softmax_step)(
                        &mut scores,
                        &w,
                        &mut running,
                        &mut factors,
                    );
                    for l in 0..queries {
                        let bits = |mask: KeyMask<'_>| &bits[l / mask.group * mask.stride..][..3];
                        let mask = mask.map(|mask| KeyMask { bits: bits(mask), ..mask });
                        let (mut state, query) = (start(l), &mut single[l * STRIDE..][..COLUMNS]);
                        let factor = weighed(isa, query, &SoftmaxStep { mask, ..w }, &mut state);
                        let all = |factor: f32, o: RunningSoftmax| {
                            [factor, o.max, o.sum].map(f32::to_bits)
                        };
                        let what = format!("{}: query {l} of {queries}, {w:?}", isa.name());
                        assert_eq!(all(factors[l], running[l]), all(factor, state), "{what}");
                    }
                    assert_eq!(scores, single, "{}: {queries} queries, {w:?}", isa.name());
                }
            }
        }
    }
}
