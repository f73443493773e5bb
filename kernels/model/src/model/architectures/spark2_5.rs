//! Spark X2.5: gates of heads, GELU, and layers with a window by a list, whose rotation is their own.

use super::super::build::{AttentionGate, Builder, LayerForm};
use super::super::keys::Keys;
use super::super::{LayerHeads, ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::{Activation, RopePairs};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("spark2_5", &Spark25);

struct Spark25;

impl Decoder for Spark25 {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.activation = Activation::GeluTanh;
        config.rope_pairs = RopePairs::Halves;
        keys.listed_windows(config)?;
        let LayerHeads { kv, rope_dims, .. } = config.heads[0];
        let dims = keys.rope_dims("rope.dimension_count_swa", kv.key_dim, rope_dims)?;
        for (heads, windowed) in config.heads.iter_mut().zip(&config.windowed) {
            heads.rope_dims = if *windowed { dims } else { rope_dims };
        }
        Ok(())
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(x, LayerForm { gate: AttentionGate::Heads, ..LayerForm::PLAIN })
    }
}
