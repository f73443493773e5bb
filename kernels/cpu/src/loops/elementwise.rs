//! Element-wise loops.

use crate::simd::scalar::mul_add;

/// `e^x`, within 2 ULP (subnormal results: within one step); 0 below −104, infinite above 89.
#[inline(always)]
pub(crate) fn exp<const FMA: bool>(x: f32) -> f32 {
    const MAGIC: f32 = 12_582_912.0;
    let low = x < -104.0;
    let y = if low { -104.0 } else { x };
    let y = if y > 89.0 { 89.0 } else { y };
    let shifted = mul_add::<FMA>(y, std::f32::consts::LOG2_E, MAGIC);
    let n = shifted - MAGIC;
    let exponent = shifted.to_bits().wrapping_sub(MAGIC.to_bits()).cast_signed();
    // ln 2 in two parts, the first with few enough bits that n times it is exact.
    let r = mul_add::<FMA>(n, -0.693_359_4, y);
    let r = mul_add::<FMA>(n, 2.121_944_4e-4, r);
    let mut p = 1.987_569_1e-4;
    p = mul_add::<FMA>(p, r, 1.398_2e-3);
    p = mul_add::<FMA>(p, r, 8.333_452e-3);
    p = mul_add::<FMA>(p, r, 4.166_579_6e-2);
    p = mul_add::<FMA>(p, r, 0.166_666_65);
    p = mul_add::<FMA>(p, r, 0.5);
    p = mul_add::<FMA>(p, r * r, r) + 1.0;
    // Two factors, since 2^exponent itself may be out of range.
    let half = exponent >> 1;
    let e = p * power_of_two(half) * power_of_two(exponent - half);
    if low { 0.0 } else { e }
}

#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) << 23).cast_unsigned())
}

/// `tanh(x)`.
#[inline(always)]
pub(crate) fn tanh<const FMA: bool>(x: f32) -> f32 {
    let square = x * x;
    let mut p = 62.0 / 2835.0;
    p = mul_add::<FMA>(p, square, -17.0 / 315.0);
    p = mul_add::<FMA>(p, square, 2.0 / 15.0);
    p = mul_add::<FMA>(p, square, -1.0 / 3.0);
    let near = mul_add::<FMA>(p * square, x, x);
    let far = 1.0 - 2.0 / (exp::<FMA>(2.0 * x) + 1.0);
    if square < 0.04 { near } else { far }
}

#[inline(always)]
pub(crate) fn soft_cap<const FMA: bool>(x: &mut [f32], cap: f32) {
    let inverse = 1.0 / cap;
    x.iter_mut().for_each(|x| *x = cap * tanh::<FMA>(*x * inverse));
}

#[inline(always)]
pub(crate) fn scale(x: &mut [f32], factor: f32) {
    x.iter_mut().for_each(|x| *x *= factor);
}

#[inline(always)]
pub(crate) fn scale_into(x: &[f32], factor: f32, out: &mut [f32]) {
    out.iter_mut().zip(x).for_each(|(out, x)| *out = x * factor);
}

#[inline(always)]
pub(crate) fn add(a: &[f32], b: &[f32], out: &mut [f32]) {
    out.iter_mut().zip(a.iter().zip(b)).for_each(|(out, (a, b))| *out = a + b);
}

#[inline(always)]
pub(crate) fn multiply(a: &[f32], b: &[f32], out: &mut [f32]) {
    out.iter_mut().zip(a.iter().zip(b)).for_each(|(out, (a, b))| *out = a * b);
}

/// `out += a · b`.
#[inline(always)]
pub(crate) fn add_product<const FMA: bool>(a: &[f32], b: &[f32], out: &mut [f32]) {
    for (out, (a, b)) in out.iter_mut().zip(a.iter().zip(b)) {
        *out = mul_add::<FMA>(*a, *b, *out);
    }
}

/// `to = old · to + new · part`: joins two partial sums with their scales.
#[inline(always)]
pub(crate) fn axpby<const FMA: bool>(to: &mut [f32], part: &[f32], old: f32, new: f32) {
    for (to, part) in to.iter_mut().zip(part) {
        *to = mul_add::<FMA>(*to, old, *part * new);
    }
}
