//! Qwen 1: joined queries, keys and values; files count the gate and what it gates as one.

use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("qwen", &Qwen);

struct Qwen;

impl Decoder for Qwen {
    fn settings(&self, _: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        config.ffn_widths.iter_mut().for_each(|width| *width /= 2);
        Ok(())
    }
}
