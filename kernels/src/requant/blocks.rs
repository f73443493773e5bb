//! Quantises blocks of 32 values, by the rules stated at [`Requant`]. The divisor is the f32 scale
//! before its rounding to binary16, as in files quantised by llama.cpp.

use super::Requant;
use crate::binary16;

/// Values per block of every format here.
pub(crate) const BLOCK: usize = 32;

/// Bits of an f32 without its sign. As integers they have the order of magnitudes, with infinity and
/// NaN above all others.
const MAGNITUDE: u32 = 0x7fff_ffff;
/// Magnitude bits of infinity: everything from here on is not finite.
const INFINITE: u32 = 0x7f80_0000;

/// Quantises `x`, whole blocks, to the stored blocks `to`. Returns false, with `to` undefined, if a
/// value is not finite or a scale or minimum is too large for binary16.
///
/// # Panics
/// If the size of `to` does not match.
pub(crate) fn quantize(format: Requant, x: &[f32], to: &mut [u8]) -> bool {
    let row_bytes = format.dtype().row_bytes(x.len());
    assert_eq!(row_bytes, Some(to.len()), "blocks of {} values", x.len());
    let x = x.as_chunks().0;
    match format {
        Requant::Q8_0 => each(x, to, q8_0),
        Requant::Q4_1 => each(x, to, q4_1),
        Requant::Q4_0 => each(x, to, q4_0),
    }
}

fn each<const BYTES: usize>(
    x: &[[f32; BLOCK]],
    to: &mut [u8],
    block: impl Fn(&[f32; BLOCK], &mut [u8; BYTES]) -> bool,
) -> bool {
    x.iter().zip(to.as_chunks_mut().0).fold(true, |sound, (x, to)| block(x, to) & sound)
}

/// Magnitude bits of the value of largest magnitude.
fn largest(x: &[f32; BLOCK]) -> u32 {
    x.iter().fold(0, |most, x| most.max(x.to_bits() & MAGNITUDE))
}

/// Stores a scale or minimum as binary16; false if that is not finite.
fn store(value: f32, to: &mut [u8; 2]) -> bool {
    let half = binary16::from_f32(value);
    *to = half.to_le_bytes();
    half & 0x7c00 != 0x7c00
}

/// 1 / d, or 0 if d is 0.
fn inverse(d: f32) -> f32 {
    if d == 0.0 { 0.0 } else { 1.0 / d }
}

fn q8_0(x: &[f32; BLOCK], to: &mut [u8; 34]) -> bool {
    let [d0, d1, q @ ..] = to;
    let largest = largest(x);
    let d = f32::from_bits(largest) / 127.0;
    let mut half = [0; 2];
    let sound = store(d, &mut half) && largest < INFINITE;
    (*d0, *d1) = half.into();
    let inverse = inverse(d);
    for (q, x) in q.iter_mut().zip(x) {
        *q = nearest((x * inverse).clamp(-127.0, 127.0)) as u8;
    }
    sound
}

/// The nearest integer; ties are rounded away from zero.
fn nearest(x: f32) -> i32 {
    let whole = x as i32;
    let rest = x - whole as f32;
    whole + i32::from(rest >= 0.5) - i32::from(rest <= -0.5)
}

fn q4_0(x: &[f32; BLOCK], to: &mut [u8; 18]) -> bool {
    let [d0, d1, q @ ..] = to;
    let largest = largest(x);
    let extreme = x.iter().find(|x| x.to_bits() & MAGNITUDE == largest);
    // Adding 0 turns −0 into 0.
    let d = extreme.map_or(0.0, |extreme| extreme + 0.0) / -8.0;
    let mut half = [0; 2];
    let sound = store(d, &mut half) && largest < INFINITE;
    (*d0, *d1) = half.into();
    let inverse = inverse(d);
    nibbles(x, q, |x| x * inverse + 8.5);
    sound
}

fn q4_1(x: &[f32; BLOCK], to: &mut [u8; 20]) -> bool {
    let [d0, d1, m0, m1, q @ ..] = to;
    let (min, max) = x.iter().fold((x[0], x[0]), |(min, max), x| (min.min(*x), max.max(*x)));
    let d = (max - min) / 15.0;
    let (mut scale, mut minimum) = ([0; 2], [0; 2]);
    let sound = store(d, &mut scale) && store(min, &mut minimum) && largest(x) < INFINITE;
    (*d0, *d1) = scale.into();
    (*m0, *m1) = minimum.into();
    let inverse = inverse(d);
    nibbles(x, q, |x| (x - min) * inverse + 0.5);
    sound
}

