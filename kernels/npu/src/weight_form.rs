//! How a library keeps weights that it does not take as the model file stores them.

use lapwing_model::formats::DType;

/// How the graphs of a device represent the matrices of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WeightForm {
    /// As in the model file, with the same values.
    #[default]
    Stored,
    /// As binary16: each value rounded to 11 bits.
    F16,
    /// As 8-bit integers with one scale for each output channel: rounded to 255 steps.
    Int8,
    /// As 4-bit integers with one scale for each output channel: rounded to 15 steps. It loses much of
    /// most models.
    Int4,
    /// As [`Int4Block32`](WeightForm::Int4Block32), with a factor for 16 weights.
    Int4Block16,
    /// As 4-bit integers with one scale for each output channel and, for every 32 weights of it, a factor of 1
    /// to 15 of that scale (QNN's blockwise expansion).
    Int4Block32,
    /// As [`Int4Block32`](WeightForm::Int4Block32), with a factor for 64 weights.
    Int4Block64,
    /// As [`Int4Block32`](WeightForm::Int4Block32), with a factor for 128 weights.
    Int4Block128,
}

/// Largest factor of a block: it has 4 bits.
pub const FACTOR_MAX: u8 = 15;

/// A row in integers: a value is `integer · factor of its block · scale`.
#[derive(Clone, Debug, PartialEq)]
pub struct IntegerRow {
    /// Scale of the row.
    pub scale: f32,
    /// Of each block; empty if the form has none, and factors are 1.
    pub factors: Vec<u8>,
    /// One for each value.
    pub integers: Vec<i8>,
}

