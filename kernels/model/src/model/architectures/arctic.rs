//! Snowflake Arctic: a dense block as wide as the hidden states, and experts beside the whole layer, which read its input.

use super::super::build::{Builder, LayerForm};
use super::super::keys::{ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("arctic", &Arctic);

struct Arctic;

impl Decoder for Arctic {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.ffn_widths.fill(config.width);
        keys.experts(config, ExpertsForm::PLAIN)
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let experts = b.some_experts()?;
        let (form, normed) = (LayerForm::PLAIN, b.norm("attn_norm", x)?);
        let attended = b.attention(normed, &form)?;
        let sum = b.add_attended(attended, x);
        let read = b.norm("ffn_norm", sum)?;
        let dense = b.dense_block(read, &form)?;
        let sum = b.add_fed(dense, sum);
        let x = b.continued(x);
        let read = b.norm("ffn_norm_exps", x)?;
        let fed = b.expert_block(read, experts)?;
        Ok(b.add_fed(fed, sum))
    }
}
