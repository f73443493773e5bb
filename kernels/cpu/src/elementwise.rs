//! Element-wise ops.

use crate::context::Cpu;
use crate::loops::gated::Gating;
use lapwing_model::op::Curve;

/// `out = act(gate) · up`, or what another gating makes of both, all of one length.
///
/// # Panics
/// When the lengths differ.
pub fn gated(ctx: &Cpu, kind: impl Into<Gating>, gate: &[f32], up: &[f32], out: &mut [f32]) {
    assert!(gate.len() == up.len() && gate.len() == out.len(), "gate, up and out differ in length");
    let (kernels, kind) = (ctx.kernels(), kind.into());
    let chunk = ctx.rows_per_task(out.len(), 1);
    ctx.pool().chunks_mut(out, chunk, |i, out| {
        let at = i * chunk..i * chunk + out.len();
        (kernels.gated)(kind, &gate[at.clone()], &up[at], out);
    });
}

/// `out = curve(x)`, both of one length; the exact GELU within 2e-7 · max(1, |x|).
///
/// # Panics
/// When the lengths differ.
pub fn curve(ctx: &Cpu, curve: Curve, x: &[f32], out: &mut [f32]) {
    assert_eq!(x.len(), out.len(), "x and out differ in length");
    let kernels = ctx.kernels();
    let chunk = ctx.rows_per_task(out.len(), 1);
    ctx.pool().chunks_mut(out, chunk, |i, out| {
        (kernels.curve)(curve, &x[i * chunk..][..out.len()], out);
    });
}

/// `out = a + b`, all of one length.
///
/// # Panics
/// When the lengths differ.
pub fn add(ctx: &Cpu, a: &[f32], b: &[f32], out: &mut [f32]) {
    assert!(a.len() == b.len() && a.len() == out.len(), "a, b and out differ in length");
    let kernels = ctx.kernels();
    let chunk = ctx.rows_per_task(out.len(), 1);
    ctx.pool().chunks_mut(out, chunk, |i, out| {
        let at = i * chunk..i * chunk + out.len();
        (kernels.add)(&a[at.clone()], &b[at], out);
    });
}

/// `out = a · b`, all of one length.
///
/// # Panics
/// When the lengths differ.
pub fn multiply(ctx: &Cpu, a: &[f32], b: &[f32], out: &mut [f32]) {
    assert!(a.len() == b.len() && a.len() == out.len(), "a, b and out differ in length");
    let kernels = ctx.kernels();
    let chunk = ctx.rows_per_task(out.len(), 1);
    ctx.pool().chunks_mut(out, chunk, |i, out| {
        let at = i * chunk..i * chunk + out.len();
        (kernels.multiply)(&a[at.clone()], &b[at], out);
    });
}

/// `x += y`, both of one length.
///
/// # Panics
/// When the lengths differ.
pub fn add_assign(ctx: &Cpu, x: &mut [f32], y: &[f32]) {
    assert_eq!(x.len(), y.len(), "x and y differ in length");
    let kernels = ctx.kernels();
    let chunk = ctx.rows_per_task(x.len(), 1);
    ctx.pool().chunks_mut(x, chunk, |i, x| {
        (kernels.axpby)(x, &y[i * chunk..][..x.len()], 1.0, 1.0);
    });
}

/// `x *= factor`.
pub fn scale(ctx: &Cpu, x: &mut [f32], factor: f32) {
    let kernels = ctx.kernels();
    let chunk = ctx.rows_per_task(x.len(), 1);
    ctx.pool().chunks_mut(x, chunk, |_, x| (kernels.scale)(x, factor));
}

/// `x = cap · tanh(x / cap)`.
pub fn soft_cap(ctx: &Cpu, x: &mut [f32], cap: f32) {
    let kernels = ctx.kernels();
    let chunk = ctx.rows_per_task(x.len(), 1);
    ctx.pool().chunks_mut(x, chunk, |_, x| (kernels.soft_cap)(x, cap));
}

/// Some columns of rows.
#[derive(Clone, Copy, Debug)]
pub struct SomeColumns {
    /// Values of a row.
    pub width: usize,
    /// The first column that is kept.
    pub first: usize,
    /// How many are kept.
    pub count: usize,
    /// How often each is kept, one after another.
    pub times: usize,
}

/// Keeps some columns of the rows of `x`.
///
/// # Panics
/// When there are no such columns, or `out` does not have as many rows of them as `x`.
pub fn columns(ctx: &Cpu, x: &[f32], kept: SomeColumns, out: &mut [f32]) {
    let SomeColumns { width, first, count, times } = kept;
    assert!(first + count <= width && count * times > 0, "{kept:?}");
    let each = count * times;
    assert!(x.len() / width * each == out.len(), "rows of x and out differ in number");
    let rows = ctx.rows_per_task(x.len() / width, each);
    ctx.pool().chunks_mut(out, rows * each, |i, out| {
        let from = x[i * rows * width..].chunks_exact(width);
        for (x, out) in from.zip(out.chunks_exact_mut(each)) {
            let x = &x[first..first + count];
            match times {
                1 => out.copy_from_slice(x),
                _ => out.chunks_exact_mut(times).zip(x).for_each(|(out, x)| out.fill(*x)),
            }
        }
    });
}

/// Multiplies each row of `x` by `factor(row)`.
///
/// # Panics
/// When `x` is not whole rows of `width` values.
pub(crate) fn scale_rows(
    ctx: &Cpu,
    x: &mut [f32],
    width: usize,
    factor: impl Fn(usize) -> f32 + Sync,
) {
    assert!(width > 0 && x.len().is_multiple_of(width), "not whole rows");
    let kernels = ctx.kernels();
    let rows = ctx.rows_per_task(x.len() / width, width);
    ctx.pool().chunks_mut(x, rows * width, |i, x| {
        for (at, x) in x.chunks_exact_mut(width).enumerate() {
            (kernels.scale)(x, factor(i * rows + at));
        }
    });
}

/// Multiplies each row of `x` by `factors`, value by value; one factor is for all.
///
/// # Panics
/// When `x` is not whole rows of as many values as there are factors.
pub fn scale_by(ctx: &Cpu, x: &mut [f32], factors: &[f32]) {
    let width = factors.len();
    if let [factor] = factors {
        return scale(ctx, x, *factor);
    }
    if x.is_empty() {
        return;
    }
    assert!(width > 0 && x.len().is_multiple_of(width), "not whole rows");
    let rows = ctx.rows_per_task(x.len() / width, width);
    ctx.pool().chunks_mut(x, rows * width, |_, x| {
        for x in x.chunks_exact_mut(width) {
            x.iter_mut().zip(factors).for_each(|(x, factor)| *x *= factor);
        }
    });
}
