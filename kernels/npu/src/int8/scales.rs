//! The fixed scales of a model's products, and whose outliers are computed.

use std::collections::HashMap;
use std::sync::Arc;

use super::LARGEST;
use super::ranges::{ActivationRange, ActivationRanges};
use lapwing_model::formats::DType;
use lapwing_model::graph::{Graph, WeightId, WeightSpec};
use lapwing_model::op::Op;

/// How activations are rounded to int8 with one fixed scale for each product's input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StaticInt8 {
    /// Share of the measured values, above 0 and at most 1, that the scale covers: the smallest magnitude that so
    /// many do not exceed is 127 times the scale. With 1 it is the largest magnitude.
    pub clip: f64,
    /// Whether the CPU computes what values exceed the scale by. Otherwise they are limited to it.
    pub outliers: bool,
    /// Share of the products, 0 to 1, whose outliers are not computed: those in which the largest measured value
    /// exceeds the scale by the smallest factor. They get the scale of their largest value.
    pub prune: f64,
}

impl Default for StaticInt8 {
    /// Outliers of all products beyond 99.9 % of the values.
    fn default() -> StaticInt8 {
        StaticInt8 { clip: 0.999, outliers: true, prune: 0.0 }
    }
}

/// How the input of a product is rounded.
#[derive(Clone, Debug, PartialEq)]
pub struct ProductScale {
    /// The value of integer 1. Above 0.
    pub scale: f32,
    /// Whether outliers are computed.
    pub outliers: bool,
    /// Channels with outliers in the measured text, ascending: their weights are kept in f32.
    pub hot: Vec<u32>,
}

/// The scales of all products of a model.
#[derive(Clone, Debug)]
pub struct Scales {
    settings: StaticInt8,
    products: HashMap<WeightId, Arc<ProductScale>>,
}

/// Why a model has no scales.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScalesError {
    /// A product was not measured.
    #[error(
        "the measured ranges have no product '{matrix}' of {channels} channels; measure them for this model with `lapwing ranges`"
    )]
    Missing {
        /// Name of the product's matrix.
        matrix: String,
        /// Its input channels.
        channels: usize,
    },
    /// A matrix is not quantised.
    #[error(
        "matrix '{matrix}' is stored as {dtype}, but int8 activations are multiplied with quantised weights; requantise it, as with --requant int8:row"
    )]
    FloatWeights {
        /// Name of the matrix.
        matrix: String,
        /// Its format.
        dtype: DType,
    },
}

impl ActivationRanges {
    /// The range of the product with this matrix.
    ///
    /// # Errors
    /// [`ScalesError::Missing`] if it was not measured.
    pub(crate) fn of(&self, matrix: &WeightSpec) -> Result<&ActivationRange, ScalesError> {
        let range = self.product(&matrix.name);
        let range = range.filter(|range| range.channels().len() == matrix.cols);
        let missing =
            || ScalesError::Missing { matrix: matrix.name.clone(), channels: matrix.cols };
        range.ok_or_else(missing)
    }
}

impl Scales {
    /// The scales of a graph's products by measured ranges.
    ///
    /// # Errors
    /// [`ScalesError`] if a product was not measured or has weights in floats.
    pub fn new(
        graph: &Graph,
        ranges: &ActivationRanges,
        settings: StaticInt8,
    ) -> Result<Scales, ScalesError> {
        let mut found: Vec<(WeightId, &ActivationRange)> = Vec::new();
        for node in graph.nodes() {
            let Op::MatMul { weight, .. } = node.op else { continue };
            let spec = &graph.weights()[weight.0];
            if spec.dtype.block_len() == 1 {
                let matrix = spec.name.clone();
                return Err(ScalesError::FloatWeights { matrix, dtype: spec.dtype });
            }
            found.push((weight, ranges.of(spec)?));
        }
        let excess = |range: &ActivationRange| {
            let bound = range.quantile(settings.clip);
            if bound > 0.0 { range.largest() / bound } else { 1.0 }
        };
        // Products of the same input have the same excess, and stay in the order of the graph.
        found.sort_by(|(_, a), (_, b)| excess(b).total_cmp(&excess(a)));
        let pruned = (settings.prune.clamp(0.0, 1.0) * found.len() as f64).round() as usize;
        let kept = if settings.outliers { found.len() - pruned } else { 0 };
        let products = found.into_iter().enumerate().map(|(rank, (weight, range))| {
            let is_pruned = settings.outliers && rank >= kept;
            let clip = if is_pruned { 1.0 } else { settings.clip };
            (weight, Arc::new(ProductScale::new(range, clip, rank < kept)))
        });
        Ok(Scales { settings, products: products.collect() })
    }

