//! Ling and Ring, second generation: experts of the best groups beside one of all rows, behind dense layers, and norms of heads. A
//! layer that predicts a second token is left out.

use super::super::build::{Builder, LayerForm, QkNorm};
use super::super::keys::{ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("bailingmoe2", &BailingMoe2);

pub(super) struct BailingMoe2;

impl Decoder for BailingMoe2 {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        keys.leave_out_predictors(config)?;
        keys.experts(config, ExpertsForm::STATED)
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(x, LayerForm { qk: QkNorm::Heads, ..LayerForm::PLAIN })
    }
}
