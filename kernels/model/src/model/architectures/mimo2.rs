//! MiMo V2: layers with a window by a list, with heads and a rotary base of their own, sinks in some layers, a factor on attention, and
//! experts by sigmoids behind dense layers. Layers that predict further tokens are left out.

use super::super::keys::{ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError, SinkLayers};
use super::{Architecture, Decoder};
use crate::op::{RopePairs, RouterScore};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("mimo2", &Mimo2);

struct Mimo2;

impl Decoder for Mimo2 {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        keys.listed_windows(config)?;
        config.sinks = SinkLayers::Some;
        config.attention_scale = keys.factor("attention.value_scale", 1.0)?;
        keys.leave_out_predictors(config)?;
        let score = RouterScore::Sigmoid;
        keys.experts(config, ExpertsForm { score, ..ExpertsForm::PLAIN })
    }
}
