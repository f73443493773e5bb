//! Falcon: layer norms; attention and the feed-forward block read the same, in the large size with a norm for each.

use super::super::build::{Builder, FeedForward, LayerForm, Norms, Order};
use super::super::keys::Keys;
use super::super::norm_kind::NormKind;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::{Curve, RopePairs};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("falcon", &Falcon);

struct Falcon;

impl Decoder for Falcon {
    fn settings(&self, _: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        Ok(())
    }

    fn norm(&self) -> NormKind {
        NormKind::Layer
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let (before_attention, before_feed_forward) = match b.has("attn_norm_2.weight") {
            true => (Some("attn_norm_2"), Some("attn_norm")),
            false => (Some("attn_norm"), None),
        };
        let norms = Norms { before_attention, before_feed_forward, ..Norms::BEFORE };
        let feed_forward = FeedForward::Plain(Curve::GeluTanh);
        b.layer(x, LayerForm { norms, feed_forward, order: Order::Parallel, ..LayerForm::PLAIN })
    }
}
