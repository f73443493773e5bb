//! Phi 1 and 2: layer norms, one for attention and the feed-forward block, which both read; a part of each head is rotated.

use super::super::build::{Builder, FeedForward, LayerForm, Norms, Order};
use super::super::keys::Keys;
use super::super::norm_kind::NormKind;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::{Curve, RopePairs};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("phi2", &Phi2);

struct Phi2;

impl Decoder for Phi2 {
    fn settings(&self, _: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        Ok(())
    }

    fn norm(&self) -> NormKind {
        NormKind::Layer
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let norms = Norms { before_feed_forward: None, ..Norms::BEFORE };
        let feed_forward = FeedForward::Plain(Curve::GeluTanh);
        b.layer(x, LayerForm { norms, feed_forward, order: Order::Parallel, ..LayerForm::PLAIN })
    }
}
