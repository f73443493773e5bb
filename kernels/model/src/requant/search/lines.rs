//! Scales and minimums: value = scale · level + minimum.

use super::levels::{Levels, Sums, error, inverse_of, sums};
use super::{HUGE, ROUNDS, TINY, halves};
use crate::binary16;
use crate::formats::{BlockScales, Quantised, Scales, Storable};

/// The scales that are tried: with them, the values of a group span from 0.9 steps less than all levels to 1.1 steps more.
const STEPS: u8 = 21;

/// Scale and minimum of a group.
#[derive(Clone, Copy, Default)]
struct Line {
    scale: f32,
    min: f32,
}

/// A group for which a line is sought.
struct Group<'a> {
    x: &'a [f32],
    /// Sum of the values, and of their squares.
    sum: f64,
    squares: f64,
}

impl Group<'_> {
    /// The line with the least error for the levels nearest to values minus `shift` times `inverse`, and its error. Where the format
    /// subtracts minimums, they are not above 0.
    fn fitted<F: Quantised>(&self, shift: f32, inverse: f32) -> Option<(f64, Line)> {
        let Sums { l, ll, xl } = sums::<F>(self.x, shift, inverse);
        let (n, shift) = (self.x.len() as f64, f64::from(shift));
        let sum = self.sum - n * shift;
        let determinant = n * ll - l * l;
        let scale = (n * xl - sum * l) / determinant;
        let min = (ll * sum - l * xl) / determinant + shift;
        let (scale, min) = match F::SCALES != Scales::Minimum && min > 0.0 {
            true => ((xl + shift * l) / ll, 0.0),
            false => (scale, min),
        };
        // Without other levels than one, neither is a number.
        let is_line = scale > 0.0 && min.is_finite();
        if !is_line {
            return None;
        }
        // The squares of x − scale · level − min.
        let xl = xl + shift * l;
        let error = self.squares + scale * scale * ll + n * min * min
            - 2.0 * scale * xl
            - 2.0 * min * self.sum
            + 2.0 * scale * min * l;
        Some((error, Line { scale: scale as f32, min: min as f32 }))
    }
}

/// The scale and minimum of a group.
fn line<F: Quantised>(x: &[f32]) -> Line {
    let low = x.iter().copied().fold(f32::INFINITY, f32::min);
    let high = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let low = if F::SCALES == Scales::Minimum { low } else { low.min(0.0) };
    let range = high - low;
    if range < TINY {
        return Line { scale: 0.0, min: low };
    }
    if low.abs().max(high.abs()) >= HUGE {
        return Line { scale: f32::INFINITY, min: low };
    }
    let of = |value: fn(f64) -> f64| x.iter().map(|x| value(f64::from(*x))).sum::<f64>();
    let group = Group { x, sum: of(|x| x), squares: of(|x| x * x) };
    let mut best = (f64::INFINITY, Line { scale: range / Levels::<F>::HIGH, min: low });
    for step in 0..STEPS {
        let steps = Levels::<F>::HIGH + 0.1 * f32::from(step) - 0.9;
        if let Some(tried) = group.fitted::<F>(low, steps / range)
            && tried.0 < best.0
        {
            best = tried;
        }
    }
    for _ in 0..ROUNDS {
        let again = group.fitted::<F>(best.1.min, inverse_of(best.1.scale));
        match again.filter(|tried| tried.0 < best.0) {
            Some(tried) => best = tried,
            None => break,
        }
    }
    best.1
}

/// The scale and the minimum of a block of one group.
pub(super) fn plain<F: Quantised>(x: &[f32]) -> BlockScales {
    let Line { scale, min } = line::<F>(x);
    let d = binary16::round(scale);
    // The best minimum with the rounded scale.
    let levels = sums::<F>(x, min, inverse_of(d)).l;
    let sum: f64 = x.iter().map(|x| f64::from(*x)).sum();
    halves(scale, ((sum - f64::from(d) * levels) / x.len() as f64) as f32)
}

/// Products of what the scale and the minimum of a block are multiplied by, `a` and `b`, and of the values.
#[derive(Default)]
struct Products {
    aa: f64,
    ab: f64,
    bb: f64,
    xa: f64,
    xb: f64,
}

impl Products {
    /// The scale and the minimum with the least error; `None` if there is no such.
    fn best(&self) -> Option<[f32; 2]> {
        let Products { aa, ab, bb, xa, xb } = self;
        let determinant = aa * bb - ab * ab;
        let [scale, minimum] = match *bb == 0.0 {
            true => [xa / aa, 0.0],
            false => [(xa * bb - xb * ab) / determinant, (xa * ab - xb * aa) / determinant],
        };
        (scale > 0.0 && minimum >= 0.0).then_some([scale as f32, minimum as f32])
    }
}

/// The scale and the minimum of a block, and a factor of each for each of its groups.
pub(super) fn factors<F: Storable>(x: &[f32]) -> BlockScales {
    let span = F::SCALES.span();
    let top = (1i32 << F::FACTOR_BITS) - 1;
    let wanted: [Line; 16] =
        std::array::from_fn(|g| x.chunks_exact(span).nth(g).map_or(Line::default(), line::<F>));
    let most = |of: fn(&Line) -> f32| wanted.iter().map(of).fold(0.0, f32::max) / top as f32;
    let mut units = [most(|line| line.scale), most(|line| -line.min)];
    let (mut best, mut least) = (halves(units[0], units[1]), f64::INFINITY);
    for _ in 0..ROUNDS {
        let mut tried = halves(units[0], units[1]);
        let (d, m) = (binary16::to_f32(tried.scale), binary16::to_f32(tried.minimum));
        let (mut total, mut products) = (0.0, Products::default());
        for (g, x) in x.chunks_exact(span).enumerate() {
            let near = |wanted: f32, unit: f32| (wanted * inverse_of(unit)).round() as i32;
            let near = [near(wanted[g].scale, d), near(-wanted[g].min, m)];
            let mut of_group = (f64::INFINITY, [0; 2]);
            for (i, j) in (-1..=1).flat_map(|i| (-1..=1).map(move |j| (i, j))) {
                let pair = [near[0] + i, near[1] + j].map(|near| near.clamp(0, top));
                let error = error::<F>(x, -(m * pair[1] as f32), d * pair[0] as f32);
                if error < of_group.0 {
                    of_group = (error, pair);
                }
            }
            let (error, pair) = of_group;
            total += error;
            (tried.factors[g], tried.minimums[g]) = (pair[0] as u8, pair[1] as u8);
            products.add::<F>(x, pair, [d, m]);
        }
        if total >= least || !total.is_finite() {
            break;
        }
        (least, best) = (total, tried);
        let Some(next) = products.best() else { break };
        units = next;
    }
    best
}

impl Products {
    /// Adds those of a group with factors of scale and minimum.
    fn add<F: Quantised>(&mut self, x: &[f32], factors: [i32; 2], units: [f32; 2]) {
        let shift = -(units[1] * factors[1] as f32);
        let Sums { l, ll, xl } = sums::<F>(x, shift, inverse_of(units[0] * factors[0] as f32));
        let [a, b] = factors.map(f64::from);
        self.aa += a * a * ll;
        self.ab += a * b * l;
        self.bb += b * b * x.len() as f64;
        self.xa += a * (xl + f64::from(shift) * l);
        self.xb += b * x.iter().map(|x| f64::from(*x)).sum::<f64>();
    }
}
