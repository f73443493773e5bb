//! Llama 4: three layers of four see chunks of 8192 positions, and only these rotate and normalise heads; the others have queries that grow
//! with their position. Routers weigh what experts read, beside an expert of all rows.

use super::super::build::{Builder, LayerForm, QkNorm};
use super::super::experts::SharedExpert;
use super::super::keys::{ExpertsForm, Keys, Windows};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::{RouterScore, Temperature};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("llama4", &Llama4);

struct Llama4;

/// Experts of the size whose heads are not normalised.
const WITHOUT_NORMS: usize = 128;

impl Decoder for Llama4 {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        const LENGTH: usize = 8192;
        if keys.opt_u32("attention.sliding_window")? != Some(0) {
            keys.windows(config, Windows { period: 4, default: Some(LENGTH) })?;
            config.window = Some(LENGTH);
            config.is_window_fixed = true;
            config.rotated = (1..=config.layers).map(|layer| layer % 4 != 0).collect();
            let temperature = Temperature { scale: 0.1, length: LENGTH, offset: 1 };
            config.temperature_unrotated = Some(temperature);
        }
        let (score, shared) = (RouterScore::ChosenSigmoid, SharedExpert::Always);
        let form = ExpertsForm { score, shared, is_normalised: false, ..ExpertsForm::PLAIN };
        keys.experts(config, ExpertsForm { weighs_input: true, ..form })
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let is_plain = b.config.experts.as_ref().is_some_and(|all| all.count == WITHOUT_NORMS);
        let qk = match b.config.rotated[b.layer_number()] && !is_plain {
            true => QkNorm::RotatedHeadsWithoutWeights,
            false => QkNorm::None,
        };
        b.layer(x, LayerForm { qk, ..LayerForm::PLAIN })
    }
}
