//! RMS norm of rows.

use crate::context::Cpu;
use crate::loops::rms_norm::RmsNormWeight;
use std::cell::RefCell;

thread_local! {
    static NORMED: RefCell<Vec<f32>> = RefCell::default();
}

/// `out = x / √(mean(x²) + eps) · weight` for every row of `weight.len()` values of `x`. For a norm
/// per head, pass rows · heads rows of `head_dim`.
///
/// # Panics
/// When `x` and `out` differ in length or are not whole rows.
pub fn rms_norm(ctx: &Cpu, x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    let width = weight.len();
    assert!(width > 0 && x.len() == out.len() && x.len().is_multiple_of(width), "not whole rows");
    let (kernels, weight) = (ctx.kernels(), RmsNormWeight { weight, eps });
    let chunk = ctx.rows_per_task(x.len() / width, width) * width;
    ctx.pool().chunks_mut(out, chunk, |i, out| {
        let x = &x[i * chunk..][..out.len()];
        for (x, out) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
            (kernels.rms_norm)(x, &weight, out);
        }
    });
}

/// `out += norm(x)`, as [`rms_norm`].
///
/// # Panics
/// As [`rms_norm`].
pub(crate) fn add_rms_norm(ctx: &Cpu, x: &[f32], norm: &RmsNormWeight<'_>, out: &mut [f32]) {
    let width = norm.weight.len();
    assert!(width > 0 && x.len() == out.len() && x.len().is_multiple_of(width), "not whole rows");
    let kernels = ctx.kernels();
    let chunk = ctx.rows_per_task(x.len() / width, width) * width;
    ctx.pool().chunks_mut(out, chunk, |i, out| {
        let x = &x[i * chunk..][..out.len()];
        let rows = x.chunks_exact(width).zip(out.chunks_exact_mut(width));
        each_normed(ctx, norm, rows, |normed, out| (kernels.axpby)(out, normed, 1.0, 1.0));
    });
}

/// Calls `f` with the norm of each row and the row's companion.
pub(crate) fn each_normed<'a, T>(
    ctx: &Cpu,
    norm: &RmsNormWeight<'_>,
    rows: impl Iterator<Item = (&'a [f32], T)>,
    f: impl Fn(&[f32], T),
) {
    let mut normed = NORMED.take();
    normed.resize(norm.weight.len(), 0.0);
    for (x, of_row) in rows {
        (ctx.kernels().rms_norm)(x, norm, &mut normed);
        f(&normed, of_row);
    }
    NORMED.set(normed);
}
