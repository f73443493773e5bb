//! Heads: products with the one row that pooling leaves of a text. They run on the calling thread: a row times a matrix of a
//! model's width takes less time than to wake other threads.

use lapwing_model::graph::WeightSpec;
use lapwing_model::model::{Head, HeadActivation, HeadLayer};
use lapwing_model::reference::dequantize;
use lapwing_model::weights::{TensorReadError, WeightFile};

/// Why a head cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeadError {
    /// A tensor is not in the file.
    #[error("tensor '{name}' is not in the weight file; use the file that the model was read from")]
    Missing {
        /// Tensor name.
        name: String,
    },
    /// A tensor cannot be read.
    #[error(transparent)]
    Read(#[from] TensorReadError),
}

/// The weights of a head, in f32.
#[derive(Debug)]
pub struct HeadWeights {
    layers: Vec<Layer>,
    softmax: bool,
}

#[derive(Debug)]
struct Layer {
    /// `[out][in]`.
    weight: Vec<f32>,
    /// Values that it reads.
    cols: usize,
    bias: Vec<f32>,
    activation: Option<HeadActivation>,
    /// Gain of the norm, and its epsilon.
    norm: Option<(Vec<f32>, f32)>,
}

impl HeadWeights {
    /// Reads the weights of a head.
    ///
    /// # Errors
    /// When the file is not the one that the model was read from, or cannot be read.
    pub fn read(head: &Head, file: &WeightFile) -> Result<HeadWeights, HeadError> {
        let layers = head.layers.iter().map(|layer| Layer::read(layer, file));
        Ok(HeadWeights { layers: layers.collect::<Result<_, _>>()?, softmax: head.softmax })
    }

    /// What the head makes of a pooled row: sums are in f64 and in one order, so equal rows give equal results.
    ///
    /// # Panics
    /// If the row is not as wide as the model.
    pub fn apply(&self, row: &[f32]) -> Vec<f32> {
        let mut row = row.to_vec();
        for layer in &self.layers {
            assert_eq!(row.len(), layer.cols, "a pooled row has the width of the head");
            row = layer.apply(&row);
        }
        if self.softmax { softmax(&row) } else { row }
    }

    /// Number of its results.
    pub fn outputs(&self) -> usize {
        self.layers.last().map_or(0, |layer| layer.weight.len() / layer.cols)
    }
}

impl Layer {
    fn read(layer: &HeadLayer, file: &WeightFile) -> Result<Layer, HeadError> {
        let bias = layer.bias.as_ref().map(|bias| values(bias, file));
        let norm = match &layer.norm {
            Some(norm) => Some((values(&norm.weight, file)?, norm.eps)),
            None => None,
        };
        Ok(Layer {
            weight: values(&layer.weight, file)?,
            cols: layer.weight.cols,
            bias: bias.transpose()?.unwrap_or_default(),
            activation: layer.activation,
            norm,
        })
    }

    fn apply(&self, x: &[f32]) -> Vec<f32> {
        let rows = self.weight.chunks_exact(self.cols).enumerate();
        let made = rows.map(|(at, weights)| {
            let sum = dot(weights, x) + f64::from(self.bias.get(at).copied().unwrap_or(0.0));
            match self.activation {
                None => sum,
                Some(HeadActivation::Tanh) => sum.tanh(),
                Some(HeadActivation::Gelu) => {
                    sum * 0.5 * (1.0 + libm::erf(sum * std::f64::consts::FRAC_1_SQRT_2))
                }
            }
        });
        let mut row: Vec<f64> = made.collect();
        if let Some((gain, eps)) = &self.norm {
            layer_norm(&mut row, gain, *eps);
        }
        row.into_iter().map(|value| value as f32).collect()
    }
}

/// The values of a tensor.
fn values(spec: &WeightSpec, file: &WeightFile) -> Result<Vec<f32>, HeadError> {
    let missing = || HeadError::Missing { name: spec.name.clone() };
    let tensor = file.tensor(&spec.name).ok_or_else(missing)?;
    let mut values = dequantize(tensor.dtype(), &tensor.read()?);
    values.truncate(spec.rows * spec.cols);
    Ok(values)
}

/// Scalar product, with as many partial sums as vectors of CPUs have lanes.
fn dot(a: &[f32], b: &[f32]) -> f64 {
    const LANES: usize = 8;
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f64 = a.remainder().iter().zip(b.remainder()).map(product).sum();
    let mut sums = [0.0; LANES];
    for (a, b) in a.zip(b) {
        for (sum, pair) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += product(pair);
        }
    }
    sums.iter().sum::<f64>() + rest
}

fn product(pair: (&f32, &f32)) -> f64 {
    f64::from(*pair.0) * f64::from(*pair.1)
}

fn layer_norm(row: &mut [f64], gain: &[f32], eps: f32) {
    let count = row.len() as f64;
    let mean = row.iter().sum::<f64>() / count;
    let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    let root = (variance + f64::from(eps)).sqrt();
    for (x, gain) in row.iter_mut().zip(gain) {
        *x = (*x - mean) / root * f64::from(*gain);
    }
}

fn softmax(row: &[f32]) -> Vec<f32> {
    let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f64> = row.iter().map(|x| f64::from(x - most).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.iter().map(|power| (power / sum) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scalar_product_has_every_value_once() {
        for len in [0, 1, 7, 8, 9, 16, 31, 400] {
            let a: Vec<f32> = (0..len).map(|i| i as f32 - 3.0).collect();
            let b: Vec<f32> = (0..len).map(|i| 0.5 - i as f32).collect();
            let want: f64 = a.iter().zip(&b).map(product).sum();
            assert_eq!(dot(&a, &b), want, "{len} values");
        }
    }

    #[test]
    fn layers_follow_each_other_and_probabilities_add_up() {
        let first = Layer {
            weight: vec![1.0, 2.0, 0.5, -1.0],
            cols: 2,
            bias: vec![0.25, -0.5],
            activation: Some(HeadActivation::Tanh),
            norm: None,
        };
        let second = Layer {
            weight: vec![3.0, -1.0, 1.0, 1.0],
            cols: 2,
            bias: vec![],
            activation: None,
            norm: None,
        };
        let mut head = HeadWeights { layers: vec![first, second], softmax: false };
        let (a, b) = ((0.5_f64 - 2.0 + 0.25).tanh(), (0.25_f64 + 1.0 - 0.5).tanh());
        let want = [3.0 * a - b, a + b];
        let found = head.apply(&[0.5, -1.0]);
        assert!(
            found.iter().zip(want).all(|(found, want)| (f64::from(*found) - want).abs() < 1e-6)
        );
        head.softmax = true;
        let found = head.apply(&[0.5, -1.0]);
        assert!((found[0] + found[1] - 1.0).abs() < 1e-6, "{found:?}");
        let odds = f64::from(found[0] / found[1]).ln();
        assert!((odds - (want[0] - want[1])).abs() < 1e-4, "{found:?}");
    }
}
