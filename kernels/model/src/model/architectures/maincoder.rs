//! Maincoder: heads of queries and keys are normalised after the rotation.

use super::super::ModelError;
use super::super::build::{Builder, LayerForm, QkNorm};
use super::{Architecture, Decoder};
use crate::graph::ValueId;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("maincoder", &Maincoder);

struct Maincoder;

impl Decoder for Maincoder {
    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(x, LayerForm { qk: QkNorm::RotatedHeads, ..LayerForm::PLAIN })
    }
}
