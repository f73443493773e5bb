//! LFM2 with mixtures of experts by sigmoids, behind dense layers.

use super::super::build::Builder;
use super::super::keys::{ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder, lfm2};
use crate::graph::ValueId;
use crate::op::RouterScore;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("lfm2moe", &Lfm2Moe);

struct Lfm2Moe;

impl Decoder for Lfm2Moe {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        lfm2::settings(keys, config)?;
        let score = RouterScore::Sigmoid;
        keys.experts(config, ExpertsForm { score, reads_score: true, ..ExpertsForm::PLAIN })
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        lfm2::layer(b, x)
    }

    fn last_norm(&self) -> &'static str {
        lfm2::LAST_NORM
    }
}
