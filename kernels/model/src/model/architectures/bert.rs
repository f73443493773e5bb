//! BERT (Devlin et al., 2018), MiniLM, BGE, GTE, XLM-RoBERTa and all other models whose files say `bert`: positions come from a table,
//! norms are layer norms after the residual additions, the feed-forward blocks have no gate, and there is no output matrix.

use super::super::build::{Builder, FeedForward, LayerForm};
use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Encoder};
use crate::graph::ValueId;
use crate::op::Curve;

pub(super) const ARCHITECTURE: Architecture = Architecture::encoder("bert", &Bert);

struct Bert;

impl Encoder for Bert {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rotated.fill(false);
        config.separator = keys.separator()?;
        Ok(())
    }

    fn has_biases(&self) -> bool {
        true
    }

    fn embedded(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let x = b.token_type(x)?;
        let x = b.position(x)?;
        b.norm("token_embd_norm", x)
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let feed_forward = FeedForward::Plain(Curve::Gelu);
        b.post_norm_layer(x, LayerForm { feed_forward, ..LayerForm::PLAIN })
    }
}
