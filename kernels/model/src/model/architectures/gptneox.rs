//! GPT-NeoX, Pythia and Dolly 2: layer norms; attention and the feed-forward block read the same, unless a file says otherwise.

use super::super::build::{Builder, FeedForward, LayerForm, Order};
use super::super::keys::Keys;
use super::super::norm_kind::NormKind;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::{Curve, RopePairs};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("gptneox", &Gptneox);

struct Gptneox;

impl Decoder for Gptneox {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.is_parallel = keys.flag("use_parallel_residual", true)?;
        config.rope_pairs = RopePairs::Halves;
        Ok(())
    }

    fn norm(&self) -> NormKind {
        NormKind::Layer
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let order = if b.config.is_parallel { Order::Parallel } else { Order::Sequential };
        b.layer(
            x,
            LayerForm {
                feed_forward: FeedForward::Plain(Curve::GeluTanh),
                order,
                ..LayerForm::PLAIN
            },
        )
    }
}
