//! Activations as unsigned integers with one fixed scale for each tensor.

use std::collections::HashMap;

use super::int8::{ActivationRanges, ScalesError};
use lapwing_model::graph::{Graph, WeightId};
use lapwing_model::op::Op;

/// Unsigned integers that stand for `(integer − 2^(bits − 1)) · scale`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FixedPoint {
    bits: u32,
    scale: f32,
}

/// The integers of a product.
#[derive(Clone, Debug, PartialEq)]
pub struct FixedProduct {
    /// Of its input.
    pub input: FixedPoint,
    /// Of its output before a bias is added.
    pub output: FixedPoint,
    /// Largest measured |x| of each channel of the input.
    pub channels: Vec<f32>,
}

/// The integers of all products of a model.
#[derive(Clone, Debug)]
pub struct FixedProducts {
    bits: u32,
    products: HashMap<WeightId, FixedProduct>,
}

impl FixedPoint {
    /// Integers of `bits` bits (2 to 16), the largest of which stands for `largest`. Larger values are limited to
    /// it.
    pub fn covering(bits: u32, largest: f32) -> FixedPoint {
        let steps = ((1u32 << (bits - 1)) - 1) as f32;
        // Any scale represents zeros.
        let scale = if largest > f32::MIN_POSITIVE * steps { largest / steps } else { 1.0 };
        FixedPoint { bits, scale }
    }

    /// Bits of an integer.
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// The difference of values whose integers differ by 1.
    pub fn scale(self) -> f32 {
        self.scale
    }

    /// The integer of the value 0.
    pub fn zero(self) -> i32 {
        1 << (self.bits - 1)
    }

    /// The nearest value that an integer stands for.
    pub fn rounded(self, x: f64) -> f64 {
        let scale = f64::from(self.scale);
        self.limited((x / scale).round_ties_even() * scale)
    }

    /// The nearest value between those of the least and the largest integer.
    pub fn limited(self, x: f64) -> f64 {
        let (zero, scale) = (f64::from(self.zero()), f64::from(self.scale));
        x.clamp(-zero * scale, (zero - 1.0) * scale)
    }
}

impl FixedProducts {
    /// The integers of `bits` bits (2 to 16) that cover everything measured.
    ///
    /// # Errors
    /// [`ScalesError::Missing`] if a product was not measured.
    pub fn new(
        graph: &Graph,
        ranges: &ActivationRanges,
        bits: u32,
    ) -> Result<FixedProducts, ScalesError> {
        let mut products = HashMap::new();
        for node in graph.nodes() {
            let Op::MatMul { weight, .. } = node.op else { continue };
            let range = ranges.of(&graph.weights()[weight.0])?;
            let product = FixedProduct {
                input: FixedPoint::covering(bits, range.largest()),
                output: FixedPoint::covering(bits, range.largest_output()),
                channels: range.channels().to_vec(),
            };
            products.insert(weight, product);
        }
        Ok(FixedProducts { bits, products })
    }

    /// Bits of an integer.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// The integers of the product with this matrix.
    pub fn product(&self, matrix: WeightId) -> Option<&FixedProduct> {
        self.products.get(&matrix)
    }

    /// Text that is the same for the same integers of the same products only.
    pub fn key(&self) -> String {
        let mut products: Vec<_> = self.products.iter().collect();
        products.sort_unstable_by_key(|(matrix, _)| matrix.0);
        let scales = products.iter().map(|(matrix, product)| {
            let [input, output] =
                [product.input, product.output].map(|fixed| fixed.scale.to_bits());
            format!(" {}:{input:x}:{output:x}", matrix.0)
        });
        format!("{}{}", self.bits, scales.collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_within_half_a_step_and_limited_beyond_the_range() {
        for (bits, largest) in [(8, 3.0f32), (16, 3.0), (16, 4e4), (8, 1e-6)] {
            let fixed = FixedPoint::covering(bits, largest);
            let (scale, most) = (f64::from(fixed.scale()), f64::from(largest));
            for at in -1000..=1000 {
                let x = f64::from(at) / 1000.0 * most;
                assert!((fixed.rounded(x) - x).abs() <= scale / 2.0 * 1.001, "{bits}, {x}");
                assert!((fixed.limited(x) - x).abs() <= most * 1e-6, "{bits}, {x}");
            }
            assert!((fixed.rounded(2.0 * most) - most).abs() < most * 1e-6);
            assert_eq!(fixed.rounded(-2.0 * most), -f64::from(fixed.zero()) * scale);
            assert_eq!(fixed.rounded(0.0), 0.0);
        }
        assert_eq!(FixedPoint::covering(16, 0.0).rounded(0.0), 0.0);
    }
}
