//! Rotary position embedding, with the scalings of llama.cpp.

use crate::context::Cpu;
use crate::loops::rope::{RopeShape, RowAngles};
use lapwing_model::op::RopeScaling;

/// Frequencies of a rotary embedding.
#[derive(Clone, Debug, PartialEq)]
pub struct RopeFreqs {
    /// Ratio of the angles of pairs i + 1 and i.
    ratio: f32,
    pairs: Vec<PairFreq>,
    magnitude: f32,
}

/// Factors on the plain angle theta of a pair.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PairFreq {
    factor: f32,
    interpolation: f32,
    extrapolation_share: f32,
}

impl RopeFreqs {
    /// Frequencies `base^(−2i/dims)` for `dims` rotated values per head (rounded down to
    /// even), `scaling`, and optional divisors per pair (`factors[i]`; missing ones are 1).
    pub fn new(base: f32, dims: usize, scaling: RopeScaling, factors: Option<&[f32]>) -> RopeFreqs {
        let n = dims as f32;
        let factor_of = |i: usize| factors.and_then(|f| f.get(i)).copied().unwrap_or(1.0);
        let (interpolation, magnitude) = match scaling {
            RopeScaling::None => (1.0, 1.0),
            RopeScaling::Linear { factor } => (1.0 / factor, 1.0),
            RopeScaling::Yarn { factor, attn_factor, .. } => {
                (1.0 / factor, attn_factor * (1.0 + 0.1 * factor.ln()))
            }
            RopeScaling::LongRope { attn_factor } => (1.0, attn_factor),
        };
        let stretched = matches!(scaling, RopeScaling::Yarn { .. });
        let (low, high) = correction_range(base, n, scaling);
        let pairs = (0..dims / 2).map(|i| {
            let ramp = ((i as f32 - low) / (high - low).max(0.001)).clamp(0.0, 1.0);
            PairFreq {
                factor: factor_of(i),
                interpolation,
                extrapolation_share: if stretched { 1.0 - ramp } else { 0.0 },
            }
        });
        RopeFreqs { ratio: base.powf(-2.0 / n), pairs: pairs.collect(), magnitude }
    }

    /// Number of pairs of values that are rotated.
    pub fn pairs(&self) -> usize {
        self.pairs.len()
    }

    /// Cosines and sines for rows at `positions`; made once per step and used by every
    /// layer with the same frequencies.
    pub fn angles(&self, positions: &[u32]) -> RopeAngles {
        let mut angles = RopeAngles::default();
        let lines = angles.room(self.pairs.len(), positions.len());
        let lines = lines.chunks_exact_mut(2 * self.pairs.len().max(1));
        positions.iter().zip(lines).for_each(|(position, line)| self.fill_row(*position, line));
        angles
    }

    /// As [`RopeFreqs::angles`], over the pool, in the memory of `to`.
    pub fn fill(&self, ctx: &Cpu, positions: &[u32], to: &mut RopeAngles) {
        let width = 2 * self.pairs.len().max(1);
        let chunk = ctx.rows_per_task(positions.len(), width * ANGLE_VALUES);
        let lines = to.room(self.pairs.len(), positions.len());
        ctx.pool().chunks_mut(lines, chunk * width, |i, lines| {
            let positions = positions[i * chunk..].iter();
            let lines = positions.zip(lines.chunks_exact_mut(width));
            lines.for_each(|(position, line)| self.fill_row(*position, line));
        });
    }

    /// Writes the cosines, then the sines of a row.
    fn fill_row(&self, position: u32, line: &mut [f32]) {
        let (cos, sin) = line.split_at_mut(self.pairs.len());
        // Powers by repeated multiplication, rounding at each step, as llama.cpp does.
        let mut theta = position as f32;
        for (pair, (cos, sin)) in self.pairs.iter().zip(cos.iter_mut().zip(sin)) {
            let extrapolated = theta / pair.factor;
            let interpolated = pair.interpolation * extrapolated;
            let share = pair.extrapolation_share;
            let angle = match share {
                0.0 => interpolated,
                _ => interpolated * (1.0 - share) + extrapolated * share,
            };
            *cos = angle.cos() * self.magnitude;
            *sin = angle.sin() * self.magnitude;
            theta *= self.ratio;
        }
    }
}

