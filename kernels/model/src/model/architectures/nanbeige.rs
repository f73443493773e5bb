//! Nanbeige 4.2: its layers run several times, with keys and values of their own, and the last norm is also between the runs.

use super::super::build::{Builder, LayerForm};
use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::Op;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("nanbeige", &Nanbeige);

struct Nanbeige;

impl Decoder for Nanbeige {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        const LOOPS: &str = "num_loops";
        let (loops, blocks) = (keys.opt_count(LOOPS)?.unwrap_or(1), config.layers);
        keys.check(LOOPS, loops, loops <= 4096 / blocks, || {
            format!("{blocks} layers can run at most {} times", 4096 / blocks)
        })?;
        config.set_blocks((0..loops).flat_map(|_| 0..blocks).collect());
        config.is_normed_between = !keys.flag("skip_loop_final_norm", false)?;
        Ok(())
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let layer = b.layer_number();
        let begins = layer > 0 && b.config.blocks[layer] == 0;
        if !(begins && b.config.is_normed_between) {
            return b.layer(x, LayerForm::PLAIN);
        }
        let (width, eps) = (b.config.width, b.config.norm_eps);
        let weight = Some(b.vector("output_norm.weight", width)?);
        let normed = Op::RmsNorm { weight, group: width, eps };
        let normed = b.push(normed, &[x], width, "norm_between");
        b.layer(normed, LayerForm::PLAIN)
    }
}
