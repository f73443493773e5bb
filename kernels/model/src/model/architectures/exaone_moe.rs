//! K-EXAONE: experts beside one of all rows, behind dense layers, norms of heads; three layers of four have a window, and only these
//! rotate. A layer that predicts a second token is left out.

use super::super::build::{Builder, LayerForm, QkNorm};
use super::super::keys::{ExpertsForm, Keys, Windows};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("exaone-moe", &ExaoneMoe);

struct ExaoneMoe;

impl Decoder for ExaoneMoe {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        keys.leave_out_predictors(config)?;
        keys.windows(config, Windows { period: 4, default: None })?;
        config.rotated.clone_from(&config.windowed);
        config.rope_base_window = config.rope_base;
        keys.experts(config, ExpertsForm::STATED)
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(x, LayerForm { qk: QkNorm::Heads, ..LayerForm::PLAIN })
    }
}
