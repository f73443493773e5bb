//! What an architecture is made of.

use super::build::{Builder, LayerForm};
use super::head::RankForm;
use super::keys::Keys;
use super::norm_kind::NormKind;
use super::{ModelConfig, ModelError};
use crate::graph::ValueId;

/// What an architecture computes.
#[derive(Clone, Copy)]
pub(super) enum Family {
    /// Rows see earlier ones only, and the output is the logits of the next token.
    Decoder(&'static dyn Decoder),
    /// Rows see all rows of their sequence, and the output is hidden states.
    Encoder(&'static dyn Encoder),
}

/// A decoder: the differences from the plain pre-norm transformer with gated feed-forward blocks.
pub(super) trait Decoder: Sync {
    /// Sets the hyper-parameters that differ from the plain ones, from keys that the plain transformer does not read, or reads
    /// with another default.
    fn settings(&self, _keys: &Keys<'_>, _config: &mut ModelConfig) -> Result<(), ModelError> {
        Ok(())
    }

    /// Form of its norms.
    fn norm(&self) -> NormKind {
        NormKind::Rms
    }

    /// Whether its norms are root-mean-square norms in files that have their epsilon.
    fn may_have_rms_norms(&self) -> bool {
        false
    }

    /// Whether layers may lack attention or the feed-forward block: those with 0 heads or a width of 0.
    fn may_lack_blocks(&self) -> bool {
        false
    }

    /// Whether layers behind those of the model, which predict further tokens, are layers of its own kind that read its hidden states
    /// ([`Builder::predictor`]).
    fn has_predictors(&self) -> bool {
        false
    }

    /// Whether these read the hidden states after the last norm, and pass on their own after theirs; otherwise both before the norm.
    fn passes_on_normed(&self) -> bool {
        true
    }

    /// Adds the nodes between the token embeddings `x` and the first layer, and returns the first layer's input.
    fn embedded(&self, _b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        Ok(x)
    }

    /// Adds the builder's current layer for the hidden states `x`, and returns the next ones.
    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(x, LayerForm::PLAIN)
    }

    /// Adds the nodes of all layers for the hidden states `x`, and returns the last ones.
    fn layers(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        (0..b.config.layers).try_fold(x, |x, layer| {
            b.layer = Some(layer);
            self.layer(b, x)
        })
    }

    /// Adds the nodes between the last layer and the last norm.
    fn finished(&self, _b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        Ok(x)
    }

    /// Name of the norm behind the last layer.
    fn last_norm(&self) -> &'static str {
        "output_norm"
    }

    /// The head of its rerankers.
    fn rank(&self) -> RankForm {
        RankForm::OF_DECODERS
    }
}

/// An encoder.
pub(super) trait Encoder: Sync {
    /// Sets the hyper-parameters that differ from those of the plain transformer.
    fn settings(&self, _keys: &Keys<'_>, _config: &mut ModelConfig) -> Result<(), ModelError> {
        Ok(())
    }

    /// Form of its norms.
    fn norm(&self) -> NormKind {
        NormKind::Layer
    }

    /// Whether every product and every norm has a bias. Otherwise those have one for which a file has it.
    fn has_biases(&self) -> bool {
        false
    }

    /// Adds the nodes between the token embeddings `x` and the first layer, and returns the first layer's input.
    fn embedded(&self, _b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        Ok(x)
    }

    /// Adds the builder's current layer for the hidden states `x`, and returns the next ones.
    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError>;

    /// Name of the norm behind the last layer.
    fn last_norm(&self) -> Option<&'static str> {
        None
    }

    /// The head of its rerankers.
    fn rank(&self) -> RankForm {
        RankForm::OF_ENCODERS
    }

    /// Whether files have products behind the mean of the hidden states.
    fn is_projected(&self) -> bool {
        false
    }
}
