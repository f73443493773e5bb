//! Mamba and Falcon Mamba, which normalises steps, keys and queries without weights: layers without attention and feed-forward blocks.

use super::super::build::Builder;
use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError, StepNorms};
use super::{Architecture, Decoder};
use crate::graph::ValueId;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("mamba", &Mamba);

struct Mamba;

impl Decoder for Mamba {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.leave_out_heads();
        let norms = match keys.flag("ssm.dt_b_c_rms", false)? {
            true => StepNorms::WithoutWeights,
            false => StepNorms::None,
        };
        keys.mamba(config, &vec![true; config.layers], norms)
    }

    fn may_lack_blocks(&self) -> bool {
        true
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let normed = b.norm("attn_norm", x)?;
        let mixed = b.mamba(normed)?;
        Ok(b.add_attended(mixed, x))
    }
}
