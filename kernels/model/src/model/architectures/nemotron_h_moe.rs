//! Nemotron 3 with experts without gates, which may read and make fewer values per row than there are.

use super::super::build::Builder;
use super::super::experts::SharedExpert;
use super::super::keys::{ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder, nemotron_h};
use crate::graph::ValueId;
use crate::op::{Curve, ExpertForm, RouterScore};

pub(super) const ARCHITECTURE: Architecture =
    Architecture::decoder("nemotron_h_moe", &NemotronHMoe);

struct NemotronHMoe;

impl Decoder for NemotronHMoe {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        nemotron_h::settings(keys, config)?;
        let form = ExpertsForm {
            score: RouterScore::Sigmoid,
            reads_normalised: true,
            is_normalised: false,
            form: ExpertForm::Plain(Curve::ReluSquared),
            shared: SharedExpert::Always,
            ..ExpertsForm::PLAIN
        };
        keys.experts(config, form)
    }

    fn may_lack_blocks(&self) -> bool {
        true
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        nemotron_h::layer(b, x)
    }
}
