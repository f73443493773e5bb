//! Matmuls of activations with one scale, or one scale and minimum, for each row, on every instruction set.

use crate::a_kernel_differs_from_the_reference::{SHAPES, cols};
use crate::support::{assert_close, cpus, noise, packed};
use lapwing_kernels::cpu::{self, Activations, Matrix};
use lapwing_kernels::formats::DType;
use lapwing_kernels::reference;

#[test]
fn matmul_of_rows_with_one_scale_is_exact_for_their_rounded_values() {
    for activations in [Activations::Int8Row, Activations::Int8RowMin] {
        let with_min = activations == Activations::Int8RowMin;
        let cpus = cpus(2).into_iter().map(|cpu| cpu.with_activations(activations));
        for (cpu, dtype) in cpus.flat_map(|cpu| DType::ALL.map(|dtype| (cpu.clone(), dtype))) {
            if dtype.block_len() == 1 {
                continue;
            }
            for (m, n, blocks) in SHAPES {
                let k = cols(dtype, blocks);
                let bytes = reference::quantize(dtype, &noise(1, n * k));
                // Rows of other ranges: around 0, one sign only, and a few large values.
                let shape = |(i, x): (usize, f32)| match i / k % 3 {
                    0 => x,
                    1 => x + 1.5,
                    _ => x * if i % 97 == 5 { -40.0 } else { 0.5 },
                };
                let x: Vec<f32> = noise(2, m * k).into_iter().enumerate().map(shape).collect();
                let bias = noise(3, n);
                let matrix = packed(&cpu, &Matrix::new(dtype, n, k, &bytes).unwrap());
                let mut out = vec![f32::NAN; m * n];
                cpu::matmul(&cpu, &matrix.all(), &x, Some(&bias), &mut out);
                let weights = reference::dequantize(dtype, &bytes);
                let mut want = reference::matmul_by_row(&weights, k, &x, with_min);
                for (i, want) in want.iter_mut().enumerate() {
                    *want += f64::from(bias[i % n]);
                }
                // The error of f32 sums grows with the terms: up to 20 times those of a row of noise.
                let what = format!("{} {dtype} {m}x{n}x{k} {activations:?}", cpu.isa().name());
                assert_close(&out, &want, 2e-6, 20.0 * (k as f64).sqrt(), &what);
                let mut part = vec![f32::NAN; m * (n - n / 2)];
                cpu::matmul(&cpu, &matrix.channels(n / 2..n), &x, Some(&bias[n / 2..]), &mut part);
                let whole = out.chunks(n).flat_map(|row| &row[n / 2..]);
                assert!(part.iter().eq(whole), "{what}: some channels");
            }
        }
    }
}
