use super::*;

#[test]
fn odd_lengths_are_reduced_whole() {
    for len in [1, 15, 16, 17, 1023, 1024, 1025, 49_152, 262_144] {
        let logits: Vec<f32> =
            (0..len).map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 20) as f32 / 97.0).collect();
        let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f64 = logits.iter().map(|l| f64::from(l - max).exp()).sum();
        for id in [0, len / 2, len - 1] {
            let exact = f64::from(logits[id as usize] - max) - sum.ln();
            let found = f64::from(logprob(&logits, id));
            assert!((found - exact).abs() < 3e-6, "{len}: {found} instead of {exact}");
        }
        let first = logits.iter().position(|logit| *logit == max);
        assert_eq!(argmax(&logits), first, "{len}");
    }
}

#[test]
fn every_isa_gives_the_same_token_and_probability() {
    let noise = |i: u32| (i.wrapping_mul(2_654_435_761) >> 20) as f32 / 97.0 - 20.0;
    let mut odd: Vec<f32> = (0..5000).map(noise).collect();
    (odd[3], odd[1030], odd[4990]) = (f32::NAN, f32::INFINITY, f32::NEG_INFINITY);
    for logits in [(0..2049).map(noise).collect(), vec![1.0; 17], odd] {
        let want = (argmax(&logits), logprob(&logits, 7).to_bits());
        for isa in Isa::available() {
            let found = argmax_with(isa.kernels(), &logits);
            let logprob = logprob_with(isa.kernels(), &logits, 7);
            assert_eq!((found, logprob.to_bits()), want, "{}", isa.name());
        }
    }
}

#[test]
fn nan_and_infinite_logits_are_ignored() {
    let bad = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    assert_eq!(argmax(&bad), None);
    assert_eq!(argmax(&[f32::NAN, 1.0, f32::INFINITY, 2.0, 2.0]), Some(3));
    assert!((logprob(&[f32::NAN, 0.0, f32::NEG_INFINITY], 1)).abs() < 1e-6);
    assert_eq!(logprob(&[f32::NEG_INFINITY, 0.0], 0), f32::NEG_INFINITY);
}
