//! Step 3.5 and 3.7: gates of heads, layers with a window by a list, which have heads and a rotation of their own, and experts by
//! sigmoids beside one of all rows, with bounds in some layers, behind dense layers. Layers that predict further tokens are left out.

use super::super::build::{AttentionGate, Builder, LayerForm, QkNorm};
use super::super::keys::{ExpertLimits, ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("step35", &Step35);

struct Step35;

impl Decoder for Step35 {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        keys.listed_windows(config)?;
        config.window_rope_is_scaled = false;
        config.rope_base_window = keys.rope_base("rope.freq_base_swa")?.unwrap_or(10_000.0);
        // The file says how many values rotate in layers with a window; in the others half of them do.
        let dims = config.heads[0].rope_dims;
        keys.check("rope.dimension_count", dims, dims.is_multiple_of(4), || {
            "it must be a multiple of 4, as half of it must be even".to_owned()
        })?;
        keys.rope_dims_of_windows(config, dims / 2)?;
        // There are factors for the widest rotation, of layers with a window, which do not use them.
        config.rope_factors = config.heads.iter().map(|heads| heads.rope_dims / 2).max();
        config.gate_limits = keys.gate_limits("swiglu_clamp_shexp", config)?;
        keys.leave_out_predictors(config)?;
        let limits = ExpertLimits::Activated;
        keys.experts(config, ExpertsForm { limits, ..ExpertsForm::STATED })
    }

    fn has_predictors(&self) -> bool {
        true
    }

    fn passes_on_normed(&self) -> bool {
        false
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let qk = if b.has("attn_q_norm.weight") { QkNorm::Heads } else { QkNorm::None };
        let gate = match b.has("attn_gate.weight") {
            true => AttentionGate::Heads,
            false => AttentionGate::None,
        };
        b.layer(x, LayerForm { qk, gate, ..LayerForm::PLAIN })
    }
}
