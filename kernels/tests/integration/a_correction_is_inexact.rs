//! Terms that a quantised matmul adds outside its inner loop: zero points and minimums of weights, times
//! sums of activations.

use crate::support::{assert_close, cpus, noise, packed};
use lapwing_kernels::cpu::{self, Matrix};
use lapwing_kernels::formats::DType;
use lapwing_kernels::reference;
use proptest::prelude::*;

/// Formats that represent a block of integers exactly if it contains the smallest and the largest.
const INTEGERS: [(DType, i32, i32); 5] = [
    (DType::Q4_0, -8, 7),
    (DType::Q4_1, 0, 15),
    (DType::Q5_0, -16, 15),
    (DType::Q5_1, 0, 31),
    (DType::Q8_0, -127, 127),
];
/// Values of a block of these formats, and of the activations.
const BLOCK: usize = 32;

/// Pseudo-random integers; each block contains the smallest and the largest.
fn integers(seed: u64, len: usize, first: i32, last: i32) -> Vec<i32> {
    let width = (last - first + 1) as f32;
    let random = noise(seed, len).into_iter().map(|x| first + ((x + 1.0) / 2.0 * width) as i32);
    let mut all: Vec<i32> = random.map(|x| x.min(last)).collect();
    for block in all.chunks_mut(BLOCK) {
        (block[0], block[BLOCK - 1]) = (first, last);
    }
    all
}

fn floats(x: &[i32]) -> Vec<f32> {
    x.iter().map(|x| *x as f32).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Scales are 1 and all sums are exact in f32, so the result is the product of the integers, bit for bit.
    #[test]
    fn matmuls_of_integers_are_exact(
        seed in any::<u64>(),
        (format, least) in (0..INTEGERS.len(), -40i32..40),
        (m, n, blocks) in (1usize..36, 1usize..40, 1usize..8),
    ) {
        let (dtype, first, last) = INTEGERS[format];
        // Formats with a minimum may start at any integer.
        let least = if first == 0 { least } else { 0 };
        let k = blocks * BLOCK;
        let weights = integers(seed, n * k, first + least, last + least);
        let x = integers(!seed, m * k, -127, 127);
        let bytes = reference::quantize(dtype, &floats(&weights));
        let matrix = Matrix::new(dtype, n, k, &bytes).expect("a matrix");
        for cpu in cpus(2) {
            let mut out = vec![f32::NAN; m * n];
            cpu::matmul(&cpu, &packed(&cpu, &matrix).all(), &floats(&x), None, &mut out);
            for (i, out) in out.iter().enumerate() {
                let rows = x[i / n * k..][..k].iter().zip(&weights[i % n * k..][..k]);
                let want: i32 = rows.map(|(x, w)| x * w).sum();
                prop_assert_eq!(*out, want as f32, "{} {} {}", cpu.isa().name(), dtype, i);
            }
        }
    }

    /// Any values in any format, against the reference.
    #[test]
    fn matmuls_of_any_shape_match_the_reference(
        seed in any::<u64>(),
        format in 0..DType::ALL.len(),
        (m, n, blocks) in (1usize..36, 1usize..40, 1usize..4),
        offset in -1f32..1.0,
    ) {
        let dtype = DType::ALL[format];
        let k = blocks * dtype.block_len().max(BLOCK);
        let weights: Vec<f32> = noise(seed, n * k).iter().map(|w| w + offset).collect();
        let x = noise(!seed, m * k);
        let bytes = reference::quantize(dtype, &weights);
        let matrix = Matrix::new(dtype, n, k, &bytes).expect("a matrix");
        let want = reference::matmul(dtype, &bytes, k, &x);
        for cpu in cpus(2) {
            let mut out = vec![f32::NAN; m * n];
            cpu::matmul(&cpu, &packed(&cpu, &matrix).all(), &x, None, &mut out);
            let what = format!("{} {dtype} {m}x{n}x{k}", cpu.isa().name());
            assert_close(&out, &want, 4e-6, (k as f64).sqrt(), &what);
        }
    }
}
