//! Ops that pick rows or values.

use super::rows::{WIDTHS, of_both_kinds};
use super::{Bench, bits, ints, noise};
use crate::ops::{RepeatValues, SelectRows};

of_both_kinds! {
    selected_rows_are_copies_also_of_one_row_twice
    selected_rows_of_gpus_are_copies_also_of_one_row_twice
    check_select_rows

    values_are_repeated
    values_are_repeated_on_gpus
    check_repeated_values
}

fn check_repeated_values(mut bench: Bench) {
    for count in WIDTHS {
        for times in [1, 2, 7, 16] {
            let (x, rows, width) = (noise(8, 3 * count), 3, count * times);
            let (from, out) = (bench.guarded(&x, count), bench.room(rows, width));
            let job = RepeatValues { x: from.view(), rows, width, times, out: out.view() };
            bench.kernels.repeat_values(&job).unwrap();
            let wanted: Vec<f32> = x.iter().flat_map(|x| vec![*x; times]).collect();
            assert_eq!(bits(&bench.rows(&out)), bits(&wanted), "{count} values, {times} times");
        }
    }
}

fn check_select_rows(mut bench: Bench) {
    for width in WIDTHS {
        let x = noise(7, 6 * width);
        let selected = [5, 0, 3, 3];
        let (from, numbers) = (bench.guarded(&x, width), bench.ints(&selected));
        let out = bench.room(selected.len(), width);
        let job = SelectRows {
            x: from.view(),
            selected: ints(&numbers),
            rows: selected.len(),
            width,
            out: out.view(),
        };
        bench.kernels.select_rows(&job).unwrap();
        let wanted = selected.iter().flat_map(|row| &x[*row as usize * width..][..width]);
        let wanted: Vec<f32> = wanted.copied().collect();
        assert_eq!(bits(&bench.rows(&out)), bits(&wanted), "{width}");
    }
}
