//! Ling and Ring, first generation: a softmax over all experts, beside one of all rows.

use super::super::keys::{ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::op::RouterScore;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("bailingmoe", &BailingMoe);

struct BailingMoe;

impl Decoder for BailingMoe {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        let score = RouterScore::Softmax;
        keys.experts(config, ExpertsForm { score, reads_score: false, ..ExpertsForm::STATED })
    }
}
