//! HRM-Text: two stacks of layers that run in turn, each with the sum of what both have made last. The low stack runs several times
//! in each cycle, then the high one. Rows see earlier ones only, as in llama.cpp, also those of a prompt.

use super::super::build::{AttentionGate, Builder, LayerForm};
use super::super::keys::Keys;
use super::super::norm_kind::NormKind;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::{Op, RopePairs, TableRow};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("hrm_text", &HrmText);

struct HrmText;

impl Decoder for HrmText {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        config.embedding_scale = keys.factor("embedding_scale", 1.0)?;
        keys.ignore("hrm.prefix_lm");
        let stack = keys.count("hrm.layers_per_stack", 4096)?;
        let (high, low) = (keys.count("hrm.h_cycles", 4096)?, keys.count("hrm.l_cycles", 4096)?);
        let all = stack.saturating_mul(high).saturating_mul(low + 1);
        keys.check("block_count", config.layers, config.layers == all, || {
            format!("{high} cycles of {low} and 1 runs of {stack} layers are {all}")
        })?;
        let runs = (0..high).flat_map(|_| std::iter::repeat_n(0, low).chain([stack]));
        config.set_blocks(runs.flat_map(|first| first..first + stack).collect());
        Ok(())
    }

    fn norm(&self) -> NormKind {
        NormKind::RmsWithoutWeights
    }

    fn layers(&self, b: &mut Builder<'_>, embedded: ValueId) -> Result<ValueId, ModelError> {
        let (width, layers) = (b.config.width, b.config.layers);
        let stack = b.config.blocks[layers - 1].div_ceil(2);
        let form = LayerForm { gate: AttentionGate::Values, ..LayerForm::PLAIN };
        let (mut high, mut low) = (embedded, None);
        for first in (0..layers).step_by(stack) {
            b.layer = Some(first);
            let mut x = match low {
                Some(low) => b.push(Op::Add, &[high, low], width, "stack_sum"),
                None => {
                    let table = b.vector("hrm.z_l_init", width)?;
                    let op = Op::AddRow { table, row: TableRow::First };
                    b.push(op, &[high], width, "stack_sum")
                }
            };
            for layer in first..first + stack {
                b.layer = Some(layer);
                x = b.layer(x, form)?;
            }
            if first + stack == layers {
                return Ok(x);
            }
            let normed = b.norm("stack_norm", x)?;
            match b.config.blocks[first] {
                0 => low = Some(normed),
                _ => high = normed,
            }
        }
        Ok(high)
    }
}
