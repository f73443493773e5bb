//! MPT: linear biases of attention, or a table of positions, layer norms, and limits on queries, keys and values.

use super::super::build::{Builder, FeedForward, LayerForm};
use super::super::keys::Keys;
use super::super::norm_kind::NormKind;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::Curve;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("mpt", &Mpt);

struct Mpt;

impl Decoder for Mpt {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rotated.fill(false);
        config.alibi = keys.cap("attention.max_alibi_bias", None)?;
        config.qkv_limit = keys.cap("attention.clamp_kqv", None)?;
        Ok(())
    }

    fn norm(&self) -> NormKind {
        NormKind::Layer
    }

    fn embedded(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        if b.has("position_embd.weight") { b.position(x) } else { Ok(x) }
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(
            x,
            LayerForm { feed_forward: FeedForward::Plain(Curve::GeluTanh), ..LayerForm::PLAIN },
        )
    }
}
