//! StableLM: layer norms. In some sizes heads are normalised, and the feed-forward block reads what attention does.

use super::super::build::{Builder, LayerForm, Norms, Order, QkNorm};
use super::super::keys::Keys;
use super::super::norm_kind::NormKind;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("stablelm", &Stablelm);

struct Stablelm;

impl Decoder for Stablelm {
    fn settings(&self, _: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        Ok(())
    }

    fn norm(&self) -> NormKind {
        NormKind::Layer
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let qk = if b.has("attn_q_norm.weight") { QkNorm::Heads } else { QkNorm::None };
        let parallel = LayerForm {
            norms: Norms { before_feed_forward: None, ..Norms::BEFORE },
            order: Order::Parallel,
            ..LayerForm::PLAIN
        };
        let form = if b.has("ffn_norm.weight") { LayerForm::PLAIN } else { parallel };
        b.layer(x, LayerForm { qk, ..form })
    }
}
