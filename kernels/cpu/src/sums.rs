//! Ops that sum over rows, or add values with factors of each row.

use crate::context::Cpu;

/// `out = max(x − mean − deviations · σ, 0)` for each row of `width` values, with the variance `σ²` over one value less; a single
/// value has no deviation.
///
/// # Panics
/// When `x` and `out` differ in length or are not whole rows.
pub fn excess(ctx: &Cpu, x: &[f32], width: usize, deviations: f32, out: &mut [f32]) {
    assert!(width > 0 && x.len() == out.len() && x.len().is_multiple_of(width), "not whole rows");
    let kernels = ctx.kernels();
    let chunk = ctx.rows_per_task(x.len() / width, width) * width;
    ctx.pool().chunks_mut(out, chunk, |i, out| {
        let x = &x[i * chunk..][..out.len()];
        for (x, out) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
            (kernels.excess)(x, deviations, out);
        }
    });
}

/// `out = x · |y| / |x|` for each row of `width` values; a row whose squares are zero becomes zero.
///
/// # Panics
/// When the lengths differ, or `x` is not whole rows.
pub fn with_length(ctx: &Cpu, x: &[f32], y: &[f32], width: usize, out: &mut [f32]) {
    assert!(x.len() == y.len() && x.len() == out.len(), "x, y and out differ in length");
    assert!(width > 0 && x.len().is_multiple_of(width), "not whole rows");
    let kernels = ctx.kernels();
    let chunk = ctx.rows_per_task(x.len() / width, width) * width;
    ctx.pool().chunks_mut(out, chunk, |i, out| {
        let at = i * chunk..i * chunk + out.len();
        let rows = x[at.clone()].chunks_exact(width).zip(y[at].chunks_exact(width));
        for ((x, y), out) in rows.zip(out.chunks_exact_mut(width)) {
            let (own, wanted) = ((kernels.square_sum)(x), (kernels.square_sum)(y));
            let factor = if own == 0.0 { 0.0 } else { (wanted / own).sqrt() };
            (kernels.scale_into)(x, factor, out);
        }
    });
}

/// Values with a factor for each row.
#[derive(Clone, Copy, Debug)]
pub struct Summands<'a> {
    /// The values, of as many rows and columns as what they are added to.
    pub values: &'a [&'a [f32]],
    /// Rows of factors.
    pub factors: &'a [f32],
    /// Column of the factors of the first value; those of the others follow.
    pub first: usize,
}

/// `x += Σᵢ factors[first + i] · values[i]` for each row of `width` values.
///
/// # Panics
/// When `x` is not whole rows, a value has another length, or a row lacks a factor.
pub fn add_weighted(ctx: &Cpu, x: &mut [f32], width: usize, summands: &Summands<'_>) {
    let Summands { values, factors, first } = *summands;
    assert!(width > 0 && x.len().is_multiple_of(width), "not whole rows");
    assert!(values.iter().all(|value| value.len() == x.len()), "a value has another length");
    let rows = x.len() / width;
    let columns = factors.len() / rows.max(1);
    assert!(rows == 0 || first + values.len() <= columns, "a row lacks a factor");
    let kernels = ctx.kernels();
    let per_task = ctx.rows_per_task(rows, width * (values.len() + 1));
    ctx.pool().chunks_mut(x, per_task * width, |i, x| {
        for (at, x) in x.chunks_exact_mut(width).enumerate() {
            let row = i * per_task + at;
            let factors = &factors[row * columns + first..];
            for (value, factor) in values.iter().zip(factors) {
                (kernels.axpby)(x, &value[row * width..][..width], 1.0, *factor);
            }
        }
    });
}
