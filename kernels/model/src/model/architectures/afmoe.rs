//! Trinity (Arcee): gates of attention, norms before and after both blocks, normalised heads, experts behind dense layers; three
//! layers of four have a window, and only these rotate.

use super::super::build::{AttentionGate, Builder, LayerForm, Norms, QkNorm};
use super::super::experts::SharedExpert;
use super::super::keys::{ExpertsForm, Keys, Windows};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("afmoe", &AfMoe);

struct AfMoe;

impl Decoder for AfMoe {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        config.embedding_scale = (config.width as f32).sqrt();
        keys.windows(config, Windows { period: 4, default: None })?;
        config.rotated = (1..=config.layers).map(|layer| layer % 4 != 0).collect();
        let shared = SharedExpert::Optional;
        keys.experts(config, ExpertsForm { shared, ..ExpertsForm::STATED })
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let (qk, gate) = (QkNorm::Heads, AttentionGate::Values);
        b.layer(x, LayerForm { qk, gate, norms: Norms::BOTH, ..LayerForm::PLAIN })
    }
}
