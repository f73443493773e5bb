//! The ops that only encoders have, on every instruction set against the reference, over awkward sizes.

use crate::support::{assert_close, cpus, noise};
use lapwing_kernels::cpu::{self, LayerNormWeights};
use lapwing_kernels::reference;

#[test]
fn layer_norm_matches_the_reference_at_awkward_widths() {
    for cpu in cpus(2) {
        for width in [1, 2, 7, 15, 16, 17, 31, 33, 64, 384, 577] {
            for (rows, offset) in [(1, 0.0), (3, 100.0), (40, -7.0)] {
                let x: Vec<f32> = noise(4, rows * width).iter().map(|x| x + offset).collect();
                let (weight, bias) = (noise(5, width), noise(6, width));
                let weights = LayerNormWeights { weight: &weight, bias: &bias, eps: 1e-5 };
                let mut out = vec![f32::NAN; x.len()];
                cpu::layer_norm(&cpu, &x, &weights, &mut out);
                let want = reference::layer_norm(&x, &weight, &bias, 1e-5);
                let what = format!("{} {rows}x{width} around {offset}", cpu.isa().name());
                // The mean is exact to the rounding of the values, of which the offset has most digits.
                let error = 3e-6 * f64::from(offset.abs().max(1.0));
                assert_close(&out, &want, error, 1.0, &what);
            }
        }
    }
}

#[test]
fn layer_norm_of_equal_values_is_the_bias() {
    for cpu in cpus(1) {
        let (weight, bias) = (noise(5, 33), noise(6, 33));
        let weights = LayerNormWeights { weight: &weight, bias: &bias, eps: 1e-12 };
        let mut out = vec![f32::NAN; 33];
        cpu::layer_norm(&cpu, &[2.5; 33], &weights, &mut out);
        assert_eq!(out, bias, "{}", cpu.isa().name());
    }
}

#[test]
fn gelu_matches_the_reference_at_awkward_lengths() {
    for cpu in cpus(2) {
        for len in [0, 1, 7, 15, 16, 17, 31, 33, 1001] {
            for scale in [0.01, 1.0, 6.0, 100.0] {
                let x: Vec<f32> = noise(6, len).iter().map(|x| x * scale).collect();
                let mut out = vec![f32::NAN; len];
                cpu::gelu(&cpu, &x, &mut out);
                for (x, out) in x.iter().zip(&out) {
                    let want = reference::gelu(f64::from(*x));
                    let error = (f64::from(*out) - want).abs();
                    let most = 3e-7 * f64::from(x.abs().max(1.0));
                    assert!(error <= most, "{} {x}: {out} for {want}", cpu.isa().name());
                }
            }
        }
    }
}

#[test]
fn rows_of_a_table_are_added_by_their_index() {
    for cpu in cpus(2) {
        for width in [1, 7, 16, 33, 384] {
            let rows: Vec<usize> = (0..45).map(|i| i * 17 % 9).collect();
            let (x, table) = (noise(1, rows.len() * width), noise(2, 9 * width));
            let mut out = vec![f32::NAN; x.len()];
            let row_of = |at: usize| &table[rows[at] * width..][..width];
            cpu::add_rows(&cpu, &x, width, row_of, &mut out);
            let want = reference::add_rows(&x, &table, width, &rows);
            assert_close(&out, &want, 1e-6, 1e-6, &format!("{} {width}", cpu.isa().name()));
        }
    }
}
