//! MiniMax M2: norms of queries and keys over whole rows, and experts by sigmoids.

use super::super::build::{Builder, LayerForm, QkNorm};
use super::super::keys::{ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::{RopePairs, RouterScore};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("minimax-m2", &MiniMaxM2);

struct MiniMaxM2;

impl Decoder for MiniMaxM2 {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        let score = RouterScore::Sigmoid;
        keys.experts(config, ExpertsForm { score, reads_score: true, ..ExpertsForm::PLAIN })
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(x, LayerForm { qk: QkNorm::Rows, ..LayerForm::PLAIN })
    }
}
