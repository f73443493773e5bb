//! Jamba: Mamba in place of attention where a layer has no heads of keys and values, attention without rotation, and experts in some
//! layers.

use super::super::build::{Builder, LayerForm};
use super::super::keys::{ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError, StepNorms};
use super::{Architecture, Decoder};
use crate::graph::ValueId;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("jamba", &Jamba);

struct Jamba;

impl Decoder for Jamba {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rotated.fill(false);
        keys.mamba(config, &config.layers_without_keys(), StepNorms::Weighted)?;
        // A file with one expert has dense blocks.
        match keys.opt_count("expert_count")? {
            Some(1) => Ok(()),
            _ => keys.experts(config, ExpertsForm { is_normalised: false, ..ExpertsForm::PLAIN }),
        }
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        if !b.config.has_state(b.layer_number()) {
            return b.layer(x, LayerForm::PLAIN);
        }
        let normed = b.norm("attn_norm", x)?;
        let mixed = b.mamba(normed)?;
        b.after_attention([x, normed, mixed], LayerForm::PLAIN)
    }
}
