//! NeoBERT (Le Breton et al., 2025): layers of Llama whose rows see all rows, with a last norm of another name.

use super::super::ModelError;
use super::super::build::{Builder, LayerForm};
use super::super::norm_kind::NormKind;
use super::{Architecture, Encoder};
use crate::graph::ValueId;

pub(super) const ARCHITECTURE: Architecture = Architecture::encoder("neo-bert", &NeoBert);

struct NeoBert;

impl Encoder for NeoBert {
    fn norm(&self) -> NormKind {
        NormKind::Rms
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(x, LayerForm::PLAIN)
    }

    fn last_norm(&self) -> Option<&'static str> {
        Some("enc.output_norm")
    }
}
