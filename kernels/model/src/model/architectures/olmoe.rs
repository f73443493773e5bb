//! OLMoE: norms of queries and keys over whole rows, and weights that are not normalised.

use super::super::build::{Builder, LayerForm, QkNorm};
use super::super::keys::{ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("olmoe", &OlMoe);

struct OlMoe;

impl Decoder for OlMoe {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        keys.experts(config, ExpertsForm { is_normalised: false, ..ExpertsForm::PLAIN })
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(x, LayerForm { qk: QkNorm::Rows, ..LayerForm::PLAIN })
    }
}
