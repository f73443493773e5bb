//! Rounds the input of a product to int8 with a fixed scale, and collects what exceeds it.

use super::LARGEST;
use super::scales::ProductScale;
use lapwing_cpu::{Q8Block, QuantScheme, RowScale, fill_scaled};

/// A value of an input is NaN or infinite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("channel {channel} of input row {row} is not a finite number")]
pub struct NotFinite {
    /// The row.
    pub row: usize,
    /// The channel.
    pub channel: usize,
}

/// What outliers exceed the scale by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Outlier {
    pub(super) channel: u32,
    /// The value, less ±127 times the scale.
    pub(super) excess: f32,
}

/// The outliers of an input, row by row.
#[derive(Debug, Default)]
pub(super) struct Excess {
    outliers: Vec<Outlier>,
    /// End of each row in `outliers`.
    ends: Vec<usize>,
}

impl Excess {
    /// The outliers of a row, by ascending channel.
    pub(super) fn row(&self, row: usize) -> &[Outlier] {
        let begin = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.outliers[begin..self.ends[row]]
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        self.ends.len()
    }

    /// Number of outliers.
    pub(super) fn len(&self) -> usize {
        self.outliers.len()
    }

    /// The channels that have any, ascending.
    pub(super) fn channels(&self) -> Vec<u32> {
        let mut channels: Vec<u32> = self.outliers.iter().map(|outlier| outlier.channel).collect();
        channels.sort_unstable();
        channels.dedup();
        channels
    }
}

/// A rounded input; reuses its memory.
#[derive(Debug, Default)]
pub(super) struct RoundedInput {
    /// `[rows][k / 32]`.
    pub(super) blocks: Vec<Q8Block>,
    pub(super) excess: Excess,
    limited: Vec<f32>,
}

impl RoundedInput {
    /// Rounds `x`, rows of `k` values, into the blocks that weights of the scheme's format are multiplied with. A
    /// row's result depends on that row alone.
    ///
    /// # Errors
    /// [`NotFinite`] for the first such value.
    pub(super) fn fill(
        &mut self,
        x: &[f32],
        k: usize,
        scale: &ProductScale,
        scheme: QuantScheme,
    ) -> Result<(), NotFinite> {
        let rows = x.len() / k;
        let groups = k / 32;
        self.blocks.resize(rows * groups, Q8Block::default());
        self.limited.resize(k, 0.0);
        self.excess.outliers.clear();
        self.excess.ends.clear();
        let largest = LARGEST * scale.scale;
        let one_scale = RowScale { d: scale.scale, inverse: scale.inverse(), zero: 0 };
        let rows = x.chunks_exact(k).zip(self.blocks.chunks_exact_mut(groups));
        for (row, (x, blocks)) in rows.enumerate() {
            if !is_finite(x) {
                let channel = x.iter().position(|x| !x.is_finite()).unwrap_or(0);
                return Err(NotFinite { row, channel });
            }
            for (to, x) in self.limited.iter_mut().zip(x) {
                *to = x.clamp(-largest, largest);
            }
            fill_scaled(&self.limited, one_scale, scheme, blocks);
            if scale.outliers {
                let bound = scale.bound();
                let outliers = x.iter().enumerate().filter(|(_, x)| x.abs() > bound);
                self.excess.outliers.extend(outliers.map(|(channel, x)| Outlier {
                    channel: channel as u32,
                    excess: x - largest.copysign(*x),
                }));
            }
            self.excess.ends.push(self.excess.outliers.len());
        }
        Ok(())
    }
}

fn is_finite(x: &[f32]) -> bool {
    let bits = x.iter().fold(0, |most: u32, x| most.max(x.to_bits() & 0x7fff_ffff));
    f32::from_bits(bits).is_finite()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapwing_model::formats::DType;

    fn scale(outliers: bool) -> ProductScale {
        ProductScale { scale: 0.01, outliers, hot: Vec::new() }
    }

    fn scheme() -> QuantScheme {
        QuantScheme::of_format(DType::Q8_0).expect("a scheme")
    }

    /// Values of a row: integers times the scale, and the excess.
    fn values(input: &RoundedInput, row: usize, k: usize) -> Vec<f32> {
        let blocks = &input.blocks[row * k / 32..][..k / 32];
        let mut values: Vec<f32> =
            blocks.iter().flat_map(|block| block.q.map(|q| f32::from(q) * block.d)).collect();
        for outlier in input.excess.row(row) {
            values[outlier.channel as usize] += outlier.excess;
        }
        values
    }

    #[test]
    fn values_are_those_of_the_reference_for_none_one_and_only_outliers() {
        let mut input = RoundedInput::default();
        for k in [32, 64, 96] {
            let none: Vec<f32> = (0..k).map(|at| (at as f32 * 0.7).sin() * 1.2).collect();
            let mut one = none.clone();
            one[k - 1] = -55.0;
            let all: Vec<f32> = (0..k).map(|at| 2.0 + 1e6 * at as f32).collect();
            for outliers in [true, false] {
                let scale = scale(outliers);
                let x = [none.clone(), one.clone(), all.clone()].concat();
                input.fill(&x, k, &scale, scheme()).expect("finite");
                let counts: Vec<usize> = (0..3).map(|row| input.excess.row(row).len()).collect();
                assert_eq!(counts, if outliers { [0, 1, k] } else { [0, 0, 0] });
                for (row, x) in x.chunks(k).enumerate() {
                    for (got, x) in values(&input, row, k).iter().zip(x) {
                        let want = scale.rounded(*x) as f32;
                        assert!((got - want).abs() <= 1e-6 * want.abs().max(1.0), "{got} {want}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_row_does_not_depend_on_the_others() {
        let rows: Vec<f32> = (0..5 * 64).map(|at| ((at * 37 % 101) as f32 - 50.0) * 0.05).collect();
        let (mut all, mut one) = (RoundedInput::default(), RoundedInput::default());
        all.fill(&rows, 64, &scale(true), scheme()).expect("finite");
        for row in 0..5 {
            one.fill(&rows[row * 64..][..64], 64, &scale(true), scheme()).expect("finite");
            assert_eq!(one.blocks, all.blocks[row * 2..][..2]);
            assert_eq!(one.excess.row(0), all.excess.row(row));
        }
        assert_eq!(all.excess.rows(), 5);
    }

    #[test]
    fn what_is_not_finite_is_an_error_that_says_where() {
        let mut input = RoundedInput::default();
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = vec![0.5; 64];
            x[32 + 7] = bad;
            let error = input.fill(&x, 32, &scale(true), scheme()).expect_err("refused");
            assert_eq!(error, NotFinite { row: 1, channel: 7 });
        }
        input.fill(&[], 32, &scale(true), scheme()).expect("no rows");
        assert_eq!((input.excess.rows(), input.excess.len()), (0, 0));
    }
}
