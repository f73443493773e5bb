//! An architecture that models can have.

use std::fmt;

use super::family::{Decoder, Encoder, Family};
use super::norm_kind::NormKind;

/// An architecture that models can have.
#[derive(Clone, Copy)]
pub struct Architecture {
    name: &'static str,
    pub(super) family: Family,
}

impl Architecture {
    /// A decoder of that name.
    pub(super) const fn decoder(name: &'static str, family: &'static dyn Decoder) -> Architecture {
        Architecture { name, family: Family::Decoder(family) }
    }

    /// An encoder of that name.
    pub(super) const fn encoder(name: &'static str, family: &'static dyn Encoder) -> Architecture {
        Architecture { name, family: Family::Encoder(family) }
    }

    /// Its name, as in `general.architecture`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Form of its norms.
    pub(super) fn norm(&self) -> NormKind {
        match self.family {
            Family::Decoder(family) => family.norm(),
            Family::Encoder(family) => family.norm(),
        }
    }

    /// Whether its norms are root-mean-square norms in files that have their epsilon.
    pub(super) fn may_have_rms_norms(&self) -> bool {
        matches!(self.family, Family::Decoder(family) if family.may_have_rms_norms())
    }

    /// Whether layers may lack attention or the feed-forward block.
    pub(super) fn may_lack_blocks(&self) -> bool {
        matches!(self.family, Family::Decoder(family) if family.may_lack_blocks())
    }

    /// Whether layers behind those of the model that predict further tokens can be used.
    pub(super) fn has_predictors(&self) -> bool {
        matches!(self.family, Family::Decoder(family) if family.has_predictors())
    }

    /// Whether every product and every norm has a bias.
    pub(super) fn has_biases(&self) -> bool {
        matches!(self.family, Family::Encoder(family) if family.has_biases())
    }

    /// Whether its rows see later ones, so that its models make embeddings only.
    pub fn is_encoder(&self) -> bool {
        matches!(self.family, Family::Encoder(_))
    }
}

impl fmt::Debug for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Architecture").field(&self.name).finish()
    }
}

impl PartialEq for Architecture {
    fn eq(&self, other: &Architecture) -> bool {
        self.name == other.name
    }
}
