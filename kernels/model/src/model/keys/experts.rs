//! Keys of mixtures of experts.

use super::Keys;
use super::limits::ExpertLimits;
use crate::model::experts::{ExpertsConfig, SharedExpert};
use crate::model::{ModelConfig, ModelError};
use crate::op::{Activation, ExpertForm, ExpertGroups, RouterScore};

/// Most experts of a layer: their numbers are exact in f32.
const EXPERTS_MAX: usize = 1 << 16;

/// What an architecture says of its experts, and which keys it reads of them.
#[derive(Clone, Copy, Debug)]
pub(in crate::model) struct ExpertsForm {
    /// Scores, unless the file says otherwise.
    pub(in crate::model) score: RouterScore,
    /// Whether the file may say which scores.
    pub(in crate::model) reads_score: bool,
    /// Whether weights are normalised, unless the file says otherwise.
    pub(in crate::model) is_normalised: bool,
    /// Whether the file may say whether weights are normalised.
    pub(in crate::model) reads_normalised: bool,
    /// The middle of an expert.
    pub(in crate::model) form: ExpertForm,
    /// Which bounds on gates the file may state.
    pub(in crate::model) limits: ExpertLimits,
    /// Whether weights multiply what an expert reads.
    pub(in crate::model) weighs_input: bool,
    /// The expert of all rows.
    pub(in crate::model) shared: SharedExpert,
}

impl ExpertsForm {
    /// The softmax over all experts, normalised; SiLU gates; no shared experts.
    pub(in crate::model) const PLAIN: ExpertsForm = ExpertsForm {
        score: RouterScore::Softmax,
        reads_score: false,
        is_normalised: true,
        reads_normalised: false,
        form: ExpertForm::Gated(Activation::Silu),
        limits: ExpertLimits::None,
        weighs_input: false,
        shared: SharedExpert::None,
    };

    /// What the file says: otherwise sigmoids, not normalised. SiLU gates, and a shared expert.
    pub(in crate::model) const STATED: ExpertsForm = ExpertsForm {
        score: RouterScore::Sigmoid,
        reads_score: true,
        is_normalised: false,
        reads_normalised: true,
        shared: SharedExpert::Always,
        ..ExpertsForm::PLAIN
    };
}

impl Keys<'_> {
    /// Sets the experts, if the file has any. Which layers have them is said by their tensors, as it is how wide they are.
    pub(in crate::model) fn experts(
        &self,
        config: &mut ModelConfig,
        form: ExpertsForm,
    ) -> Result<(), ModelError> {
        let Some(count) = self.opt_count("expert_count")? else { return Ok(()) };
        self.check("expert_count", count, count <= EXPERTS_MAX, || {
            format!("it must be at most {EXPERTS_MAX}")
        })?;
        self.ignore("leading_dense_block_count");
        let used = self.count("expert_used_count", count)?;
        config.experts = Some(ExpertsConfig {
            count,
            used,
            score: self.router_score(form)?,
            groups: self.expert_groups(count, used)?,
            is_normalised: match form.reads_normalised {
                true => self.flag("expert_weights_norm", form.is_normalised)?,
                false => form.is_normalised,
            },
            scale: self.factor("expert_weights_scale", 1.0)?,
            form: form.form,
            bounded_forms: self.bounded_forms(config, form.limits)?,
            adjugates: None,
            weighs_input: form.weighs_input,
            shared: form.shared,
        });
        Ok(())
    }

    /// GGUF's number of the gating function.
    fn router_score(&self, form: ExpertsForm) -> Result<RouterScore, ModelError> {
        const NAME: &str = "expert_gating_func";
        if !form.reads_score {
            return Ok(form.score);
        }
        Ok(match self.opt_count(NAME)? {
            None => form.score,
            Some(1) => RouterScore::Softmax,
            Some(2) => RouterScore::Sigmoid,
            Some(3) => RouterScore::ChosenSoftmax,
            Some(4) => RouterScore::RootSoftplus,
            Some(other) => {
                let expected = || "it must be between 1 and 4".to_owned();
                return self.check(NAME, other, false, expected).map(|()| form.score);
            }
        })
    }

    fn expert_groups(&self, count: usize, used: usize) -> Result<Option<ExpertGroups>, ModelError> {
        const GROUPS: &str = "expert_group_count";
        const USED: &str = "expert_group_used_count";
        let groups = self.opt_count(GROUPS)?.unwrap_or(1);
        let of_groups = self.opt_count(USED)?.unwrap_or(groups);
        if groups <= 1 || of_groups == groups {
            return Ok(None);
        }
        self.check(GROUPS, groups, count.is_multiple_of(groups) && count / groups > 1, || {
            format!("it must divide the {count} experts into groups of at least 2")
        })?;
        let enough = of_groups < groups && of_groups * (count / groups) >= used;
        self.check(USED, of_groups, enough, || {
            format!(
                "it must be less than the {groups} groups, and so many must have {used} experts"
            )
        })?;
        Ok(Some(ExpertGroups { count: groups, used: of_groups }))
    }
}
