//! GroveMoE: norms of heads, and experts by a softmax, of which neighbours share a small one each.

use super::super::build::{Builder, LayerForm, QkNorm};
use super::super::experts::AdjugateExperts;
use super::super::keys::{ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("grovemoe", &GroveMoe);

struct GroveMoe;

impl Decoder for GroveMoe {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        const GROUP: &str = "experts_per_group";
        config.rope_pairs = RopePairs::Halves;
        keys.experts(config, ExpertsForm::PLAIN)?;
        let Some(experts) = &mut config.experts else { return Ok(()) };
        let group = keys.count(GROUP, experts.count)?;
        keys.check(GROUP, group, experts.count.is_multiple_of(group), || {
            format!("it must divide the {} experts", experts.count)
        })?;
        let scale = keys.meta.f32(&keys.key("expert_group_scale"))?;
        keys.check("expert_group_scale", scale, scale.abs() <= 1e6, || {
            "it must be between -1000000 and 1000000".to_owned()
        })?;
        experts.adjugates = Some(AdjugateExperts { group, scale });
        Ok(())
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(x, LayerForm { qk: QkNorm::Heads, ..LayerForm::PLAIN })
    }
}
