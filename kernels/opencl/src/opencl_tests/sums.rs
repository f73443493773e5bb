//! Ops that sum over rows, or add values with factors of each row.

use super::rows::{WIDTHS, of_both_kinds};
use super::{Bench, assert_near, noise};
use crate::ops::{AddWeighted, Excess, View, WithLength};
use lapwing_model::reference;

of_both_kinds! {
    the_excess_of_a_row_agrees_with_the_reference_also_in_place
    the_excess_of_a_row_of_gpus_agrees_with_the_reference_also_in_place
    check_excess

    rows_with_the_lengths_of_others_agree_with_the_reference_also_in_place
    rows_with_the_lengths_of_others_of_gpus_agree_with_the_reference_also_in_place
    check_with_length

    values_with_factors_of_each_row_are_added_also_in_place
    values_with_factors_of_each_row_are_added_by_gpus_also_in_place
    check_add_weighted
}

fn check_excess(mut bench: Bench) {
    for width in WIDTHS {
        for (rows, in_place, deviations) in
            [(1, false, 1.644_853_4), (3, true, 0.0), (2, false, -0.5)]
        {
            let x: Vec<f32> = noise(4, rows * width).iter().map(|x| x * 3.0 + 2.0).collect();
            let (from, room) = (bench.guarded(&x, width), bench.room(rows, width));
            let out = if in_place { &from } else { &room };
            let job = Excess { x: from.view(), rows, width, deviations, out: out.view() };
            bench.kernels.excess(&job).unwrap();
            let wanted = reference::excess(&x, width, f64::from(deviations));
            assert_near(&bench.rows(out), &wanted, 2e-5, &format!("[{rows}, {width}]"));
        }
    }
}

fn check_with_length(mut bench: Bench) {
    for width in WIDTHS {
        for (rows, in_place) in [(1, false), (3, true)] {
            let mut x = noise(4, rows * width);
            x[..width].iter_mut().filter(|_| in_place).for_each(|x| *x = 0.0);
            let y: Vec<f32> = noise(5, rows * width).iter().map(|y| y * 7.0).collect();
            let (from, of) = (bench.guarded(&x, width), bench.guarded(&y, width));
            let room = bench.room(rows, width);
            let out = if in_place { &from } else { &room };
            let job = WithLength { x: from.view(), y: of.view(), rows, width, out: out.view() };
            bench.kernels.with_length(&job).unwrap();
            let wanted = reference::with_length(&x, &y, width);
            assert_near(&bench.rows(out), &wanted, 1e-5, &format!("[{rows}, {width}]"));
        }
    }
}

fn check_add_weighted(mut bench: Bench) {
    for width in WIDTHS {
        for (rows, in_place) in [(1, false), (3, true)] {
            let (x, y) = (noise(1, rows * width), noise(2, rows * width));
            let factors = noise(3, rows * 5);
            let (from, of) = (bench.guarded(&x, width), bench.guarded(&y, width));
            let (own, room) = (bench.guarded(&factors, 5), bench.room(rows, width));
            let out = if in_place { &from } else { &room };
            let (a, b) = (from.view(), of.view());
            let factors_at = View { at: own.view().at + 3, ..own.view() };
            let job = AddWeighted { a, b, factors: factors_at, rows, width, out: out.view() };
            bench.kernels.add_weighted(&job).unwrap();
            let wanted = reference::weighted_sum(&x, &factors, 3, &[&y], rows);
            assert_near(&bench.rows(out), &wanted, 1e-6, &format!("[{rows}, {width}]"));
        }
    }
}
