//! The sum of what a row's experts have made.

use crate::context::Cpu;

/// What experts have made, to be added up.
#[derive(Clone, Copy, Debug)]
pub struct Mixture<'a> {
    /// `[rows][used · width]`.
    pub made: &'a [f32],
    /// `[rows][2 · used]`, as [`route`](crate::route) writes it.
    pub route: &'a [f32],
    /// Experts of a row.
    pub used: usize,
    /// Whether each one's share is multiplied by its weight.
    pub is_weighted: bool,
}

/// Adds up what the experts of each row have made, in their order, to rows of `width` values.
///
/// # Panics
/// When sizes do not match.
pub fn mix(ctx: &Cpu, mixture: &Mixture<'_>, width: usize, out: &mut [f32]) {
    let Mixture { made, route, used, is_weighted } = *mixture;
    let rows = out.len().checked_div(width).unwrap_or(0);
    assert_eq!(out.len(), rows * width, "out is not whole rows of {width}");
    assert!(used > 0 && made.len() == rows * used * width, "what {used} experts of a row make");
    assert_eq!(route.len(), rows * 2 * used, "the route of {rows} rows");
    let kernels = ctx.kernels();
    let per_task = ctx.rows_per_task(rows, width * used);
    ctx.pool().chunks_mut(out, per_task * width, |i, out| {
        for (row, out) in (i * per_task..).zip(out.chunks_exact_mut(width)) {
            let weight = |slot: usize| match is_weighted {
                true => route[(2 * row + 1) * used + slot],
                false => 1.0,
            };
            let mut made = made[row * used * width..][..used * width].chunks_exact(width);
            if let Some(made) = made.next() {
                (kernels.scale_into)(made, weight(0), out);
            }
            for (slot, made) in (1..).zip(made) {
                (kernels.axpby)(out, made, 1.0, weight(slot));
            }
        }
    });
}
