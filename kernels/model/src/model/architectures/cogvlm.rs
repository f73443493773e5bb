//! The text of CogVLM: rotation by halves with one base for all files. Each layer has further matrices for the rows of images.

use super::super::build::{Builder, LayerForm};
use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::{RopePairs, RopeScaling};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("cogvlm", &CogVlm);

struct CogVlm;

const OF_IMAGES: [&str; 5] = ["vis_attn_qkv", "vis_attn_output", "vis_gate", "vis_up", "vis_down"];

impl Decoder for CogVlm {
    fn settings(&self, _: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        // What a file says of base and scaling is not used, as in llama.cpp.
        config.rope_base = 10_000.0;
        config.rope_scaling = RopeScaling::None;
        config.rope_pairs = RopePairs::Halves;
        Ok(())
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        for matrix in OF_IMAGES {
            b.leave_unread(&format!("{matrix}.weight"));
        }
        b.layer(x, LayerForm::PLAIN)
    }
}
