//! Nomic's embedding models with mixtures of experts (v2): BERT with a rotary embedding, and experts without gates in each second
//! layer, whose weights are not normalised.

use super::super::build::{Builder, FeedForward, LayerForm};
use super::super::keys::{ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Encoder};
use crate::graph::ValueId;
use crate::op::{Curve, ExpertForm, RopePairs};

pub(super) const ARCHITECTURE: Architecture =
    Architecture::encoder("nomic-bert-moe", &NomicBertMoe);

struct NomicBertMoe;

impl Encoder for NomicBertMoe {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        let form = ExpertForm::Plain(Curve::Gelu);
        keys.experts(config, ExpertsForm { is_normalised: false, form, ..ExpertsForm::PLAIN })
    }

    fn embedded(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let x = b.token_type(x)?;
        b.norm("token_embd_norm", x)
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let feed_forward = FeedForward::Plain(Curve::Gelu);
        b.post_norm_layer(x, LayerForm { feed_forward, ..LayerForm::PLAIN })
    }
}
