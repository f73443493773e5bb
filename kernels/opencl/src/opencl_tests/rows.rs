//! Ops on rows.

use super::{Bench, assert_near, bits, grouped, noise, plain};
use crate::argmax;
use crate::ops::{Add, Gated, PIECE, RmsNorm, Rope, RopeHeads, Unary, UnaryOp, View};
use lapwing_model::op::{Activation, RopePairs};
use lapwing_model::reference;

pub(super) const WIDTHS: [usize; 8] = [1, 15, 16, 17, 255, 256, 257, 576];

/// A test of the kernels for CPUs, and of those for GPUs.
macro_rules! of_both_kinds {
    ($($name:ident $in_groups:ident $check:ident)*) => {
        $(
            #[test]
            fn $name() {
                let Some(bench) = super::plain() else { return };
                $check(bench);
            }

            #[test]
            fn $in_groups() {
                let Some(bench) = super::grouped() else { return };
                $check(bench);
            }
        )*
    };
}

pub(super) use of_both_kinds;

of_both_kinds! {
    element_wise_ops_agree_with_the_reference_also_in_place
    element_wise_ops_of_gpus_agree_with_the_reference_also_in_place
    check_element_wise_ops

    rms_norm_agrees_with_the_reference_for_rows_and_for_heads_also_in_place
    rms_norm_of_gpus_agrees_with_the_reference_for_rows_and_for_heads_also_in_place
    check_rms_norm

    rotary_embedding_turns_each_head_also_in_place
    rotary_embedding_of_gpus_turns_each_head_also_in_place
    check_rope

    the_largest_value_is_the_first_of_equals_and_finite
    the_largest_value_of_gpus_is_the_first_of_equals_and_finite
    check_top
}

fn check_element_wise_ops(mut bench: Bench) {
    for width in WIDTHS {
        for (rows, in_place) in [(1, false), (3, true)] {
            let wide =
                |seed| noise(seed, rows * width).iter().map(|x| x * 12.0).collect::<Vec<_>>();
            let (a, b) = (wide(1), wide(2));
            let pairs = || a.iter().zip(&b).map(|(a, b)| (f64::from(*a), f64::from(*b)));
            let what = format!("[{rows}, {width}]");
            let with = |bench: &Bench| {
                let (first, second) = (bench.guarded(&a, width), bench.guarded(&b, width));
                (first, second, bench.room(rows, width))
            };

            let (first, second, room) = with(&bench);
            let out = if in_place { &first } else { &room };
            let (x, y) = (first.view(), second.view());
            bench.kernels.add(&Add { a: x, b: y, rows, width, out: out.view() }).unwrap();
            let wanted: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
            assert_eq!(bits(&bench.rows(out)), bits(&wanted), "add {what}");

            // A row of factors for all rows.
            let (first, second, room) = with(&bench);
            let out = if in_place { &first } else { &room };
            let (x, factors) = (first.view(), View { stride: 0, ..second.view() });
            bench.kernels.mul(&Add { a: x, b: factors, rows, width, out: out.view() }).unwrap();
            let wanted = a.iter().zip(b[..width].iter().cycle()).map(|(a, b)| a * b);
            let wanted: Vec<f32> = wanted.collect();
            assert_eq!(bits(&bench.rows(out)), bits(&wanted), "mul {what}");

            for activation in Activation::ALL {
                let (first, second, room) = with(&bench);
                let out = if in_place { &second } else { &room };
                let (gate, up) = (first.view(), second.view());
                let job = Gated { activation, gate, up, rows, width, out: out.view() };
                bench.kernels.gated(&job).unwrap();
                let act = |gate| reference::activation(activation, gate);
                let wanted: Vec<f64> = pairs().map(|(gate, up)| act(gate) * up).collect();
                assert_near(&bench.rows(out), &wanted, 1e-5, &format!("{activation:?} {what}"));
            }

            for op in [UnaryOp::Scale, UnaryOp::SoftCap] {
                let (first, _, room) = with(&bench);
                let out = if in_place { &first } else { &room };
                let (x, number) = (first.view(), 5.0);
                bench
                    .kernels
                    .unary(&Unary { op, x, rows, width, number, out: out.view() })
                    .unwrap();
                let of = |x: f64| match op {
                    UnaryOp::Scale => 5.0 * x,
                    UnaryOp::SoftCap => reference::soft_cap(x, 5.0),
                };
                let wanted: Vec<f64> = pairs().map(|(x, _)| of(x)).collect();
                assert_near(&bench.rows(out), &wanted, 1e-6, &format!("{op:?} {what}"));
            }
        }
    }
}