/// Packs 4-bit integers: the first 16 values into low nibbles, the others into high ones. `step` maps
/// a value to a number that is truncated and clamped to 0 ..= 15.
fn nibbles(x: &[f32; BLOCK], to: &mut [u8; BLOCK / 2], step: impl Fn(f32) -> f32) {
    let q = x.map(|x| (step(x) as i32).clamp(0, 15) as u8);
    for (i, to) in to.iter_mut().enumerate() {
        *to = q[i] | q[i + BLOCK / 2] << 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::dequantize;
    use half::f16;

    /// The same value by value, in f64 except for the scale and its inverse, which are f32.
    fn naive(format: Requant, x: &[f32]) -> Vec<u8> {
        let half = |x: f32| f16::from_f32(x).to_le_bytes().to_vec();
        let inverse = |d: f32| if d == 0.0 { 0.0 } else { 1.0 / d };
        let mut bytes = Vec::new();
        for x in x.chunks(32) {
            let mut extreme = 0.0f32;
            for x in x {
                if x.abs() > extreme.abs() {
                    extreme = *x;
                }
            }
            let min = x.iter().copied().fold(f32::INFINITY, f32::min);
            let max = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let (d, shift, top) = match format {
                Requant::Q8_0 => (extreme.abs() / 127.0, 0.0, 0.0),
                Requant::Q4_1 => ((max - min) / 15.0, min, 0.5),
                Requant::Q4_0 => (extreme / -8.0, 0.0, 8.5),
            };
            bytes.extend(half(d));
            if format == Requant::Q4_1 {
                bytes.extend(half(min));
            }
            if format == Requant::Q8_0 {
                bytes.extend(
                    x.iter().map(|x| (x * inverse(d)).round().clamp(-127.0, 127.0) as i8 as u8),
                );
                continue;
            }
            let q: Vec<u8> = x
                .iter()
                .map(|x| ((x - shift) * inverse(d) + top).floor().clamp(0.0, 15.0) as u8)
                .collect();
            bytes.extend((0..16).map(|i| q[i] + 16 * q[16 + i]));
        }
        bytes
    }

    /// Test blocks: uniform noise of many magnitudes, values halfway between steps, one large value,
    /// constants, zeros, one sign only.
    fn cases() -> Vec<Vec<f32>> {
        let mut state = 7u32;
        let mut noise = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1u32 << 23) as f32 - 1.0
        };
        let mut cases: Vec<Vec<f32>> = Vec::new();
        for exponent in -30..=15 {
            cases.push((0..96).map(|_| noise() * 2f32.powi(exponent)).collect());
        }
        cases.push((0..96).map(|i| (i % 33) as f32 / 2.0 - 8.0).collect());
        cases.push((0..64).map(|i| i as f32 * 4.0 - 126.0).collect());
        cases.push((0..32).map(|i| if i == 17 { -1000.0 } else { noise() }).collect());
        cases.push((0..32).map(|_| noise().abs() + 3.0).collect());
        cases.push((0..32).map(|_| -noise().abs() - 3.0).collect());
        for constant in [0.0, -0.0, 1.0, -2.5, 65504.0, 1e-7, 1e-20, 1e-40, f32::MIN_POSITIVE] {
            cases.push(vec![constant; 32]);
        }
        cases.push((0..32).map(|i| if i % 2 == 0 { 8.0 } else { -8.0 }).collect());
        cases
    }

    fn quantized(format: Requant, x: &[f32]) -> (Vec<u8>, bool) {
        let mut bytes = vec![0; format.dtype().row_bytes(x.len()).expect("whole blocks")];
        let sound = quantize(format, x, &mut bytes);
        (bytes, sound)
    }

    #[test]
    fn blocks_equal_those_of_the_naive_quantiser() {
        for (format, x) in
            Requant::ALL.iter().flat_map(|f| cases().into_iter().map(move |x| (*f, x)))
        {
            let (got, sound) = quantized(format, &x);
            assert!(sound, "{format} {x:?}");
            assert_eq!(got, naive(format, &x), "{format} {x:?}");
        }
    }

    /// The bound is half a step, plus the rounding of scale and minimum to binary16 (relative 2^-11,
    /// absolute 2^-25 for subnormal numbers), and for Q4_0 the end of the range without a step.
    #[test]
    fn quantisation_errors_stay_within_their_bound() {
        for (format, x) in
            Requant::ALL.iter().flat_map(|f| cases().into_iter().map(move |x| (*f, x)))
        {
            let got = dequantize(format.dtype(), &quantized(format, &x).0);
            for (x, got) in x.chunks(32).zip(got.chunks(32)) {
                let rounding = |x: f64| (x.abs() / 2048.0).max(2f64.powi(-25));
                let most = x.iter().map(|x| f64::from(x.abs())).fold(0.0, f64::max);
                let low = x.iter().copied().map(f64::from).fold(f64::INFINITY, f64::min);
                let high = x.iter().copied().map(f64::from).fold(f64::NEG_INFINITY, f64::max);
                let bound = match format {
                    Requant::Q8_0 => most / 254.0 + 127.0 * rounding(most / 127.0),
                    Requant::Q4_1 => {
                        let d = (high - low) / 15.0;
                        d / 2.0 + 15.0 * rounding(d) + rounding(low)
                    }
                    Requant::Q4_0 => most / 8.0 + 8.0 * rounding(most / 8.0),
                };
                for (x, got) in x.iter().zip(got) {
                    let error = (f64::from(*x) - f64::from(*got)).abs();
                    assert!(
                        error <= bound * (1.0 + 1e-5),
                        "{format} {x}: {got}, {error} > {bound}"
                    );
                }
            }
        }
    }

    #[test]
    fn values_that_are_not_finite_or_too_large_are_reported() {
        let bad = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, -1e30];
        for (format, bad) in Requant::ALL.iter().flat_map(|f| bad.map(|bad| (*f, bad))) {
            for at in [0, 13, 31, 32, 95] {
                let mut x: Vec<f32> = (0..96).map(|i| i as f32).collect();
                x[at] = bad;
                assert!(!quantized(format, &x).1, "{format} {bad} at {at}");
            }
        }
    }
}
