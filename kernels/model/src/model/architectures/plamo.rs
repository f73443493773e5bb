//! PLaMo 1: attention and the feed-forward block share a norm.

use super::super::build::{Builder, LayerForm, Norms, Order};
use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("plamo", &Plamo);

struct Plamo;

impl Decoder for Plamo {
    fn settings(&self, _: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        Ok(())
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let norms = Norms { before_feed_forward: None, ..Norms::BEFORE };
        b.layer(x, LayerForm { norms, order: Order::Parallel, ..LayerForm::PLAIN })
    }
}
