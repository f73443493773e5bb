//! Ops that pick rows or values.

use super::rows::{WIDTHS, of_both_kinds};
use super::{Bench, bits, ints, noise};
use crate::ops::{JoinHeads, RepeatValues, SelectRows};

of_both_kinds! {
    selected_rows_are_copies_also_of_one_row_twice
    selected_rows_of_gpus_are_copies_also_of_one_row_twice
    check_select_rows

    values_are_repeated
    values_are_repeated_on_gpus
    check_repeated_values

    heads_of_two_values_are_joined
    heads_of_two_values_are_joined_on_gpus
    check_joined_heads
}

fn check_joined_heads(mut bench: Bench) {
    for (heads, of_a, of_b) in [(1, 1, 1), (1, 40, 7), (3, 5, 1), (4, 16, 16), (7, 33, 80)] {
        for is_shared in [false, true] {
            let (rows, shared) = (3, if is_shared { 1 } else { heads });
            let (a, b) = (noise(9, rows * heads * of_a), noise(10, rows * shared * of_b));
            let (first, second) =
                (bench.guarded(&a, heads * of_a), bench.guarded(&b, shared * of_b));
            let out = bench.room(rows, heads * (of_a + of_b));
            let (a_rows, b_rows) = (first.view(), second.view());
            let job = JoinHeads {
                a: a_rows,
                b: b_rows,
                rows,
                heads,
                of_a,
                of_b,
                is_shared,
                out: out.view(),
            };
            bench.kernels.join_heads(&job).unwrap();
            let all = (0..rows).flat_map(|row| (0..heads).map(move |head| (row, head)));
            let wanted = all.flat_map(|(row, head)| {
                let at = row * shared + if is_shared { 0 } else { head };
                let of_first = &a[(row * heads + head) * of_a..][..of_a];
                [of_first, &b[at * of_b..][..of_b]].concat()
            });
            let wanted: Vec<f32> = wanted.collect();
            let what = format!("{heads} heads of {of_a} and {of_b}, shared: {is_shared}");
            assert_eq!(bits(&bench.rows(&out)), bits(&wanted), "{what}");
        }
    }
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