    /// The settings that they follow from.
    pub fn settings(&self) -> StaticInt8 {
        self.settings
    }

    /// The scale of the product with this matrix.
    pub fn product(&self, matrix: WeightId) -> Option<&Arc<ProductScale>> {
        self.products.get(&matrix)
    }

    /// Number of products, and of those whose outliers are computed.
    pub fn products(&self) -> (usize, usize) {
        let computed = self.products.values().filter(|product| product.outliers).count();
        (self.products.len(), computed)
    }
}

impl ProductScale {
    /// The scale that covers the share `clip` of the values.
    pub fn new(range: &ActivationRange, clip: f64, outliers: bool) -> ProductScale {
        let bound = range.quantile(clip);
        // Any scale represents an input of zeros.
        let scale = if bound > f32::MIN_POSITIVE * LARGEST { bound / LARGEST } else { 1.0 };
        let product = ProductScale { scale, outliers, hot: Vec::new() };
        let is_hot = |x: f32| outliers && x > product.bound();
        let hot = range.channels().iter().enumerate().filter(|(_, x)| is_hot(**x));
        let hot = hot.map(|(channel, _)| channel as u32).collect();
        ProductScale { hot, ..product }
    }

    /// The largest magnitude that is no outlier: it rounds to 127.
    pub fn bound(&self) -> f32 {
        (LARGEST + 0.5) * self.scale
    }

    /// Integers of a value of 1.
    pub(super) fn inverse(&self) -> f32 {
        1.0 / self.scale
    }

    /// The value that a device computes with in place of x: the nearest integer within ±127 times the scale, or an
    /// outlier itself where these are computed. The reference for kernels.
    pub fn rounded(&self, x: f32) -> f64 {
        if self.outliers && x.abs() > self.bound() {
            return f64::from(x);
        }
        let q = (x * self.inverse()).round_ties_even().clamp(-LARGEST, LARGEST);
        f64::from(q) * f64::from(self.scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range() -> ActivationRange {
        let mut range = ActivationRange::new(4);
        for _ in 0..100 {
            assert!(range.add(&[1.0, -0.5, 0.25, 0.125]));
        }
        assert!(range.add(&[1.0, 0.5, -40.0, 0.125]));
        range
    }

    #[test]
    fn channels_beyond_the_scale_are_hot() {
        let product = ProductScale::new(&range(), 0.99, true);
        assert_eq!(product.hot, [2]);
        assert!(product.scale * LARGEST <= 1.0625);
        assert_eq!(product.rounded(-40.0), -40.0);
        let limited = ProductScale::new(&range(), 0.99, false);
        assert!(limited.hot.is_empty() && limited.rounded(-40.0) >= -1.07);
        let whole = ProductScale::new(&range(), 1.0, true);
        assert!(whole.hot.is_empty());
        assert!((whole.rounded(-40.0) + 40.0).abs() < 1e-5);
    }

    #[test]
    fn an_input_of_zeros_has_a_scale() {
        let product = ProductScale::new(&ActivationRange::new(2), 0.999, true);
        assert!(product.scale > 0.0 && product.hot.is_empty());
        assert_eq!(product.rounded(0.0), 0.0);
    }
}
