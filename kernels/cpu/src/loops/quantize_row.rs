//! Quantises activations to int8 with one scale for each row, as runtimes of mobile processors do.

use super::quantize::{Q8Block, QuantScheme, half_sums};

/// How a row of activations is quantised with one scale: `value = d · (q − z)` with q within ±127.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowScheme {
    /// The blocks that the kernel of the weights' format reads.
    pub(crate) blocks: QuantScheme,
    /// Whether z is chosen so that the 255 integers cover the range of the row's values and 0; otherwise
    /// it is 0, and d = max |x| / 127.
    pub(crate) with_min: bool,
}

/// How the rows of an activation matrix are quantised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputScheme {
    /// Each block has its own scale.
    Blocks(QuantScheme),
    /// All blocks of a row have the same.
    Row(RowScheme),
}

impl From<QuantScheme> for InputScheme {
    fn from(scheme: QuantScheme) -> InputScheme {
        InputScheme::Blocks(scheme)
    }
}

/// The scale of a row: `value = d · (q − zero)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowScale {
    /// The value of one step.
    pub d: f32,
    /// Steps of a value: 1 / `d`, or 0 if all values are to become zero.
    pub inverse: f32,
    /// The integer of the value 0.
    pub zero: i32,
}

/// The 16 lanes in which the extremes of a row are found.
type Lanes = [f32; 16];

/// Quantises a row into blocks that all have its scale. Returns the value of integer 0, −z · d, which the
/// matmul multiplies by the sum of the weights.
#[inline(always)]
pub(crate) fn row(x: &[f32], scheme: RowScheme, out: &mut [Q8Block]) -> f32 {
    let (low, high) = extremes(x);
    let (span, steps) = match scheme.with_min {
        true => (high - low, 254.0),
        false => (if -low > high { -low } else { high }, 127.0),
    };
    let inverse = steps / span;
    // So small a span that its scale has no inverse rounds to zero.
    let (d, inverse) = if inverse.is_finite() { (span / steps, inverse) } else { (0.0, 0.0) };
    let zero = if scheme.with_min { within(nearest(-127.0 - low * inverse)) } else { 0 };
    fill(x, RowScale { d, inverse, zero }, scheme.blocks, out);
    -(zero as f32) * d
}

/// Quantises a row into blocks of a scale: q = x · inverse + zero, rounded to the nearest integer within
/// ±127. |x · inverse| must be below 2^22.
#[inline(always)]
pub fn fill(x: &[f32], scale: RowScale, blocks: QuantScheme, out: &mut [Q8Block]) {
    let RowScale { d, inverse, zero } = scale;
    let (offset, halves) = match blocks {
        QuantScheme::Q8_0(offset) => (offset, false),
        QuantScheme::Q8_1 => (0, false),
        QuantScheme::Q8_0Halves(offset) | QuantScheme::Q8K(offset) => (offset, true),
    };
    let is_super = matches!(blocks, QuantScheme::Q8K(_));
    for (x, out) in x.as_chunks::<32>().0.iter().zip(out) {
        for (q, x) in out.q.iter_mut().zip(x) {
            *q = within(nearest(x * inverse).wrapping_add(zero)) as i8;
        }
        let sums = half_sums(&out.q);
        let sum = sums[0] + sums[1];
        out.d = d;
        out.s = if is_super { sum as f32 } else { d * sum as f32 };
        out.start = if halves { sums.map(|sum| -offset * sum) } else { [-offset * sum, 0] };
    }
}

/// min(x, 0) and max(x, 0) of a row.
#[inline(always)]
fn extremes(x: &[f32]) -> (f32, f32) {
    let (mut low, mut high): (Lanes, Lanes) = ([0.0; 16], [0.0; 16]);
    for x in x.as_chunks::<16>().0 {
        for i in 0..16 {
            low[i] = if x[i] < low[i] { x[i] } else { low[i] };
            high[i] = if x[i] > high[i] { x[i] } else { high[i] };
        }
    }
    let low = low.into_iter().fold(0.0, |a: f32, b| if b < a { b } else { a });
    (low, high.into_iter().fold(0.0, |a: f32, b| if b > a { b } else { a }))
}

/// Nearest integer, ties to even, for |x| below 2^22; any integer for other x.
#[inline(always)]
fn nearest(x: f32) -> i32 {
    const MAGIC: f32 = 12_582_912.0;
    (x + MAGIC).to_bits().wrapping_sub(MAGIC.to_bits()) as i32
}

/// Kernels take integers within ±127.
#[inline(always)]
fn within(q: i32) -> i32 {
    q.clamp(-127, 127)
}
