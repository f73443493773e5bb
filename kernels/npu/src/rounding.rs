//! How the reference of a check rounds inputs and outputs of products.

use std::sync::Arc;

use super::fixed_point::FixedProducts;
use super::int8::Scales;
use lapwing_model::graph::WeightId;

/// How a back end rounds at products, with scales that are fixed when graphs are prepared.
#[derive(Clone, Debug)]
pub enum ProductRounding {
    /// Inputs to int8, apart from outliers.
    Int8(Arc<Scales>),
    /// Inputs and outputs to unsigned integers.
    Fixed(Arc<FixedProducts>),
}

/// Whether values are rounded to integers, or only limited to what these represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Steps {
    Whole,
    None,
}

/// Share of a channel's measured magnitude that inputs of a check have. Random signs add up to larger outputs
/// than those of a text, and limited ones would show no error.
const FILL: f32 = 0.25;

impl ProductRounding {
    /// Whether there is a scale for the product with this matrix.
    pub(super) fn has(&self, matrix: WeightId) -> bool {
        match self {
            ProductRounding::Int8(scales) => scales.product(matrix).is_some(),
            ProductRounding::Fixed(products) => products.product(matrix).is_some(),
        }
    }

    /// What the product with this matrix multiplies in place of x.
    pub(super) fn input(&self, matrix: WeightId, x: f32, steps: Steps) -> f64 {
        match self {
            ProductRounding::Int8(scales) => {
                scales.product(matrix).map_or(f64::from(x), |scale| scale.rounded(x))
            }
            ProductRounding::Fixed(products) => {
                let fixed = products.product(matrix).map(|product| product.input);
                fixed.map_or(f64::from(x), |fixed| match steps {
                    Steps::Whole => fixed.rounded(f64::from(x)),
                    Steps::None => fixed.limited(f64::from(x)),
                })
            }
        }
    }

    /// What the product with this matrix returns in place of y, before a bias is added.
    pub(super) fn output(&self, matrix: WeightId, y: f64, steps: Steps) -> f64 {
        let ProductRounding::Fixed(products) = self else { return y };
        let fixed = products.product(matrix).map(|product| product.output);
        fixed.map_or(y, |fixed| match steps {
            Steps::Whole => fixed.rounded(y),
            Steps::None => fixed.limited(y),
        })
    }

    /// Turns rows of values in (−1, 1) into inputs of the product with this matrix. With int8 they cover the scale, and
    /// one in each hot channel is an outlier.
    pub(super) fn spread(&self, matrix: WeightId, rows: &mut [f32], width: usize) {
        match self {
            ProductRounding::Int8(scales) => {
                let Some(scale) = scales.product(matrix) else { return };
                rows.iter_mut().for_each(|x| *x *= scale.bound());
                let count = (rows.len() / width.max(1)).max(1);
                for (at, channel) in scale.hot.iter().enumerate() {
                    rows[at % count * width + *channel as usize] *= 5.0;
                }
            }
            ProductRounding::Fixed(products) => {
                let Some(product) = products.product(matrix) else { return };
                let most = product.channels.iter().cycle();
                rows.iter_mut().zip(most).for_each(|(x, most)| *x *= most * FILL);
            }
        }
    }
}
