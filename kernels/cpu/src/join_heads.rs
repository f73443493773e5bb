//! Heads of two values, joined.

use crate::context::Cpu;

/// The heads that [`join_heads`] joins.
#[derive(Clone, Copy, Debug)]
pub struct JoinedHeads {
    /// Heads of a row.
    pub heads: usize,
    /// Values of a row of each input.
    pub widths: [usize; 2],
    /// Whether all heads get the whole row of the second input, instead of a part of it each.
    pub is_shared: bool,
}

/// Rows of heads: the values of each head in `a`, followed by those in `b`.
///
/// # Panics
/// When the inputs have no whole heads, or not as many rows as `out`.
pub fn join_heads(ctx: &Cpu, a: &[f32], b: &[f32], joined: JoinedHeads, out: &mut [f32]) {
    let JoinedHeads { heads, widths, is_shared } = joined;
    let [of_a, of_b] = [widths[0] / heads, widths[1] / if is_shared { 1 } else { heads }];
    let is_whole = of_a * heads == widths[0] && (is_shared || of_b * heads == widths[1]);
    assert!(is_whole, "{widths:?} values are not whole heads");
    let (each, width) = (of_a + of_b, (of_a + of_b) * heads);
    let count = out.len() / width;
    let lens = [a.len(), b.len(), out.len()];
    assert_eq!(lens, [widths[0], widths[1], width].map(|width| width * count), "rows differ");
    let rows = ctx.rows_per_task(count, width);
    ctx.pool().chunks_mut(out, rows * width, |i, out| {
        let first = i * rows;
        let a = a[first * widths[0]..].chunks_exact(widths[0]);
        let b = b[first * widths[1]..].chunks_exact(widths[1]);
        for ((out, a), b) in out.chunks_exact_mut(width).zip(a).zip(b) {
            for (head, out) in out.chunks_exact_mut(each).enumerate() {
                let (to_a, to_b) = out.split_at_mut(of_a);
                to_a.copy_from_slice(&a[head * of_a..][..of_a]);
                to_b.copy_from_slice(&b[if is_shared { 0 } else { head * of_b }..][..of_b]);
            }
        }
    });
}
