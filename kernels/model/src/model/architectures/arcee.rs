//! Arcee AFM: a feed-forward block with a squared ReLU.

use super::super::ModelError;
use super::super::build::{Builder, FeedForward, LayerForm};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::Curve;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("arcee", &Arcee);

struct Arcee;

impl Decoder for Arcee {
    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(
            x,
            LayerForm { feed_forward: FeedForward::Plain(Curve::ReluSquared), ..LayerForm::PLAIN },
        )
    }
}
