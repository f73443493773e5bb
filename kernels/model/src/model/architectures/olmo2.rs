//! OLMo 2 and 3: norms only after the blocks, and of queries and keys over whole rows. In OLMo 3, three layers of four have a
//! window, and their rotary embedding is not stretched.

use super::super::build::{Builder, LayerForm, Norms, QkNorm};
use super::super::keys::{Keys, Windows};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("olmo2", &Olmo2);

struct Olmo2;

impl Decoder for Olmo2 {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        keys.windows(config, Windows { period: 4, default: None })?;
        config.window_rope_is_scaled = false;
        Ok(())
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(x, LayerForm { qk: QkNorm::Rows, norms: Norms::AFTER, ..LayerForm::PLAIN })
    }
}