impl WeightForm {
    /// The forms other than [`WeightForm::Stored`], by name.
    pub const NAMED: [(WeightForm, &'static str); 7] = [
        (WeightForm::F16, "f16"),
        (WeightForm::Int8, "int8"),
        (WeightForm::Int4, "int4"),
        (WeightForm::Int4Block16, "int4:16"),
        (WeightForm::Int4Block32, "int4:32"),
        (WeightForm::Int4Block64, "int4:64"),
        (WeightForm::Int4Block128, "int4:128"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        let named = WeightForm::NAMED.iter().find(|(form, _)| *form == self);
        named.map_or("stored", |(_, name)| name)
    }

    /// Weights of a block; `None` for forms without blocks.
    pub fn block(self) -> Option<usize> {
        match self {
            WeightForm::Int4Block16 => Some(16),
            WeightForm::Int4Block32 => Some(32),
            WeightForm::Int4Block64 => Some(64),
            WeightForm::Int4Block128 => Some(128),
            WeightForm::Stored | WeightForm::F16 | WeightForm::Int8 | WeightForm::Int4 => None,
        }
    }

    /// Bytes of a row of `cols` values of a format, without the scale of the row.
    pub fn row_bytes(self, dtype: DType, cols: usize) -> usize {
        match self {
            WeightForm::Stored if dtype.block_len() == 1 => cols * size_of::<f32>(),
            WeightForm::Stored => dtype.row_bytes(cols).unwrap_or(0),
            WeightForm::F16 => cols * size_of::<u16>(),
            WeightForm::Int8 => cols,
            _ => cols.div_ceil(2) + self.block().map_or(0, |block| cols.div_ceil(block)),
        }
    }

    /// The largest integer; `None` for forms of floats.
    fn largest(self) -> Option<f32> {
        match self {
            WeightForm::Stored | WeightForm::F16 => None,
            WeightForm::Int8 => Some(127.0),
            _ => Some(7.0),
        }
    }

    /// A row in integers, if the form has these. Blocks divide the row.
    pub fn integers(self, row: &[f32]) -> Option<IntegerRow> {
        let largest = self.largest()?;
        let most = magnitude(row);
        let Some(block) = self.block() else {
            let scale = scale(most, largest);
            let integers = row.iter().map(|x| nearest(x / scale, largest)).collect();
            return Some(IntegerRow { scale, factors: Vec::new(), integers });
        };
        let scale = scale(most, largest * f32::from(FACTOR_MAX));
        let (mut factors, mut integers) = (Vec::new(), Vec::with_capacity(row.len()));
        for block in row.chunks(block) {
            let factor = factor(block, scale, largest);
            let step = f32::from(factor) * scale;
            integers.extend(block.iter().map(|x| nearest(x / step, largest)));
            factors.push(factor);
        }
        Some(IntegerRow { scale, factors, integers })
    }

    /// Rounds a row to the values that the form represents. Binary16 is left to the tolerance of a
    /// comparison.
    pub fn round(self, row: &mut [f32]) {
        let Some(rounded) = self.integers(row) else { return };
        let block = self.block().unwrap_or(row.len()).max(1);
        for (at, (x, q)) in row.iter_mut().zip(rounded.integers).enumerate() {
            let factor = rounded.factors.get(at / block).copied().unwrap_or(1);
            *x = f32::from(q) * f32::from(factor) * rounded.scale;
        }
    }
}

fn magnitude(row: &[f32]) -> f32 {
    row.iter().fold(0.0f32, |most, x| most.max(x.abs()))
}

/// The scale with which the largest magnitude is the largest integer. A row of zeros has any scale.
fn scale(most: f32, largest: f32) -> f32 {
    if most > 0.0 { most / largest } else { 1.0 }
}

fn nearest(x: f32, largest: f32) -> i8 {
    x.round().clamp(-largest, largest) as i8
}

/// The factor of a block with the smallest squared error, of the one that fits its largest magnitude and
/// that one's neighbours.
fn factor(block: &[f32], scale: f32, largest: f32) -> u8 {
    let fitting =
        (magnitude(block) / (largest * scale)).round().clamp(1.0, f32::from(FACTOR_MAX)) as u8;
    let error = |factor: u8| {
        let step = f32::from(factor) * scale;
        block
            .iter()
            .map(|x| (x - f32::from(nearest(x / step, largest)) * step).powi(2))
            .sum::<f32>()
    };
    let near = fitting.saturating_sub(1).max(1)..=(fitting + 1).min(FACTOR_MAX);
    near.min_by(|a, b| error(*a).total_cmp(&error(*b))).unwrap_or(fitting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_within_half_a_step_and_rounding_twice_changes_nothing() {
        let row: Vec<f32> = (0..40).map(|at| (at as f32 * 0.7).sin()).collect();
        for (form, step) in [(WeightForm::Int8, 1.0 / 127.0), (WeightForm::Int4, 1.0 / 7.0)] {
            let mut once = row.clone();
            form.round(&mut once);
            for (a, b) in row.iter().zip(&once) {
                assert!((a - b).abs() <= step / 2.0 + 1e-6, "{form:?}: {b} for {a}");
            }
            let mut twice = once.clone();
            form.round(&mut twice);
            assert_eq!(once, twice, "{form:?}");
        }
        let mut zeros = [0.0; 32];
        for (form, _) in WeightForm::NAMED {
            form.round(&mut zeros);
            assert_eq!(zeros, [0.0; 32], "{form:?}");
        }
    }

    #[test]
    fn factors_of_blocks_spare_small_weights_the_steps_of_large_ones() {
        let wave = |at: usize| (at as f32 * 0.7).sin();
        let row: Vec<f32> =
            (0..256).map(|at| wave(at) * if at < 128 { 1.0 } else { 0.1 }).collect();
        let error = |form: WeightForm, part: std::ops::Range<usize>| {
            let mut rounded = row.clone();
            form.round(&mut rounded);
            let errors = row[part.clone()].iter().zip(&rounded[part]).map(|(a, b)| (a - b).abs());
            errors.fold(0.0, f32::max)
        };
        for (form, name) in WeightForm::NAMED {
            let Some(block) = form.block() else { continue };
            let integers = form.integers(&row).expect("integers");
            assert_eq!(integers.factors.len(), 256 / block, "{name}");
            assert!(integers.factors.iter().all(|factor| (1..=FACTOR_MAX).contains(factor)));
            assert!(error(form, 0..128) <= 0.5 / 7.0 * 1.1, "{name}");
            // A tenth of the largest factor is 1.5, so the factor is 1 or 2.
            assert!(error(form, 128..256) <= 0.5 / 7.0 * 2.0 / 15.0 + 1e-6, "{name}");
            assert!(error(WeightForm::Int4, 128..256) > 0.06, "{name}");
            assert_eq!(form.row_bytes(DType::F32, 256), 128 + 256 / block, "{name}");
        }
    }
}
