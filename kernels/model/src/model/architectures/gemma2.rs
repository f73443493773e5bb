//! Gemma 2: norms before and after each block, every second layer with a window, and soft caps.

use super::super::build::{Builder, LayerForm, Norms};
use super::super::keys::{Keys, Windows};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("gemma2", &Gemma2);

struct Gemma2;

impl Decoder for Gemma2 {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.as_gemma(46);
        keys.windows(config, Windows { period: 2, default: Some(4096) })?;
        config.attention_cap = keys.cap("attn_logit_softcapping", Some(50.0))?;
        config.logit_cap = keys.cap("final_logit_softcapping", Some(30.0))?;
        Ok(())
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(x, LayerForm { norms: Norms::BOTH, ..LayerForm::PLAIN })
    }
}
