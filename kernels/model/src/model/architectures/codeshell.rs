//! CodeShell: layer norms, and a feed-forward block without a gate.

use super::super::build::{Builder, FeedForward, LayerForm};
use super::super::keys::Keys;
use super::super::norm_kind::NormKind;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::{Curve, RopePairs};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("codeshell", &Codeshell);

struct Codeshell;

impl Decoder for Codeshell {
    fn settings(&self, _: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        Ok(())
    }

    fn norm(&self) -> NormKind {
        NormKind::Layer
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(
            x,
            LayerForm { feed_forward: FeedForward::Plain(Curve::GeluTanh), ..LayerForm::PLAIN },
        )
    }
}
