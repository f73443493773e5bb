//! Mamba-2: layers without attention and feed-forward blocks.

use super::super::build::Builder;
use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("mamba2", &Mamba2);

struct Mamba2;

impl Decoder for Mamba2 {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.leave_out_heads();
        keys.recurrent(config, &vec![true; config.layers])
    }

    fn may_lack_blocks(&self) -> bool {
        true
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let normed = b.norm("attn_norm", x)?;
        let mixed = b.mamba2(normed, false)?;
        Ok(b.add_attended(mixed, x))
    }
}
