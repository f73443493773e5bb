use crate::isa::Isa;
use crate::loops::softmax::{KeyMask, RunningSoftmax, SoftmaxStep};
use crate::simd::f32x16::LANES;

/// Processes one query; returns the rescale factor of its earlier accumulation.
fn softmax_step(
    isa: Isa,
    scores: &mut [f32],
    w: &SoftmaxStep<'_>,
    state: &mut RunningSoftmax,
) -> f32 {
    let (w, mut factor) = (SoftmaxStep { columns: scores.len(), ..*w }, [f32::NAN]);
    (isa.kernels().online_softmax_step)(scores, &w, std::slice::from_mut(state), &mut factor);
    factor[0]
}

/// `2^x` by the kernel: with a maximum of 0, the weights are the powers.
fn powers(isa: Isa, x: &[f32]) -> Vec<f32> {
    let mut scores = vec![0.0];
    scores.extend_from_slice(x);
    scores.resize(scores.len().next_multiple_of(LANES), 0.0);
    softmax_step(isa, &mut scores, &SoftmaxStep::default(), &mut RunningSoftmax::START.clone());
    scores.split_off(1)[..x.len()].to_vec()
}

#[test]
fn weights_are_within_two_ulp_on_every_isa() {
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
fn weights_far_below_the_maximum_are_exactly_zero() {
    for isa in Isa::available() {
        assert_eq!(powers(isa, &[f32::NEG_INFINITY, -1e30, -152.0]), [0.0; 3]);
        assert!(powers(isa, &[f32::NAN])[0].is_nan());
    }
}

#[test]
fn a_query_that_sees_no_key_keeps_its_state() {
    for isa in Isa::available() {
        let mut state = RunningSoftmax { max: 2.0, sum: 3.0 };
        for before in [RunningSoftmax::START, state] {
            state = before;
            let mut scores = [f32::NAN; 32];
            let mask = Some(KeyMask { bits: &[0, 0], stride: 0, group: 1 });
            let w = SoftmaxStep { mask, ..SoftmaxStep::default() };
            assert_eq!(softmax_step(isa, &mut scores, &w, &mut state), 1.0);
            assert_eq!((state.max, state.sum), (before.max, before.sum));
            assert_eq!(scores, [0.0; 32]);
        }
    }
}

/// Queries processed together have the same bits as processed one by one: rows see different keys,
/// some none, and some maxima rise.
#[test]
fn a_query_does_not_depend_on_its_neighbours() {
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
                (isa.kernels().online_softmax_step)(&mut scores, &w, &mut running, &mut factors);
                for l in 0..queries {
                    let bits = |mask: KeyMask<'_>| &bits[l / mask.group * mask.stride..][..3];
                    let mask = mask.map(|mask| KeyMask { bits: bits(mask), ..mask });
                    let (mut state, query) = (start(l), &mut single[l * STRIDE..][..COLUMNS]);
                    let factor = softmax_step(isa, query, &SoftmaxStep { mask, ..w }, &mut state);
                    let all =
                        |factor: f32, o: RunningSoftmax| [factor, o.max, o.sum].map(f32::to_bits);
                    let what = format!("{}: query {l} of {queries}, {w:?}", isa.name());
                    assert_eq!(all(factors[l], running[l]), all(factor, state), "{what}");
                }
                assert_eq!(scores, single, "{}: {queries} queries, {w:?}", isa.name());
            }
        }
    }
}
