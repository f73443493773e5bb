//! Rows of a check: their values, and how far results are from them.

use lapwing_model::graph::ValueId;

/// Distinct input rows of a check. The rows of a graph repeat them, so that every row is compared
/// although the reference only computes these.
pub(super) const SAMPLES: usize = 3;

/// The sample in a row of a graph. The order is irregular, so that swapped or repeated rows are
/// detected.
pub(super) fn sample_of(row: usize) -> usize {
    let mixed = (row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    mixed as usize % SAMPLES
}

/// Largest error of a row; infinite if a value is NaN. `size` is the root mean square of the row.
pub(super) fn error(got: &[f32], want: &[f32], size: f32) -> f32 {
    let of = |(got, want): (&f32, &f32)| {
        let error = (got - want).abs() / (want.abs() + size).max(f32::MIN_POSITIVE);
        if error.is_nan() { f32::INFINITY } else { error }
    };
    got.iter().zip(want).map(of).fold(0.0, f32::max)
}

pub(super) fn root_mean_square(row: &[f32]) -> f32 {
    let squares: f64 = row.iter().map(|x| f64::from(*x).powi(2)).sum();
    (squares / row.len().max(1) as f64).sqrt() as f32
}

/// Pseudo-random values in (−1, 1), a function of the value's id.
pub(super) fn noise(value: ValueId, len: usize) -> Vec<f32> {
    let mut state = (value.0 as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..len).map(|_| next()).collect()
}
