//! EXAONE 4: norms only after the blocks, and of the heads of queries and keys. In the size of 64 layers, three layers of four
//! have a window, and only these have a rotary embedding.

use super::super::build::{Builder, LayerForm, Norms, QkNorm};
use super::super::keys::{Keys, Windows};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("exaone4", &Exaone4);

struct Exaone4;

/// Layers of the size that has windows.
const LAYERS: usize = 64;

impl Decoder for Exaone4 {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        if config.layers == LAYERS {
            keys.windows(config, Windows { period: 4, default: Some(4096) })?;
            config.rotated.clone_from(&config.windowed);
        }
        Ok(())
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(x, LayerForm { qk: QkNorm::Heads, norms: Norms::AFTER, ..LayerForm::PLAIN })
    }
}
