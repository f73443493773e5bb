//! How a library keeps weights that it does not take as the model file stores them.

use crate::quant::DType;

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
}

impl WeightForm {
    /// The forms other than [`WeightForm::Stored`], by name.
    pub const NAMED: [(WeightForm, &'static str); 3] =
        [(WeightForm::F16, "f16"), (WeightForm::Int8, "int8"), (WeightForm::Int4, "int4")];

    /// Its name.
    pub fn name(self) -> &'static str {
        let named = WeightForm::NAMED.iter().find(|(form, _)| *form == self);
        named.map_or("stored", |(_, name)| name)
    }

    /// Bytes of a row of `cols` values of a format, without the scale of the row.
    pub(crate) fn row_bytes(self, dtype: DType, cols: usize) -> usize {
        match self {
            WeightForm::Stored if dtype.block_len() == 1 => cols * size_of::<f32>(),
            WeightForm::Stored => dtype.row_bytes(cols).unwrap_or(0),
            WeightForm::F16 => cols * size_of::<u16>(),
            WeightForm::Int8 => cols,
            WeightForm::Int4 => cols.div_ceil(2),
        }
    }

    /// The largest integer; `None` for forms of floats.
    fn largest(self) -> Option<f32> {
        match self {
            WeightForm::Stored | WeightForm::F16 => None,
            WeightForm::Int8 => Some(127.0),
            WeightForm::Int4 => Some(7.0),
        }
    }

    /// The integers and the scale of a row, `integer · scale`, if the form has integers.
    pub(super) fn integers(self, row: &[f32]) -> Option<(f32, impl Iterator<Item = i8>)> {
        let largest = self.largest()?;
        let most = row.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        // A row of zeros has any scale.
        let scale = if most > 0.0 { most / largest } else { 1.0 };
        let integer = move |x: &f32| (x / scale).round().clamp(-largest, largest) as i8;
        Some((scale, row.iter().map(integer)))
    }

    /// Rounds a row to the values that the form represents. Binary16 is left to the tolerance of a
    /// comparison.
    pub(super) fn round(self, row: &mut [f32]) {
        let Some((scale, integers)) = self.integers(row) else { return };
        let rounded: Vec<f32> = integers.map(|q| f32::from(q) * scale).collect();
        row.copy_from_slice(&rounded);
    }
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
        let mut zeros = [0.0; 8];
        WeightForm::Int4.round(&mut zeros);
        assert_eq!(zeros, [0.0; 8]);
    }
}
