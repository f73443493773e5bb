//! DBRX: layer norms without biases, bounds of queries, keys and values, and mixtures of experts.

use super::super::build::{Builder, LayerForm, Norms};
use super::super::keys::{ExpertsForm, Keys};
use super::super::norm_kind::NormKind;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("dbrx", &Dbrx);

struct Dbrx;

impl Decoder for Dbrx {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        config.qkv_limit = keys.cap("attention.clamp_kqv", None)?;
        keys.experts(config, ExpertsForm::PLAIN)
    }

    fn norm(&self) -> NormKind {
        NormKind::Layer
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let before_feed_forward = Some("attn_output_norm");
        let norms = Norms { before_feed_forward, ..Norms::BEFORE };
        b.layer(x, LayerForm { norms, ..LayerForm::PLAIN })
    }
}
