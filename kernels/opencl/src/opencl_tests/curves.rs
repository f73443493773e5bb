//! Layer norms, and functions of each value.

use super::rows::{WIDTHS, of_both_kinds};
use super::{Bench, assert_near, noise};
use crate::ops::{Curved, LayerNorm};
use lapwing_model::op::{Curve, Xielu};
use lapwing_model::reference;

of_both_kinds! {
    layer_norm_agrees_with_the_reference_for_rows_and_for_heads_also_in_place
    layer_norm_of_gpus_agrees_with_the_reference_for_rows_and_for_heads_also_in_place
    check_layer_norm

    curves_agree_with_the_reference_also_in_place
    curves_of_gpus_agree_with_the_reference_also_in_place
    check_curves
}

fn check_layer_norm(mut bench: Bench) {
    for len in WIDTHS {
        for (rows, groups, in_place) in [(1, 1, false), (3, 1, true), (2, 5, false), (1, 4, true)] {
            let width = groups * len;
            let x: Vec<f32> = noise(4, rows * width).iter().map(|x| x + 3.0).collect();
            let (gain, offset) = (noise(5, width), noise(6, width));
            let (weight, bias) = (bench.floats(&gain), bench.floats(&offset));
            for [has_weight, has_bias] in [[true, true], [true, false], [false, false]] {
                let (from, room) = (bench.guarded(&x, width), bench.room(rows, width));
                let out = if in_place { &from } else { &room };
                let job = LayerNorm {
                    x: from.view(),
                    rows,
                    groups,
                    len,
                    weight: has_weight.then_some(&weight),
                    bias: has_bias.then_some(&bias),
                    eps: 1e-5,
                    out: out.view(),
                };
                bench.kernels.layer_norm(&job).unwrap();
                let gain = if has_weight { gain.clone() } else { vec![1.0; width] };
                let offset = if has_bias { offset.clone() } else { vec![0.0; width] };
                let wanted = reference::layer_norm(&x, len, &gain, &offset, 1e-5);
                let what = format!("[{rows}, {groups}, {len}] {has_weight} {has_bias}");
                assert_near(&bench.rows(out), &wanted, 2e-5, &what);
            }
        }
    }
}

fn check_curves(mut bench: Bench) {
    let xielu = Xielu { positive: 0.8, negative: 0.6, beta: 0.5, eps: -1e-6 };
    for width in WIDTHS {
        for (rows, in_place) in [(1, false), (3, true)] {
            let x: Vec<f32> = noise(1, rows * width).iter().map(|x| x * 6.0).collect();
            let clamp = Curve::Clamp { limit: 1.5 };
            for curve in [
                Curve::Gelu,
                Curve::GeluTanh,
                Curve::ReluSquared,
                clamp,
                Curve::Xielu(xielu),
                Curve::Sigmoid,
                Curve::Softplus,
                Curve::Exp,
            ] {
                let (from, room) = (bench.guarded(&x, width), bench.room(rows, width));
                let out = if in_place { &from } else { &room };
                let job = Curved { curve, x: from.view(), rows, width, out: out.view() };
                bench.kernels.curve(&job).unwrap();
                let of = |x: &f32| reference::curve(curve, f64::from(*x));
                let wanted: Vec<f64> = x.iter().map(of).collect();
                assert_near(
                    &bench.rows(out),
                    &wanted,
                    1e-5,
                    &format!("{curve:?} [{rows}, {width}]"),
                );
            }
        }
    }
}
