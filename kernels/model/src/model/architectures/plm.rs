//! PLM (2025): latent attention, and a feed-forward block with a squared ReLU.

use super::super::build::{Builder, FeedForward, LayerForm};
use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::Curve;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("plm", &Plm);

struct Plm;

impl Decoder for Plm {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        keys.latent(config)
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let feed_forward = FeedForward::Plain(Curve::ReluSquared);
        b.latent_layer(x, LayerForm { feed_forward, ..LayerForm::PLAIN })
    }
}
