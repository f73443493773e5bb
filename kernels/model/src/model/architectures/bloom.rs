//! BLOOM: linear biases of attention, layer norms, one of them on embeddings, and a feed-forward block without a gate.

use super::super::build::{Builder, FeedForward, LayerForm};
use super::super::keys::Keys;
use super::super::norm_kind::NormKind;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::Curve;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("bloom", &Bloom);

struct Bloom;

impl Decoder for Bloom {
    fn settings(&self, _: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rotated.fill(false);
        config.alibi = Some(8.0);
        Ok(())
    }

    fn norm(&self) -> NormKind {
        NormKind::Layer
    }

    fn embedded(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.norm("token_embd_norm", x)
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(
            x,
            LayerForm { feed_forward: FeedForward::Plain(Curve::GeluTanh), ..LayerForm::PLAIN },
        )
    }
}
