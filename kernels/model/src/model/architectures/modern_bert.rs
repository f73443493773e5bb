//! ModernBERT (Warner et al., 2024) and its descendants, such as GTE, Granite Embedding R2 and mmBERT: layer norms without biases
//! before the blocks, a rotary embedding, and gated feed-forward blocks. The first layer of each three sees all rows, the others those
//! in a window around each.

use super::super::build::{Builder, LayerForm, Norms};
use super::super::head::{HeadActivation, HeadInput, RankForm};
use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Encoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::encoder("modern-bert", &ModernBert);

struct ModernBert;

impl Encoder for ModernBert {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        config.activation = keys.gate()?;
        keys.windows_but_first(config, 3)
    }

    fn embedded(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.norm("token_embd_norm", x)
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        // The norm of the embeddings is that of the first layer.
        let is_normed = b.layer == Some(0) && !b.has("attn_norm.weight");
        let before_attention = Norms::BEFORE.before_attention.filter(|_| !is_normed);
        let norms = Norms { before_attention, ..Norms::BEFORE };
        b.layer(x, LayerForm { norms, ..LayerForm::PLAIN })
    }

    fn last_norm(&self) -> Option<&'static str> {
        Some("output_norm")
    }

    fn rank(&self) -> RankForm {
        let (input, activation) = (HeadInput::Mean, HeadActivation::Gelu);
        RankForm { input, activation, ..RankForm::OF_ENCODERS }
    }
}
