//! Cohere's experts: attention and they share a layer norm, and half of the sum with an expert of all rows counts. All layers but each
//! fourth from the first have a window; they and dense layers rotate. A layer that predicts a second token is left out.

use super::super::build::{Builder, LayerForm, Norms, Order};
use super::super::experts::SharedExpert;
use super::super::keys::{ExpertsForm, Keys};
use super::super::norm_kind::NormKind;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("cohere2moe", &Cohere2Moe);

struct Cohere2Moe;

impl Decoder for Cohere2Moe {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        keys.leave_out_predictors(config)?;
        let dense = keys.opt_count("leading_dense_block_count")?.unwrap_or(0);
        keys.windows_but_first(config, 4)?;
        config.rotated = (0..).zip(&config.windowed).map(|at| *at.1 || at.0 < dense).collect();
        config.rope_base_window = config.rope_base;
        config.logit_scale = keys.factor("logit_scale", 1.0)?;
        let shared = SharedExpert::OptionalAveraged;
        keys.experts(config, ExpertsForm { shared, ..ExpertsForm::STATED })
    }

    fn norm(&self) -> NormKind {
        NormKind::Layer
    }

    fn may_have_rms_norms(&self) -> bool {
        true
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let norms = Norms { before_feed_forward: None, ..Norms::BEFORE };
        b.layer(x, LayerForm { norms, order: Order::Parallel, ..LayerForm::PLAIN })
    }
}