#[test]
fn large_magnitudes_pass_through_gates_without_nan() {
    let Some(mut bench) = plain() else { return };
    let gate: Vec<f32> = [-1e30, -200.0, -88.0, 0.0, 88.0, 200.0, 1e12].repeat(3);
    for activation in Activation::ALL {
        let wanted = gate.iter().map(|x| reference::activation(activation, f64::from(*x)));
        let wanted: Vec<f64> = wanted.collect();
        let (x, ones) = (bench.guarded(&gate, 21), bench.guarded(&[1.0; 21], 21));
        let out = bench.room(1, 21);
        let (gate, up, out_view) = (x.view(), ones.view(), out.view());
        let job = Gated { activation, gate, up, rows: 1, width: 21, out: out_view };
        bench.kernels.gated(&job).unwrap();
        assert_near(&bench.rows(&out), &wanted, 1e-6, &format!("{activation:?}"));
    }
}

fn check_rms_norm(mut bench: Bench) {
    for len in WIDTHS {
        for (rows, groups, in_place) in [(1, 1, false), (3, 1, true), (2, 5, false), (1, 4, true)] {
            let (x, gain) = (noise(4, rows * groups * len), noise(5, len));
            let (from, weight) = (bench.guarded(&x, groups * len), bench.floats(&gain));
            let room = bench.room(rows, groups * len);
            let out = if in_place { &from } else { &room };
            let job = RmsNorm {
                x: from.view(),
                rows,
                groups,
                weight: &weight,
                len,
                eps: 1e-5,
                out: out.view(),
            };
            bench.kernels.rms_norm(&job).unwrap();
            let wanted = reference::rms_norm(&x, &gain, 1e-5);
            assert_near(&bench.rows(out), &wanted, 2e-6, &format!("{rows} × {groups} × {len}"));
        }
    }
}

/// The rotation in f64. `angles` has for each row all cosines, then all sines.
fn rotated(x: &[f32], shape: RopeHeads, angles: &[f32], rows: usize) -> Vec<f64> {
    let RopeHeads { heads, head_dim, dims, pairs } = shape;
    let mut out: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
    for row in 0..rows {
        let width = 2 * (dims / 2);
        let (cos, sin) = angles[row * width..][..width].split_at(dims / 2);
        for (head, i) in (0..heads).flat_map(|head| (0..dims / 2).map(move |i| (head, i))) {
            let start = (row * heads + head) * head_dim;
            let (a, b) = match pairs {
                RopePairs::Adjacent => (start + 2 * i, start + 2 * i + 1),
                RopePairs::Halves => (start + i, start + i + dims / 2),
            };
            let (cos, sin, x, y) = (f64::from(cos[i]), f64::from(sin[i]), out[a], out[b]);
            (out[a], out[b]) = (x * cos - y * sin, x * sin + y * cos);
        }
    }
    out
}

fn check_rope(mut bench: Bench) {
    let rows = 6;
    for pairs in [RopePairs::Adjacent, RopePairs::Halves] {
        for (heads, head_dim, dims) in [(1, 2, 2), (3, 64, 64), (2, 80, 32), (1, 7, 6), (2, 5, 0)] {
            let shape = RopeHeads { heads, head_dim, dims, pairs };
            let angles = noise(5, rows * (2 * (dims / 2)).max(1));
            let x = noise(6, rows * heads * head_dim);
            let wanted = rotated(&x, shape, &angles, rows);
            let turns = bench.guarded(&angles, (2 * (dims / 2)).max(1));
            for in_place in [false, true] {
                let from = bench.guarded(&x, heads * head_dim);
                let room = bench.room(rows, heads * head_dim);
                let out = if in_place { &from } else { &room };
                let job =
                    Rope { x: from.view(), rows, shape, angles: turns.view(), out: out.view() };
                bench.kernels.rope(&job).unwrap();
                assert_near(&bench.rows(out), &wanted, 1e-6, &format!("{shape:?} {in_place}"));
            }
        }
    }
}

