//! Measured magnitudes of the inputs and outputs of a model's products.

use std::collections::BTreeMap;

/// Bins of magnitudes for each power of two.
const BINS_PER_OCTAVE: u32 = 16;
/// Low bits of an f32 that a bin ignores.
const SHIFT: u32 = 23 - BINS_PER_OCTAVE.ilog2();
/// The smallest magnitude with a bin of its own is 2^−24, the largest below 2^40.
const FIRST: u32 = (127 - 24) * BINS_PER_OCTAVE;
/// Bins of a histogram.
pub(super) const BINS: usize = 64 * BINS_PER_OCTAVE as usize;

/// Magnitudes of the values of a product's input and output, over many rows.
#[derive(Clone, Debug, PartialEq)]
pub struct ActivationRange {
    /// Largest |x| of each channel of the input.
    channels: Vec<f32>,
    /// Number of values of the input by magnitude, in bins of a sixteenth of an octave.
    bins: Vec<u64>,
    /// Largest |y| of the output, before a bias is added.
    output: f32,
}

impl ActivationRange {
    /// No values yet, of `channels` channels.
    pub fn new(channels: usize) -> ActivationRange {
        ActivationRange { channels: vec![0.0; channels], bins: vec![0; BINS], output: 0.0 }
    }

    pub(super) fn from_parts(channels: Vec<f32>, bins: Vec<u64>, output: f32) -> ActivationRange {
        ActivationRange { channels, bins, output }
    }

    /// Adds rows of the input, `[rows, channels]`. Returns whether all of them are finite; if not, the range must
    /// not be used.
    pub fn add(&mut self, rows: &[f32]) -> bool {
        let mut is_finite = true;
        for row in rows.chunks_exact(self.channels.len().max(1)) {
            for (most, x) in self.channels.iter_mut().zip(row) {
                let x = x.abs();
                is_finite &= x.is_finite();
                *most = most.max(x);
                self.bins[bin(x)] += 1;
            }
        }
        is_finite
    }

    /// Adds values of the output, before a bias is added. Returns whether all of them are finite; if not, the range must
    /// not be used.
    pub fn add_output(&mut self, values: impl IntoIterator<Item = f32>) -> bool {
        let mut is_finite = true;
        for y in values {
            is_finite &= y.is_finite();
            self.output = self.output.max(y.abs());
        }
        is_finite
    }

    /// Largest |y| of the output, before a bias is added.
    pub fn largest_output(&self) -> f32 {
        self.output
    }

    /// Largest |x| of each channel of the input, `[channels]`.
    pub fn channels(&self) -> &[f32] {
        &self.channels
    }

    /// Number of values of the input by magnitude.
    pub(super) fn bins(&self) -> &[u64] {
        &self.bins
    }

    /// Largest |x| of the input.
    pub fn largest(&self) -> f32 {
        self.channels.iter().copied().fold(0.0, f32::max)
    }

    /// A magnitude that at least `share` of the input's values do not exceed, within a sixteenth above the smallest such;
    /// the largest for a share of 1 or more.
    pub fn quantile(&self, share: f64) -> f32 {
        let all: u64 = self.bins.iter().sum();
        let wanted = (share * all as f64).ceil() as u64;
        if share >= 1.0 || wanted >= all {
            return self.largest();
        }
        let mut seen = 0;
        let reached = self.bins.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        reached.map_or(f32::INFINITY, end_of).min(self.largest())
    }
}

/// Bin of a magnitude.
fn bin(x: f32) -> usize {
    let bin = (x.to_bits() >> SHIFT).saturating_sub(FIRST) as usize;
    bin.min(BINS - 1)
}

/// The magnitude that those of a bin stay below.
fn end_of(bin: usize) -> f32 {
    f32::from_bits((bin as u32 + 1 + FIRST) << SHIFT)
}

/// The ranges of all products of a model, measured on a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActivationRanges {
    /// By the name of the product's matrix.
    products: BTreeMap<String, ActivationRange>,
    /// Rows (tokens) that they were measured on.
    rows: u64,
}

impl ActivationRanges {
    /// Ranges of products by the name of their matrix, measured on `rows` rows (tokens).
    pub fn new(products: BTreeMap<String, ActivationRange>, rows: u64) -> ActivationRanges {
        ActivationRanges { products, rows }
    }

    /// The range of the product with the matrix of this name.
    pub fn product(&self, matrix: &str) -> Option<&ActivationRange> {
        self.products.get(matrix)
    }

    /// All products, by the name of their matrix.
    pub fn products(&self) -> impl ExactSizeIterator<Item = (&str, &ActivationRange)> {
        self.products.iter().map(|(name, range)| (&**name, range))
    }

    /// Rows (tokens) that they were measured on.
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_at_most_a_sixteenth_above_the_value_of_its_rank() {
        let values: Vec<f32> = (1..=1000).map(|at| at as f32 * 0.37).collect();
        let mut range = ActivationRange::new(10);
        assert!(range.add(&values));
        for share in [0.001, 0.1, 0.5, 0.9, 0.999] {
            let exact = values[(share * 1000.0f64).ceil() as usize - 1];
            let found = range.quantile(share);
            assert!(found >= exact && found <= exact * 1.0625, "{share}: {found} for {exact}");
        }
        assert_eq!(range.quantile(1.0), 370.0);
        assert_eq!(range.channels()[9], 370.0);
    }

    #[test]
    fn zeros_huge_values_and_no_values_have_quantiles() {
        let empty = ActivationRange::new(3);
        assert_eq!((empty.quantile(0.5), empty.largest()), (0.0, 0.0));
        let mut range = ActivationRange::new(2);
        assert!(range.add(&[0.0, -0.0, 1e30, 1e-30]));
        assert_eq!(range.quantile(1.0), 1e30);
        assert!(range.quantile(0.5) < 1e-7);
        assert!(!range.add(&[f32::NAN, 1.0]));
        assert!(!range.add(&[f32::NEG_INFINITY, 1.0]));
        assert!(range.add_output([0.5, -3.0, 1.0]) && range.largest_output() == 3.0);
        assert!(!range.add_output([f32::NAN]) && range.largest_output() == 3.0);
    }
}
