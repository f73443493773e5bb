//! Maple: norms of heads, layers with a window by a list, of which only these rotate, and experts by a softmax, whose gates have bounds.

use super::super::build::{Builder, LayerForm, QkNorm};
use super::super::keys::{ExpertLimits, ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("maple", &Maple);

struct Maple;

impl Decoder for Maple {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        keys.listed_windows(config)?;
        config.rotated.clone_from(&config.windowed);
        keys.rope_dims_of_windows(config, config.heads[0].rope_dims)?;
        let limits = ExpertLimits::Gates;
        keys.experts(config, ExpertsForm { limits, ..ExpertsForm::PLAIN })
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(x, LayerForm { qk: QkNorm::Heads, ..LayerForm::PLAIN })
    }
}
