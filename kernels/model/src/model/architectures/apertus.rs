//! Apertus: normalised heads, and a feed-forward block with xIELU, whose parameters are those of each layer.

use super::super::build::{Builder, FeedForward, LayerForm, QkNorm};
use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::{Curve, RopePairs, Xielu};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("apertus", &Apertus);

struct Apertus;

impl Decoder for Apertus {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        config.xielu = xielu(keys, config.layers)?;
        Ok(())
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let curve = b.config.xielu[b.layer.unwrap_or_default()];
        let feed_forward = FeedForward::Plain(Curve::Xielu(curve));
        b.layer(x, LayerForm { qk: QkNorm::Heads, feed_forward, ..LayerForm::PLAIN })
    }
}

/// The parameters of each layer. Files have the factors as in the training, which makes them positive by softplus, and their keys
/// have no prefix of the architecture.
fn xielu(keys: &Keys<'_>, layers: usize) -> Result<Vec<Xielu>, ModelError> {
    let read = |name: &str| keys.bare_numbers(name, layers);
    let (negative, positive) = (read("xielu.alpha_n")?, read("xielu.alpha_p")?);
    let (beta, eps) = (read("xielu.beta")?, read("xielu.eps")?);
    let of = |layer: usize| Xielu {
        positive: softplus(positive[layer]),
        negative: beta[layer] + softplus(negative[layer]),
        beta: beta[layer],
        eps: eps[layer],
    };
    Ok((0..layers).map(of).collect())
}

fn softplus(x: f32) -> f32 {
    if x > 20.0 { x } else { x.exp().ln_1p() }
}
