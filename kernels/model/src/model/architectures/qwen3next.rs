//! Qwen3-Next: the layers of Qwen 3.5 with experts. Neighbouring heads of values share keys, and matrices may have the rows of each head
//! of keys together.

use super::super::build::Builder;
use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder, qwen35, qwen35moe};
use crate::graph::ValueId;
use crate::op::KeyOrder;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("qwen3next", &Qwen3Next);

struct Qwen3Next;

impl Decoder for Qwen3Next {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        qwen35moe::settings(keys, config)
    }

    fn has_predictors(&self) -> bool {
        true
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        qwen35::layer(b, x, KeyOrder::Blocks)
    }
}
