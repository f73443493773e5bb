//! Command R7B and its successors: a layer norm that attention and the feed-forward block share; three layers of four have a window, and
//! only these have a rotary embedding.

use super::super::build::{Builder, LayerForm, Norms, Order};
use super::super::keys::{Keys, Windows};
use super::super::norm_kind::NormKind;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("cohere2", &Cohere2);

struct Cohere2;

impl Decoder for Cohere2 {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        keys.windows(config, Windows { period: 4, default: None })?;
        config.rotated.clone_from(&config.windowed);
        config.logit_scale = keys.factor("logit_scale", 1.0)?;
        Ok(())
    }

    fn norm(&self) -> NormKind {
        NormKind::Layer
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let norms = Norms { before_feed_forward: None, ..Norms::BEFORE };
        b.layer(x, LayerForm { norms, order: Order::Parallel, ..LayerForm::PLAIN })
    }
}
