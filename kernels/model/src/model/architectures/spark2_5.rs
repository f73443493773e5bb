//! Spark X2.5: gates of heads, GELU, and layers with a window by a list, whose rotation is their own.

use super::super::build::{AttentionGate, Builder, LayerForm};
use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
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
        keys.rope_dims_of_windows(config, config.heads[0].rope_dims)
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(x, LayerForm { gate: AttentionGate::Heads, ..LayerForm::PLAIN })
    }
}
