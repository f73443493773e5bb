//! Ops that sum over rows, or add values with factors of each row, on every instruction set against the reference, over awkward
//! sizes.

use crate::support::{assert_close, bits, cpus, noise};
use lapwing_kernels::cpu::{self, Cpu, Isa, Summands};
use lapwing_kernels::reference;

const WIDTHS: [usize; 12] = [1, 2, 7, 15, 16, 17, 31, 33, 64, 384, 577, 2048];

#[test]
fn excess_matches_the_reference_at_awkward_widths() {
    for cpu in cpus(2) {
        for width in WIDTHS {
            for (rows, offset) in [(1, 0.0), (3, 50.0), (40, -7.0)] {
                let x: Vec<f32> = noise(4, rows * width).iter().map(|x| x + offset).collect();
                for deviations in [1.644_853_4, 0.0, -0.3, 9.0] {
                    let mut out = vec![f32::NAN; x.len()];
                    cpu::excess(&cpu, &x, width, deviations, &mut out);
                    let want = reference::excess(&x, width, f64::from(deviations));
                    let what = format!("{} {rows}x{width} {deviations}", cpu.isa().name());
                    // The mean is exact to the rounding of the values, of which the offset has most digits.
                    let error = 3e-6 * f64::from(offset.abs().max(1.0));
                    assert_close(&out, &want, error, 1.0, &what);
                }
            }
        }
    }
}

#[test]
fn about_a_twentieth_of_normally_distributed_values_exceeds_the_usual_deviations() {
    // Sums of many values are distributed so.
    let (width, parts) = (4096, 48);
    let all = noise(9, width * parts);
    let x: Vec<f32> = all.chunks(parts).map(|part| part.iter().sum()).collect();
    for cpu in cpus(1) {
        let mut out = vec![f32::NAN; width];
        cpu::excess(&cpu, &x, width, 1.644_853_4, &mut out);
        let left = out.iter().filter(|x| **x > 0.0).count() as f64 / width as f64;
        assert!((0.04..0.06).contains(&left), "{}: {left}", cpu.isa().name());
    }
}

#[test]
fn a_value_that_is_no_number_makes_a_whole_row_none() {
    for cpu in cpus(1) {
        let mut x = noise(1, 2 * 33);
        x[40] = f32::NAN;
        let mut out = vec![0.0; x.len()];
        cpu::excess(&cpu, &x, 33, 1.0, &mut out);
        assert!(out[..33].iter().all(|x| x.is_finite()), "{}", cpu.isa().name());
        assert!(out[33..].iter().all(|x| x.is_nan()), "{}", cpu.isa().name());
    }
}

#[test]
fn rows_have_the_lengths_of_others_at_awkward_widths() {
    for cpu in cpus(2) {
        for width in WIDTHS {
            for rows in [1, 3, 40] {
                let mut x = noise(4, rows * width);
                let y: Vec<f32> = noise(5, rows * width).iter().map(|y| y * 30.0).collect();
                // A row of zeros.
                x[(rows - 1) * width..].iter_mut().filter(|_| rows > 1).for_each(|x| *x = 0.0);
                let mut out = vec![f32::NAN; x.len()];
                cpu::with_length(&cpu, &x, &y, width, &mut out);
                let want = reference::with_length(&x, &y, width);
                let what = format!("{} {rows}x{width}", cpu.isa().name());
                assert_close(&out, &want, 2e-6, 1.0, &what);
            }
        }
    }
}

/// Coefficients of a row, of which the first few are not used.
const COLUMNS: usize = 11;

#[test]
fn values_are_added_with_the_factors_of_their_row() {
    for cpu in cpus(2) {
        for width in WIDTHS {
            for (rows, count, first) in [(1, 1, 10), (3, 4, 4), (40, 7, 0), (5, 0, 3)] {
                let (x, factors) = (noise(1, rows * width), noise(2, rows * COLUMNS));
                let values: Vec<Vec<f32>> =
                    (0..count).map(|i| noise(10 + i, rows * width)).collect();
                let values: Vec<&[f32]> = values.iter().map(|value| &value[..]).collect();
                let mut out = x.clone();
                let summands = Summands { values: &values, factors: &factors, first };
                cpu::add_weighted(&cpu, &mut out, width, &summands);
                let want = reference::weighted_sum(&x, &factors, first, &values, rows);
                let what = format!("{} {rows}x{width} {count} from {first}", cpu.isa().name());
                assert_close(&out, &want, 1e-6, 1.0, &what);
            }
        }
    }
}

#[test]
fn a_row_has_the_same_bits_alone_and_in_any_batch() {
    let (rows, width) = (40, 577);
    let (x, y, factors) =
        (noise(1, rows * width), noise(2, rows * width), noise(3, rows * COLUMNS));
    for isa in Isa::available() {
        // Excess, length, and sum of some rows.
        let all = |cpu: &Cpu, rows: std::ops::Range<usize>| {
            let at = rows.start * width..rows.end * width;
            let (x, y) = (&x[at.clone()], &y[at]);
            let factors = &factors[rows.start * COLUMNS..rows.end * COLUMNS];
            let mut outs = [vec![0.0; x.len()], vec![0.0; x.len()], x.to_vec()];
            let [excess, length, sum] = &mut outs;
            cpu::excess(cpu, x, width, 0.5, excess);
            cpu::with_length(cpu, x, y, width, length);
            let summands = Summands { values: &[y, x, y], factors, first: 2 };
            cpu::add_weighted(cpu, sum, width, &summands);
            outs.map(|out| bits(&out))
        };
        let one = Cpu::new(1, isa);
        let mut alone = [const { Vec::new() }; 3];
        for row in 0..rows {
            let of_row = all(&one, row..row + 1);
            alone.iter_mut().zip(of_row).for_each(|(alone, row)| alone.extend(row));
        }
        for threads in [1, 2, 3] {
            assert!(all(&Cpu::new(threads, isa), 0..rows) == alone, "{} {threads}", isa.name());
        }
    }
}
