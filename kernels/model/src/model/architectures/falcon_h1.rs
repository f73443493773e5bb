//! Falcon H1: attention and Mamba-2 read the same row, and are added.

use super::super::build::{Builder, LayerForm};
use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::{Op, RopePairs};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("falcon-h1", &FalconH1);

struct FalconH1;

impl Decoder for FalconH1 {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        keys.recurrent(config, &vec![true; config.layers])
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let normed = b.norm("attn_norm", x)?;
        let attended = b.attention(normed, &LayerForm::PLAIN)?;
        let mixed = b.mamba2(normed, true)?;
        let sum = b.push(Op::Add, &[attended, mixed], b.config.width, "mixed");
        b.after_attention([x, normed, sum], LayerForm::PLAIN)
    }
}