fn check_top(mut bench: Bench) {
    for width in [1, 2, 15, 16, 17, 33, 500, 512, 513, 1700] {
        let mut rows: Vec<Vec<f32>> = vec![
            noise(8, width),
            vec![2.5; width],
            vec![f32::NAN; width],
            vec![f32::NEG_INFINITY; width],
            vec![f32::INFINITY; width],
            (0..width).map(|i| -(((i + 1) % 7) as f32)).collect(),
            (0..width).map(|i| (i % 19) as f32 - 1e9).collect(),
        ];
        // Equal maxima in different lanes, and in the rest after the last whole vector.
        let mut ties = noise(9, width);
        for at in [3, 16 + 2, width - 1] {
            ties[at.min(width - 1)] = 4.0;
        }
        rows.push(ties);
        let mut odd = noise(10, width);
        odd[0] = f32::NAN;
        odd[width / 2] = f32::INFINITY;
        rows.push(odd);
        let x = bench.guarded(&rows.concat(), width);
        let len = 3 * rows.len() * width.div_ceil(PIECE);
        let out = bench.ints(&vec![7; len + 1]);
        bench.kernels.top(x.view(), rows.len(), width, &out).unwrap();
        let words = bench.read_ints(&out);
        assert_eq!(words[len], 7, "{width}: a write beyond the results");
        let found = argmax::read(bytemuck::cast_slice(&words[..len]), rows.len(), width);
        for (row, found) in rows.iter().zip(found) {
            let wanted = lapwing_cpu::argmax(row);
            assert_eq!(found.map(|top| top.column as usize), wanted, "{width}");
            // Of rows with infinite values the probability is of no use.
            if let Some(top) = found.filter(|_| row.iter().all(|x| *x < f32::INFINITY)) {
                let logprob = lapwing_cpu::logprob(row, top.column);
                let error = (top.logprob - logprob).abs();
                assert!(error < 1e-4, "{width}: {} for {logprob}", top.logprob);
            }
        }
    }
}

#[test]
fn groups_of_many_items_compute_every_row_once() {
    let Some(mut bench) = grouped() else { return };
    let (rows, heads, head_dim) = (5, 3, 200);
    let width = heads * head_dim;
    let x = noise(12, rows * width);
    let (from, gain) = (bench.guarded(&x, width), bench.floats(&vec![1.0; head_dim]));
    let out = bench.room(rows, width);
    let (len, eps, weight) = (head_dim, 1e-5, &gain);
    let job = RmsNorm { x: from.view(), rows, groups: heads, weight, len, eps, out: out.view() };
    bench.kernels.rms_norm(&job).unwrap();
    assert_near(&bench.rows(&out), &reference::rms_norm(&x, &vec![1.0; head_dim], eps), 2e-6, "");

    let job = Add { a: from.view(), b: from.view(), rows, width, out: out.view() };
    bench.kernels.add(&job).unwrap();
    let wanted: Vec<f32> = x.iter().map(|x| x + x).collect();
    assert_eq!(bits(&bench.rows(&out)), bits(&wanted));

    let shape = RopeHeads { heads, head_dim, dims: 100, pairs: RopePairs::Halves };
    let angles = noise(13, rows * 100);
    let wanted = rotated(&x, shape, &angles, rows);
    let angles = bench.guarded(&angles, 100);
    let job = Rope { x: from.view(), rows, shape, angles: angles.view(), out: out.view() };
    bench.kernels.rope(&job).unwrap();
    assert_near(&bench.rows(&out), &wanted, 1e-6, "rope");

    let len = 3 * rows * width.div_ceil(PIECE);
    let results = bench.ints(&vec![7; len + 1]);
    bench.kernels.top(from.view(), rows, width, &results).unwrap();
    let words = bench.read_ints(&results);
    assert_eq!(words[len], 7, "a write beyond the results");
    let found = argmax::read(bytemuck::cast_slice(&words[..len]), rows, width);
    let found: Vec<_> = found.into_iter().map(|top| top.map(|top| top.column as usize)).collect();
    let wanted: Vec<_> = x.chunks(width).map(lapwing_cpu::argmax).collect();
    assert_eq!(found, wanted);
}