/// Cost of an angle, in values of an element-wise op.
const ANGLE_VALUES: usize = 16;

/// First and last pair of YaRN's ramp.
fn correction_range(base: f32, dims: f32, scaling: RopeScaling) -> (f32, f32) {
    let RopeScaling::Yarn { original_context, beta_fast, beta_slow, .. } = scaling else {
        return (0.0, 0.0);
    };
    let pair_of = |rotations: f32| {
        let wavelength = original_context as f32 / (rotations * 2.0 * std::f32::consts::PI);
        dims * wavelength.ln() / (2.0 * base.ln())
    };
    (pair_of(beta_fast).floor().max(0.0), pair_of(beta_slow).ceil().min(dims - 1.0))
}

/// Cosines and sines of some rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RopeAngles {
    /// `[rows][cosines, sines][pairs]`.
    values: Vec<f32>,
    rows: usize,
}

impl RopeAngles {
    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// For each row all cosines, then all sines.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Angles of a row.
    pub(crate) fn row(&self, row: usize, shape: RopeShape) -> RowAngles<'_> {
        let both = self.values.len() / self.rows;
        let (cos, sin) = self.values[row * both..][..both].split_at(both / 2);
        RowAngles { cos, sin, shape }
    }

    /// # Panics
    /// When a head has fewer values than are rotated.
    fn check(&self, shape: RopeShape) {
        let rotated = self.values.len().checked_div(self.rows).unwrap_or(0);
        assert!(rotated <= shape.head_dim, "{rotated} of {} values are rotated", shape.head_dim);
    }

    fn room(&mut self, pairs: usize, rows: usize) -> &mut [f32] {
        self.rows = rows;
        self.values.resize(2 * pairs * rows, 0.0);
        &mut self.values
    }
}

/// A rotation that is applied to rows while they are copied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rotation<'a> {
    angles: &'a RopeAngles,
    shape: RopeShape,
    /// Row of the angles for the first row.
    first: usize,
}

impl<'a> Rotation<'a> {
    /// Rotates heads of `shape` by the angles of the rows from `first` on.
    ///
    /// # Panics
    /// When a head has fewer values than are rotated.
    pub(crate) fn new(angles: &'a RopeAngles, shape: RopeShape, first: usize) -> Rotation<'a> {
        angles.check(shape);
        Rotation { angles, shape, first }
    }

    /// Rotates one or more heads of row `row`.
    pub(crate) fn heads(&self, ctx: &Cpu, row: usize, x: &[f32], out: &mut [f32]) {
        (ctx.kernels().rotate)(x, &self.angles.row(self.first + row, self.shape), out);
    }
}

/// Rotates `x` `[rows][heads][head_dim]` into `out`.
///
/// # Panics
/// When `x` or `out` does not have as many rows as `angles`, or a head has fewer values than are
/// rotated.
pub fn rope(ctx: &Cpu, x: &[f32], shape: RopeShape, angles: &RopeAngles, out: &mut [f32]) {
    let width = shape.heads * shape.head_dim;
    assert_eq!(x.len(), angles.rows * width, "x is not rows × heads × head_dim");
    assert_eq!(x.len(), out.len(), "x and out differ in length");
    if x.is_empty() {
        return;
    }
    angles.check(shape);
    let kernels = ctx.kernels();
    let chunk = ctx.rows_per_task(angles.rows, width);
    ctx.pool().chunks_mut(out, chunk * width, |i, out| {
        for (j, out) in out.chunks_exact_mut(width).enumerate() {
            let row = i * chunk + j;
            (kernels.rotate)(&x[row * width..][..width], &angles.row(row, shape), out);
        }
    });
}
