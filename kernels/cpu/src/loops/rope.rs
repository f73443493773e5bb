//! Rotary position embedding of one row.

use crate::simd::scalar::mul_add;
use lapwing_model::op::RopePairs;

/// Shape of the rotated values: `[rows][heads][head_dim]`. The first values of each head, twice the
/// number of frequencies, are rotated; the rest are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RopeShape {
    /// Heads per row.
    pub heads: usize,
    /// Values per head.
    pub head_dim: usize,
    /// How values form pairs.
    pub pairs: RopePairs,
}

/// Cosines and sines of one row.
pub(crate) struct RowAngles<'a> {
    pub(crate) cos: &'a [f32],
    pub(crate) sin: &'a [f32],
    pub(crate) shape: RopeShape,
}

/// Rotates the heads of a row.
#[inline(always)]
pub(crate) fn rotate<const FMA: bool>(x: &[f32], angles: &RowAngles<'_>, out: &mut [f32]) {
    let (pairs, head_dim) = (angles.cos.len(), angles.shape.head_dim);
    for (x, out) in x.chunks_exact(head_dim).zip(out.chunks_exact_mut(head_dim)) {
        let (x, rest) = x.split_at(2 * pairs);
        let (out, kept) = out.split_at_mut(2 * pairs);
        kept.copy_from_slice(rest);
        match angles.shape.pairs {
            RopePairs::Halves => halves::<FMA>(x, angles, out),
            RopePairs::Adjacent => adjacent::<FMA>(x, angles, out),
        }
    }
}

#[inline(always)]
fn halves<const FMA: bool>(x: &[f32], angles: &RowAngles<'_>, out: &mut [f32]) {
    let pairs = angles.cos.len();
    let (a, b) = x.split_at(pairs);
    let (out_a, out_b) = out.split_at_mut(pairs);
    let (cos, sin) = (&angles.cos[..pairs], &angles.sin[..pairs]);
    let (a, b) = (&a[..pairs], &b[..pairs]);
    let (out_a, out_b) = (&mut out_a[..pairs], &mut out_b[..pairs]);
    for i in 0..pairs {
        (out_a[i], out_b[i]) = rotate_pair::<FMA>(a[i], b[i], cos[i], sin[i]);
    }
}

#[inline(always)]
fn adjacent<const FMA: bool>(x: &[f32], angles: &RowAngles<'_>, out: &mut [f32]) {
    let pairs = x.as_chunks::<2>().0.iter().zip(out.as_chunks_mut::<2>().0);
    for ((x, out), (cos, sin)) in pairs.zip(angles.cos.iter().zip(angles.sin)) {
        (out[0], out[1]) = rotate_pair::<FMA>(x[0], x[1], *cos, *sin);
    }
}

#[inline(always)]
fn rotate_pair<const FMA: bool>(a: f32, b: f32, cos: f32, sin: f32) -> (f32, f32) {
    (mul_add::<FMA>(a, cos, -(b * sin)), mul_add::<FMA>(a, sin, b * cos))
}
