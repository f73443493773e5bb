//! The ops that only CPUs compute, on every instruction set against the reference, over awkward sizes.

use crate::support::{assert_close, cpus, noise};
use lapwing_kernels::cpu::{self, JoinedHeads, LayerNormWeights, NormGroups, SomeColumns};
use lapwing_kernels::op::{Curve, Xielu};
use lapwing_kernels::reference;

#[test]
fn layer_norm_matches_the_reference_at_awkward_widths() {
    for cpu in cpus(2) {
        for width in [1, 2, 7, 15, 16, 17, 31, 33, 64, 384, 577] {
            for (rows, offset) in [(1, 0.0), (3, 100.0), (40, -7.0)] {
                let x: Vec<f32> = noise(4, rows * width).iter().map(|x| x + offset).collect();
                let (weight, bias) = (noise(5, width), noise(6, width));
                let all = [Some(&weight[..]), Some(&bias)];
                let mut out = vec![f32::NAN; x.len()];
                let groups = NormGroups { width, group: width };
                cpu::layer_norm(&cpu, &x, groups, &weights_of(all), &mut out);
                let want = reference::layer_norm(&x, width, &weight, &bias, EPS);
                let what = format!("{} {rows}x{width} around {offset}", cpu.isa().name());
                // The mean is exact to the rounding of the values, of which the offset has most digits.
                let error = 3e-6 * f64::from(offset.abs().max(1.0));
                assert_close(&out, &want, error, 1.0, &what);
            }
        }
    }
}

const EPS: f32 = 1e-5;

fn weights_of([weight, bias]: [Option<&[f32]>; 2]) -> LayerNormWeights<'_> {
    LayerNormWeights { weight, bias, eps: EPS }
}

#[test]
fn layer_norm_of_heads_has_weights_and_biases_of_each_head_or_none() {
    for cpu in cpus(2) {
        for [heads, group] in [[1, 16], [3, 8], [4, 33], [7, 64]] {
            let width = heads * group;
            let groups = NormGroups { width, group };
            let (x, weight, bias) = (noise(4, 23 * width), noise(5, width), noise(6, width));
            let (ones, zeros) = (vec![1.0; width], vec![0.0; width]);
            for given in [[true, true], [true, false], [false, true], [false, false]] {
                let chosen = [given[0].then_some(&weight[..]), given[1].then_some(&bias[..])];
                let mut out = vec![f32::NAN; x.len()];
                cpu::layer_norm(&cpu, &x, groups, &weights_of(chosen), &mut out);
                let [weight, bias] = [chosen[0].unwrap_or(&ones), chosen[1].unwrap_or(&zeros)];
                let want = reference::layer_norm(&x, group, weight, bias, EPS);
                let what = format!("{} {heads}x{group} {given:?}", cpu.isa().name());
                assert_close(&out, &want, 3e-6, 1.0, &what);
            }
        }
    }
}

#[test]
fn layer_norm_of_equal_values_is_the_bias() {
    for cpu in cpus(1) {
        let (weight, bias) = (noise(5, 33), noise(6, 33));
        let weights = LayerNormWeights { weight: Some(&weight), bias: Some(&bias), eps: 1e-12 };
        let mut out = vec![f32::NAN; 33];
        let groups = NormGroups { width: 33, group: 33 };
        cpu::layer_norm(&cpu, &[2.5; 33], groups, &weights, &mut out);
        assert_eq!(out, bias, "{}", cpu.isa().name());
    }
}

const CURVES: [Curve; 8] = [
    Curve::Gelu,
    Curve::GeluTanh,
    Curve::ReluSquared,
    Curve::Xielu(Xielu { positive: 0.8, negative: 0.6, beta: 0.5, eps: -1e-6 }),
    Curve::Clamp { limit: 1.5 },
    Curve::Sigmoid,
    Curve::Softplus,
    Curve::Exp,
];

#[test]
fn curves_match_the_reference_at_awkward_lengths() {
    for cpu in cpus(2) {
        for curve in CURVES {
            for len in [0, 1, 7, 15, 16, 17, 31, 33, 1001] {
                for scale in [0.01, 1.0, 6.0, 100.0] {
                    let x: Vec<f32> = noise(6, len).iter().map(|x| x * scale).collect();
                    let mut out = vec![f32::NAN; len];
                    cpu::curve(&cpu, curve, &x, &mut out);
                    for (x, out) in x.iter().zip(&out) {
                        let want = reference::curve(curve, f64::from(*x));
                        if want > f64::from(f32::MAX) {
                            assert_eq!(*out, f32::INFINITY, "{curve:?} of {x}");
                            continue;
                        }
                        let error = (f64::from(*out) - want).abs();
                        let most = 3e-7 * want.abs().max(f64::from(x.abs())).max(1.0);
                        let what = cpu.isa().name();
                        assert!(error <= most, "{what} {curve:?} of {x}: {out} for {want}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_value_that_is_no_number_stays_none_in_every_curve() {
    for cpu in cpus(1) {
        for curve in CURVES.into_iter().filter(|curve| !matches!(curve, Curve::Xielu(_))) {
            let mut out = vec![0.0; 17];
            cpu::curve(&cpu, curve, &[f32::NAN; 17], &mut out);
            assert!(out.iter().all(|x| x.is_nan()), "{} {curve:?}", cpu.isa().name());
        }
    }
}

#[test]
fn every_head_is_joined_with_its_own_part_or_with_that_of_all() {
    let shapes = [[1, 1, 1, 1], [3, 1, 5, 2], [45, 5, 7, 3], [130, 40, 64, 32], [2, 3, 8, 64]];
    for cpu in cpus(2) {
        for [rows, heads, first, second] in shapes {
            for is_shared in [false, true] {
                let widths = [heads * first, second * if is_shared { 1 } else { heads }];
                let [a, b] = [(1, widths[0]), (2, widths[1])].map(|(n, w)| noise(n, rows * w));
                let mut out = vec![f32::NAN; rows * heads * (first + second)];
                let joined = JoinedHeads { heads, widths, is_shared };
                cpu::join_heads(&cpu, &a, &b, joined, &mut out);
                let want = reference::join_heads(&a, &b, rows, heads, is_shared);
                assert_eq!(out, want, "{} {rows} rows of {joined:?}", cpu.isa().name());
            }
        }
        let joined = JoinedHeads { heads: 2, widths: [4, 1], is_shared: true };
        cpu::join_heads(&cpu, &[], &[], joined, &mut []);
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

#[test]
fn columns_are_kept_once_or_several_times() {
    for cpu in cpus(2) {
        for (width, first, count, times) in
            [(1, 0, 1, 7), (33, 5, 9, 1), (40, 39, 1, 300), (16, 0, 16, 64)]
        {
            let x = noise(3, 45 * width);
            let mut out = vec![f32::NAN; 45 * count * times];
            let kept = SomeColumns { width, first, count, times };
            cpu::columns(&cpu, &x, kept, &mut out);
            let want = reference::columns(&x, width, first..first + count, times);
            assert_eq!(out, want, "{} {kept:?}", cpu.isa().name());
        }
    }
}
