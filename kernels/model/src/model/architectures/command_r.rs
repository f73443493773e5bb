//! Command R and R+: a layer norm that attention and the feed-forward block share; the large one also normalises heads.

use super::super::build::{Builder, LayerForm, Norms, Order, QkNorm};
use super::super::keys::Keys;
use super::super::norm_kind::NormKind;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("command-r", &CommandR);

struct CommandR;

impl Decoder for CommandR {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.logit_scale = keys.factor("logit_scale", 1.0)?;
        Ok(())
    }

    fn norm(&self) -> NormKind {
        NormKind::Layer
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let norms = Norms { before_feed_forward: None, ..Norms::BEFORE };
        let qk = if b.has("attn_q_norm.weight") { QkNorm::Heads } else { QkNorm::None };
        b.layer(x, LayerForm { qk, norms, order: Order::Parallel, ..LayerForm::PLAIN })
    }
}
